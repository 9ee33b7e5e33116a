"""Functions of `mx.sym` that are no single operator: either a scalar or a symbol, and arrays from nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mxnp.error import MXNetNotImplementedError, MXNetTypeError

from ._compose import is_symbol
from ._operators import apply


def _either(name: str, tensor: str, scalar: str, turned: str, doc: str) -> Callable[..., Any]:
    """A function of two operands, at least one a symbol."""

    def run(left: Any, right: Any) -> Any:
        if is_symbol(left) and is_symbol(right):
            return apply(tensor, tensor, left, right)
        if is_symbol(left):
            return apply(scalar, scalar.replace("_scalar", "scalar"), left, scalar=right)
        if is_symbol(right):
            return apply(turned, turned.replace("_scalar", "scalar"), right, scalar=left)
        raise MXNetTypeError(f"{name}: at least one operand must be a symbol, got {left!r} and {right!r}")

    run.__name__ = run.__qualname__ = name
    run.__doc__ = doc
    return run


maximum = _either(
    "maximum", "_maximum", "_maximum_scalar", "_maximum_scalar", "The larger of two elements; equal shapes."
)
minimum = _either(
    "minimum", "_minimum", "_minimum_scalar", "_minimum_scalar", "The smaller of two elements; equal shapes."
)
power = _either(
    "power", "_power", "_power_scalar", "_rpower_scalar", "left to the power right; equal shapes."
)
hypot = _either("hypot", "_hypot", "_hypot_scalar", "_hypot_scalar", "The hypotenuse; equal shapes.")
mod = _either("mod", "_mod", "_mod_scalar", "_rmod_scalar", "The remainder; equal shapes.")


def zeros(shape: Any, dtype: Any = None, **kwargs: Any) -> Any:
    """An array of zeros.

    >>> mx.sym.zeros((2,)).eval()
    [array([0., 0.])]
    """
    return apply("_zeros", "_zeros", shape=_shape(shape), dtype=dtype or "float32", **kwargs)


def ones(shape: Any, dtype: Any = None, **kwargs: Any) -> Any:
    """An array of ones.

    >>> mx.sym.ones(2).eval()
    [array([1., 1.])]
    """
    return apply("_ones", "_ones", shape=_shape(shape), dtype=dtype or "float32", **kwargs)


def full(shape: Any, val: float, dtype: Any = None, **kwargs: Any) -> Any:
    """An array of one value.

    >>> mx.sym.full((2,), 3).eval()
    [array([3., 3.])]
    """
    return apply("_full", "_full", shape=_shape(shape), dtype=dtype or "float32", value=float(val), **kwargs)


def _shape(shape: Any) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def arange(
    start: float,
    stop: float | None = None,
    step: float = 1.0,
    repeat: int = 1,
    infer_range: bool = False,
    name: str | None = None,
    dtype: Any = None,
) -> Any:
    """The numbers from `start` (0 where it stands alone) below `stop`, each `repeat` times.

    >>> mx.sym.arange(3).eval()
    [array([0., 1., 2.])]
    """
    return apply(
        "_arange",
        "_arange",
        start=start,
        stop=stop,
        step=step,
        repeat=repeat,
        infer_range=infer_range,
        name=name,
        dtype=dtype or "float32",
    )


def linspace(
    start: float, stop: float, num: int, endpoint: bool = True, name: str | None = None, dtype: Any = None
) -> Any:
    """`num` numbers from `start` to `stop` in equal steps.

    >>> mx.sym.linspace(0, 1, 3).eval()
    [array([0. , 0.5, 1. ])]
    """
    return apply(
        "_linspace",
        "_linspace",
        start=start,
        stop=stop,
        num=num,
        endpoint=endpoint,
        name=name,
        dtype=dtype or "float32",
    )


def eye(N: int, M: int = 0, k: int = 0, dtype: Any = None, **kwargs: Any) -> Any:
    """Ones on the `k`-th diagonal of an N by M matrix (0: N by N).

    >>> mx.sym.eye(2).eval()
    [array([[1., 0.],
           [0., 1.]])]
    """
    return apply("_eye", "_eye", N=N, M=M, k=k, dtype=dtype or "float32", **kwargs)


def concat(*data: Any, dim: int = 1, **kwargs: Any) -> Any:
    """The symbols joined along `dim`.

    >>> mx.sym.concat(mx.sym.ones((1, 1)), mx.sym.zeros((1, 1)), dim=1).eval()
    [array([[1., 0.]])]
    """
    return apply("Concat", "concat", *data, dim=dim, **kwargs)


def split_v2(ary: Any, indices_or_sections: Any, axis: int = 0, squeeze_axis: bool = False) -> Any:
    """The symbol cut along `axis` into equal sections, or before the given indices.

    >>> mx.sym.split_v2(mx.sym.arange(4), 2)[1].eval()
    [array([2., 3.])]
    """
    whole = isinstance(indices_or_sections, int)
    return apply(
        "_split_v2",
        "_split_v2",
        ary,
        indices=() if whole else (0, *indices_or_sections),
        sections=indices_or_sections if whole else 0,
        axis=axis,
        squeeze_axis=squeeze_axis,
    )


def Custom(*args: Any, **kwargs: Any) -> Any:  # noqa: N802 (MXNet's name)
    """Operators written in Python (`mx.operator`) have not arrived: raises."""
    raise MXNetNotImplementedError("sym.Custom: operators of one's own have not arrived in mxnp yet")
