"""`mx.sym.np`: NumPy's functions on symbols, under the operators that MXNet 2 writes for them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from numbers import Number
from typing import Any

from mxnp._symbol_types import SYMBOLS
from mxnp.error import MXNetIndexError, MXNetTypeError

from . import _numpy_random as random
from . import _spec
from ._compose import call, is_symbol
from ._numpy_rules import NUMPY
from ._operators import apply
from .symbol import Symbol

__all__ = ["random"]


class _Symbol(Symbol):
    """A symbol whose operators broadcast and whose methods are NumPy's; what MXNet 2 makes in `mx.sym.np`.

    >>> x = mx.sym.var("x").as_np_ndarray()
    >>> (x + x.mean(axis=1, keepdims=True)).infer_shape(x=(2, 3))[1]
    [(2, 3)]
    """

    __slots__ = ()

    def _two(self, name: str, other: Any, turned: bool = False) -> Any:
        if not is_symbol(other) and not isinstance(other, Number):
            return NotImplemented
        return _broadcast(name, *((other, self) if turned else (self, other)))

    def __add__(self, other: Any) -> Any:
        return self._two("add", other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._two("subtract", other)

    def __rsub__(self, other: Any) -> Any:
        return self._two("subtract", other, True)

    def __mul__(self, other: Any) -> Any:
        return self._two("multiply", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return self._two("true_divide", other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._two("true_divide", other, True)

    def __floordiv__(self, other: Any) -> Any:
        return self._two("floor_divide", other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._two("floor_divide", other, True)

    def __mod__(self, other: Any) -> Any:
        return self._two("mod", other)

    def __rmod__(self, other: Any) -> Any:
        return self._two("mod", other, True)

    def __pow__(self, other: Any) -> Any:
        return self._two("power", other)

    def __rpow__(self, other: Any) -> Any:
        return self._two("power", other, True)

    def __matmul__(self, other: Any) -> Any:
        return (
            apply("_npi_matmul", "matmul", self, other, cls=_Symbol) if is_symbol(other) else NotImplemented
        )

    def __and__(self, other: Any) -> Any:
        return self._two("bitwise_and", other)

    def __or__(self, other: Any) -> Any:
        return self._two("bitwise_or", other)

    def __xor__(self, other: Any) -> Any:
        return self._two("bitwise_xor", other)

    def __invert__(self) -> Any:
        return function("bitwise_not")(self)

    def __neg__(self) -> Any:
        return function("negative")(self)

    def __abs__(self) -> Any:
        return function("absolute")(self)

    def __eq__(self, other: object) -> Any:
        return self._two("equal", other)

    def __ne__(self, other: object) -> Any:
        return self._two("not_equal", other)

    def __gt__(self, other: Any) -> Any:
        return self._two("greater", other)

    def __ge__(self, other: Any) -> Any:
        return self._two("greater_equal", other)

    def __lt__(self, other: Any) -> Any:
        return self._two("less", other)

    def __le__(self, other: Any) -> Any:
        return self._two("less_equal", other)

    __hash__ = None  # type: ignore[assignment]  # equality is an operator, as in MXNet

    @property
    def T(self) -> Any:  # noqa: N802 (NumPy's name)
        """The axes in reverse order."""
        return apply("_npi_transpose", "transpose", self, cls=_Symbol)

    def reshape(self, *shape: Any, order: str = "C", **kwargs: Any) -> Any:
        """The array in another shape; -1 is left over, and -2 to -6 are npx.reshape's codes."""
        sizes = kwargs.pop("newshape", shape[0] if len(shape) == 1 else shape)
        sizes = (sizes,) if isinstance(sizes, int) else tuple(sizes)
        op, options = (
            ("_npx_reshape", {}) if min(sizes, default=0) < -1 else ("_np_reshape", {"order": order})
        )
        return apply(op, "reshape", self, newshape=sizes, cls=_Symbol, **options, **kwargs)

    def transpose(self, *axes: Any) -> Any:
        """The axes in the given order, or reversed."""
        order = tuple(axes[0]) if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes
        return apply("_npi_transpose", "transpose", self, axes=order or None, cls=_Symbol)

    def flatten(self, order: str = "C") -> Any:
        """All axes as one."""
        return self.reshape(-1, order=order)

    def __getattr__(self, name: str) -> Any:
        """Methods that are functions of `np`: sum, mean, clip, ..."""
        if not name.startswith("_") and (name in NUMPY or _spec.find(f"_npi_{name}") is not None):
            made = function(name)
            return lambda *args, **kwargs: made(self, *args, **kwargs)
        return super().__getattr__(name)

    def __getitem__(self, index: Any) -> Any:
        """A part of the array by numbers and slices; an output of several by name or number."""
        if isinstance(index, str) or len(self) > 1:
            return super().__getitem__(index)
        return _sliced(self, index if isinstance(index, tuple) else (index,))


SYMBOLS.add(_Symbol)


def _sliced(symbol: _Symbol, index: tuple[Any, ...]) -> Any:
    if not all(isinstance(each, (int, slice)) for each in index):
        raise MXNetIndexError(f"a symbol is indexed by integers and slices, got {index!r}")
    begin: list[Any] = []
    end: list[Any] = []
    step: list[Any] = []
    for each in index:
        if isinstance(each, slice):
            parts = each.start, each.stop, each.step
        else:
            parts = each, (each + 1 if each != -1 else None), 1
        for target, part in zip((begin, end, step), parts, strict=True):
            target.append(part)
    part = apply("slice", "slice", symbol, begin=begin, end=end, step=step, cls=_Symbol)
    if all(isinstance(each, slice) for each in index):
        return part
    # -3 takes an axis of length 1 away, -2 keeps one, -4 keeps all that follow.
    codes = [*(-2 if isinstance(each, slice) else -3 for each in index), -4]
    return apply("_npx_reshape", "reshape", part, newshape=codes, cls=_Symbol)


def _broadcast(name: str, left: Any, right: Any, **kwargs: Any) -> Any:
    """A function of two operands, one of which may be a number."""
    if is_symbol(left) and is_symbol(right):
        return _npi(name, name, (left, right), kwargs)
    if is_symbol(left):
        return _with_number(name, f"_npi_{name}_scalar", left, right, kwargs)
    turned = f"_npi_r{name}_scalar"
    swapped = {
        "greater": "less",
        "less": "greater",
        "greater_equal": "less_equal",
        "less_equal": "greater_equal",
    }
    if _spec.find(turned) is None:
        return _broadcast(swapped.get(name, name), right, left, **kwargs)
    return _with_number(name, turned, right, left, kwargs)


def _with_number(name: str, op: str, symbol: Any, number: Any, kwargs: dict[str, Any]) -> Any:
    if not isinstance(number, Number):
        raise MXNetTypeError(f"{name}: operands must be symbols and numbers, got {type(number).__name__}")
    hint = op.removeprefix("_npi_")
    whole = isinstance(number, int) and not isinstance(number, bool)
    scalar = float(number)  # type: ignore[arg-type]
    return apply(op, hint, symbol, scalar=scalar, is_int=whole, cls=_Symbol, **kwargs)


def _npi(name: str, hint: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    spec = _spec.find(f"_npi_{name}")
    if spec is None:
        raise AttributeError(f"module 'mxnp.symbol.numpy' has no function {name!r}")
    return call(spec, hint, args, kwargs, _Symbol)


@cache
def function(name: str) -> Callable[..., Any]:
    """The function `name` on symbols. AttributeError where `np` or MXNet's operators have none."""
    import mxnp.np as np

    rule = NUMPY.get(name)
    spec = _spec.find(f"_npi_{name}")
    if rule is not None:
        made = _ruled(name, rule, inspect.signature(getattr(np, name)))
    elif spec is not None and len(spec.inputs) == 2 and _spec.find(f"_npi_{name}_scalar") is not None:

        def made(x1: Any, x2: Any, **kwargs: Any) -> Any:
            return _broadcast(name, x1, x2, **kwargs)

    elif spec is not None and not name.startswith("_"):

        def made(*args: Any, **kwargs: Any) -> Any:
            return _npi(name, name, args, kwargs)

    else:
        raise AttributeError(f"module 'mxnp.symbol.numpy' has no function {name!r}")
    made.__name__ = made.__qualname__ = name
    made.__module__ = __name__
    made.__doc__ = f"`np.{name}` on symbols: the operator that MXNet 2 writes for it."
    return made


def _ruled(name: str, rule: str, signature: inspect.Signature) -> Callable[..., Any]:
    op, inputs, attributes = (part.split() for part in rule.split("|"))
    spec = _spec.find(op[0])
    assert spec is not None, op
    pairs = [(argument.split(":")[0], argument.split(":")[-1]) for argument in attributes]

    def made(*args: Any, **kwargs: Any) -> Any:
        options: dict[str, Any] = {key: kwargs.pop(key) for key in ("name", "attr") if key in kwargs}
        for ignored in ("ctx", "device", "out"):
            kwargs.pop(ignored, None)
        given = signature.bind(*args, **kwargs).arguments
        symbols: list[Any] = []
        for argument in inputs:
            value: Any = given.get(argument.lstrip("*"))
            symbols.extend(value if argument.startswith("*") else [value])
        if not all(is_symbol(each) for each in symbols):
            raise MXNetTypeError(f"sym.np.{name}: expected symbols for {', '.join(inputs)}")
        for argument, attribute in pairs:
            value = given.get(argument)
            if value is not None:
                options[attribute] = value
        return call(spec, name, tuple(symbols), options, _Symbol)

    return made


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """The parts of a symbol along `axis`: equal sections, or cut before the given indices."""
    whole = isinstance(indices_or_sections, int)
    parts = apply(
        "_npi_split",
        "split",
        ary,
        indices=() if whole else (0, *indices_or_sections),
        sections=indices_or_sections if whole else 0,
        axis=axis,
        squeeze_axis=False,
    )
    return [part.as_np_ndarray() for part in parts]


def where(condition: Any, x: Any, y: Any) -> Any:
    """`x` where the condition holds, else `y`; symbols or numbers."""
    if is_symbol(x) and is_symbol(y):
        return apply("_npi_where", "where", condition, x, y, cls=_Symbol)
    if is_symbol(y):
        return apply("_npi_where_lscalar", "where_lscalar", condition, y, scalar=float(x), cls=_Symbol)
    if is_symbol(x):
        return apply("_npi_where_rscalar", "where_rscalar", condition, x, scalar=float(y), cls=_Symbol)
    return apply("_npi_where_scalar2", "where_scalar2", condition, x=float(x), y=float(y), cls=_Symbol)


def full(shape: Any, fill_value: float, dtype: Any = None, **_: Any) -> Any:
    """An array of one value, which `_full` makes."""
    size = (shape,) if isinstance(shape, int) else tuple(shape)
    return apply("_full", "full", shape=size, value=float(fill_value), dtype=dtype or "float32", cls=_Symbol)


def zeros_like(a: Any, dtype: Any = None, **_: Any) -> Any:
    """Zeros in the shape of a symbol."""
    return function("full_like")(a, 0, dtype=dtype)


def ones_like(a: Any, dtype: Any = None, **_: Any) -> Any:
    """Ones in the shape of a symbol."""
    return function("full_like")(a, 1, dtype=dtype)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None, **_: Any) -> Any:
    """The numbers from `start` (0 where it stands alone) below `stop`."""
    low, high = (0, start) if stop is None else (start, stop)
    return apply(
        "_npi_arange", "arange", start=low, stop=high, step=step, dtype=dtype or "float32", cls=_Symbol
    )


def take(a: Any, indices: Any, axis: int | None = None, mode: str = "raise") -> Any:
    """The entries at `indices` along `axis`, of the flattened symbol without one."""
    if axis is None:
        a, axis = a.as_np_ndarray().reshape(-1), 0
    return apply("take", "take", a, indices, axis=axis, mode=mode, cls=_Symbol)


def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """The sum of products over `axes`: so many, or lists for both."""
    if isinstance(axes, int):
        return apply("_npi_tensordot_int_axes", "tensordot_int_axes", a, b, axes=axes, cls=_Symbol)
    first, second = ((each,) if isinstance(each, int) else tuple(each) for each in axes)
    options = {"a_axes_summed": first, "b_axes_summed": second}
    return apply("_npi_tensordot", "tensordot", a, b, cls=_Symbol, **options)


def einsum(subscripts: str, *operands: Any, optimize: Any = False) -> Any:
    """The sum of products that the subscripts describe."""
    return apply(
        "_npi_einsum", "einsum", *operands, subscripts=subscripts, optimize=int(bool(optimize)), cls=_Symbol
    )


def __getattr__(name: str) -> Any:
    """The function of `np` of this name, on symbols."""
    return function(name)
