"""Reductions: 1.x's, with `exclude` and results of at least one axis, and NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mxnp import np, npx

from .._spec import row

_OLD = "axis:shape?=None keepdims:bool=0 exclude:bool=0"


def _axes(x: Any, axis: Any, exclude: bool) -> Any:
    """The axes to reduce; 1.x means all by an empty tuple, and all others by `exclude`."""
    if axis is None or axis == ():
        return None
    axes = tuple(a % x.ndim if x.ndim else a for a in axis)
    return tuple(a for a in range(x.ndim) if a not in axes) if exclude else axes


def _old(fn: Callable[..., Any]) -> Callable[..., Any]:
    def run(data: Any, axis: Any, keepdims: bool, exclude: bool, legacy: bool) -> Any:
        axes = _axes(data, axis, exclude)
        result = fn(data, axes, keepdims=keepdims).astype(data.dtype)
        return result.reshape((1,)) if legacy and result.ndim == 0 else result

    return run


def _old_arg(fn: Callable[..., Any]) -> Callable[..., Any]:
    def run(data: Any, axis: Any, keepdims: bool, legacy: bool) -> Any:
        result = fn(data, axis, keepdims=keepdims).astype("float32")
        return result.reshape((1,)) if legacy and result.ndim == 0 else result

    return run


def _norm(data: Any, ord: int, axis: Any, out_dtype: Any, keepdims: bool) -> Any:
    axes = axis or tuple(range(data.ndim))
    x = data if out_dtype is None else data.astype(out_dtype)
    total = np.abs(x).sum(axes, keepdims=keepdims) if ord == 1 else _root(x, axes, keepdims)
    return total.reshape((1,)) if total.ndim == 0 else total  # with NumPy's shapes too


def _root(x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    if len(axes) == 1:
        return np.linalg.norm(x, axis=axes[0], keepdims=keepdims)
    total = np.linalg.norm(x.reshape((-1,)) if len(axes) == x.ndim else _joined(x, axes), axis=-1)
    if not keepdims:
        return total
    kept = tuple(a % x.ndim for a in axes)
    return total.reshape(tuple(1 if i in kept else n for i, n in enumerate(x.shape)))


def _joined(x: Any, axes: tuple[int, ...]) -> Any:
    """`x` with `axes` joined into a last one."""
    last = tuple(a % x.ndim for a in axes)
    first = tuple(i for i in range(x.ndim) if i not in last)
    moved = x.transpose(first + last)
    return moved.reshape(moved.shape[: len(first)] + (-1,))


def _integer_types(ins: list, outs: list, attrs: dict) -> None:
    outs[:] = ["int64"]


def _float_types(ins: list, outs: list, attrs: dict) -> None:
    outs[:] = ["float32"]


def _chosen_types(ins: list, outs: list, attrs: dict) -> None:
    outs[:] = [attrs.get("dtype") or (ins[0] if ins else None)]


def _bool_types(ins: list, outs: list, attrs: dict) -> None:
    outs[:] = ["bool"]


def _moments(data: Any, axes: Any, keepdims: bool) -> Any:
    return np.mean(data, axes, keepdims=keepdims), np.var(data, axes, keepdims=keepdims)


def _numpy_rows() -> None:
    shaped = "axis:shape?=None keepdims:bool=0 initial:float?=None"
    typed = "axis:shape?=None dtype:dtype?=None keepdims:bool=0 initial:float?=None"
    for name, aliases in (("sum", ""), ("prod", "_np_product"), ("mean", "")):
        fn = getattr(np, name)
        row(f"_npi_{name} _np_{name} {aliases}", "a", typed, _typed(fn), types=_chosen_types)
    for name in ("max", "min"):
        fn = getattr(np, name)
        row(f"_npi_{name} _np_{name} _npi_a{name} _np_a{name}", "a", shaped, _initial(fn))
    for name in ("std", "var"):
        row(
            f"_npi_{name}",
            "a",
            "axis:shape?=None dtype:dtype?=None keepdims:bool=0 ddof:int=0",
            _spread(getattr(np, name)),
            outputs=lambda attrs, inputs, name=name: (name,),
            hidden=1,
            types=_chosen_types,
        )
    for name, alias in (("all", ""), ("any", "_np_sometrue")):
        fn = getattr(np, name)
        row(
            f"_npi_{name} _np_{name} {alias}",
            "data",
            "axis:shape?=None keepdims:bool=0",
            lambda data, axis, keepdims, fn=fn: fn(data, axis, keepdims=keepdims),
            types=_bool_types,
        )
    for name in ("argmax", "argmin"):
        fn = getattr(np, name)
        row(
            f"_npi_{name}",
            "data",
            "axis:int?=None keepdims:bool=0",
            lambda data, axis, keepdims, fn=fn: fn(data, axis, keepdims=keepdims),
            types=_integer_types,
        )


def _typed(fn: Callable[..., Any]) -> Callable[..., Any]:
    def run(a: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any) -> Any:
        result = fn(a, axis, dtype=dtype, keepdims=keepdims)
        return result if initial is None else result + initial

    return run


def _initial(fn: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, axis, keepdims, initial: fn(a, axis, keepdims=keepdims, initial=initial)


def _spread(fn: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, axis, dtype, keepdims, ddof: fn(a, axis, dtype=dtype, ddof=ddof, keepdims=keepdims)


def add_rows() -> None:
    """Adds the family's rows."""
    for name, aliases in (
        ("sum", "sum_axis"),
        ("mean", ""),
        ("prod", ""),
        ("nansum", ""),
        ("nanprod", ""),
        ("max", "max_axis"),
        ("min", "min_axis"),
    ):
        row(f"{name} {aliases}", "data", _OLD, _old(getattr(np, name)), legacy=True)
    for name in ("argmax", "argmin"):
        row(
            name,
            "data",
            "axis:int?=None keepdims:bool=0",
            _old_arg(getattr(np, name)),
            legacy=True,
            types=_float_types,
        )
    row("argmax_channel", "data", "", lambda x: np.argmax(x, 1).astype("float32"), types=_float_types)
    norm = "ord:int=2 axis:shape?=None out_dtype:dtype?=None keepdims:bool=0"
    row("norm _npx_norm", "data", norm, _norm)
    row(
        "_square_sum",
        "data",
        _OLD,
        lambda data, axis, keepdims, exclude: np.sum(
            data * data, _axes(data, axis, exclude), keepdims=keepdims
        ),
    )
    row(
        "moments",
        "data",
        "axes:shape?=None keepdims:bool=0",
        _moments,
        outputs=lambda attrs, inputs: ("mean", "var"),
    )
    _numpy_rows()
    row(
        "_npi_cumsum _np_cumsum cumsum",
        "a",
        "axis:int?=None dtype:dtype?=None",
        lambda a, axis, dtype: np.cumsum(a, axis, dtype=dtype),
        types=_chosen_types,
    )
    row(
        "_npi_diff",
        "a",
        "n:int=1 axis:int=-1",
        lambda a, n, axis: np.diff(a, n, axis),
    )
    row(
        "_npi_average",
        "a weights",
        "axis:shape?=None returned:bool=0 weighted:bool=1",
        _average,
        wanted=lambda attrs: ("a", "weights") if attrs["weighted"] else ("a",),
        outputs=lambda attrs, inputs: ("output0", "output1") if attrs["returned"] else ("output",),
    )
    row("shape_array _npx_shape_array", "data", "", npx.shape_array, types=_integer_types)
    row(
        "size_array",
        "data",
        "",
        lambda x: np.array([x.size], dtype="int64"),
        types=_integer_types,
    )


def _average(a: Any, weights: Any = None, *, axis: Any, returned: bool, weighted: bool) -> Any:
    axis = axis[0] if axis is not None and len(axis) == 1 else axis
    return np.average(a, axis, weights, returned=returned)
