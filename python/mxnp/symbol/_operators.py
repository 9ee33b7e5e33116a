"""Operators and methods that Symbol has in common with 1.x's arrays: `a + b`, `a.sum()`, `a.reshape(...)`."""

from __future__ import annotations

from numbers import Number
from typing import Any

from . import _spec
from ._compose import call, is_symbol

# The methods of 1.x's symbols that are operators of the same name.
METHODS = frozenset(
    (
        "abs",
        "arccos",
        "arccosh",
        "arcsin",
        "arcsinh",
        "arctan",
        "arctanh",
        "argmax",
        "argmax_channel",
        "argmin",
        "argsort",
        "broadcast_axes",
        "broadcast_like",
        "broadcast_to",
        "cbrt",
        "ceil",
        "clip",
        "cos",
        "cosh",
        "degrees",
        "depth_to_space",
        "diag",
        "exp",
        "expand_dims",
        "expm1",
        "fix",
        "flatten",
        "flip",
        "floor",
        "log",
        "log10",
        "log1p",
        "log2",
        "log_softmax",
        "max",
        "mean",
        "min",
        "nanprod",
        "nansum",
        "norm",
        "one_hot",
        "ones_like",
        "pad",
        "pick",
        "prod",
        "radians",
        "rcbrt",
        "reciprocal",
        "relu",
        "repeat",
        "reshape_like",
        "rint",
        "round",
        "rsqrt",
        "shape_array",
        "sigmoid",
        "sign",
        "sin",
        "sinh",
        "size_array",
        "slice",
        "slice_axis",
        "slice_like",
        "softmax",
        "softmin",
        "sort",
        "space_to_depth",
        "split",
        "sqrt",
        "square",
        "squeeze",
        "sum",
        "swapaxes",
        "take",
        "tan",
        "tanh",
        "tile",
        "topk",
        "transpose",
        "trunc",
        "zeros_like",
    )
)
# Methods under which symbols have no value yet.
_VALUES = frozenset(
    (
        "asnumpy",
        "asscalar",
        "wait_to_read",
        "copy",
        "copyto",
        "as_in_context",
        "as_in_ctx",
        "detach",
        "backward",
        "grad",
    )
)


def apply(op: str, hint: str, *args: Any, cls: type | None = None, **kwargs: Any) -> Any:
    """A symbol of the operator `op`, named after `hint` where no name is given."""
    spec = _spec.find(op)
    assert spec is not None, op
    return call(spec, hint, args, kwargs, cls)


def _binary(
    self: Any, other: Any, tensor: tuple[str, str], scalar: tuple[str, str], turned: bool = False
) -> Any:
    if is_symbol(other):
        first, second = (other, self) if turned else (self, other)
        return apply(tensor[0], tensor[1], first, second, cls=type(self))
    if isinstance(other, Number):
        return apply(scalar[0], scalar[1], self, scalar=other, cls=type(self))
    return NotImplemented


class Operators:
    """The base of Symbol; equal shapes are expected where two symbols meet, as 1.x does."""

    __slots__ = ()
    _entries: list[Any]

    def __add__(self, other: Any) -> Any:
        return _binary(self, other, ("elemwise_add", "_plus"), ("_plus_scalar", "_plusscalar"))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return _binary(self, other, ("elemwise_sub", "_minus"), ("_minus_scalar", "_minusscalar"))

    def __rsub__(self, other: Any) -> Any:
        return _binary(self, other, ("elemwise_sub", "_minus"), ("_rminus_scalar", "_rminusscalar"), True)

    def __mul__(self, other: Any) -> Any:
        return _binary(self, other, ("elemwise_mul", "_mul"), ("_mul_scalar", "_mulscalar"))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return _binary(self, other, ("elemwise_div", "_div"), ("_div_scalar", "_divscalar"))

    def __rtruediv__(self, other: Any) -> Any:
        return _binary(self, other, ("elemwise_div", "_div"), ("_rdiv_scalar", "_rdivscalar"), True)

    def __mod__(self, other: Any) -> Any:
        return _binary(self, other, ("_mod", "_mod"), ("_mod_scalar", "_modscalar"))

    def __rmod__(self, other: Any) -> Any:
        return _binary(self, other, ("_mod", "_mod"), ("_rmod_scalar", "_rmodscalar"), True)

    def __pow__(self, other: Any) -> Any:
        return _binary(self, other, ("_power", "_power"), ("_power_scalar", "_powerscalar"))

    def __rpow__(self, other: Any) -> Any:
        return _binary(self, other, ("_power", "_power"), ("_rpower_scalar", "_rpower_scalar"), True)

    def __neg__(self) -> Any:
        return self * -1.0

    def __abs__(self) -> Any:
        return apply("abs", "abs", self, cls=type(self))

    def __eq__(self, other: object) -> Any:
        return _binary(self, other, ("_equal", "_equal"), ("_equal_scalar", "_equal_scalar"))

    def __ne__(self, other: object) -> Any:
        return _binary(self, other, ("_not_equal", "_not_equal"), ("_not_equal_scalar", "_not_equal_scalar"))

    def __gt__(self, other: Any) -> Any:
        return _binary(self, other, ("_greater", "_greater"), ("_greater_scalar", "_greater_scalar"))

    def __ge__(self, other: Any) -> Any:
        return _binary(
            self,
            other,
            ("_greater_equal", "_greater_equal"),
            ("_greater_equal_scalar", "_greater_equal_scalar"),
        )

    def __lt__(self, other: Any) -> Any:
        return _binary(self, other, ("_lesser", "_lesser"), ("_lesser_scalar", "_lesser_scalar"))

    def __le__(self, other: Any) -> Any:
        return _binary(
            self, other, ("_lesser_equal", "_lesser_equal"), ("_lesser_equal_scalar", "_lesser_equal_scalar")
        )

    __hash__ = None  # type: ignore[assignment]  # equality is an operator, as in MXNet

    def reshape(self, *shape: Any, **kwargs: Any) -> Any:
        """The array in another shape, 1.x's codes (0, -1 to -4) included."""
        if shape:
            kwargs["shape"] = tuple(shape[0]) if isinstance(shape[0], (tuple, list)) else shape
        return apply("Reshape", "reshape", self, cls=type(self), **kwargs)

    def astype(self, dtype: Any, **_: Any) -> Any:
        """The array in another dtype."""
        return apply("Cast", "cast", self, dtype=dtype, cls=type(self))

    def __getattr__(self, name: str) -> Any:
        """Methods that are operators."""
        if name in METHODS:
            spec = _spec.find(name)
            if spec is not None:
                return lambda *args, **kwargs: call(spec, name, (self, *args), kwargs, type(self))
        if name in _VALUES:
            raise AttributeError(f"symbol.{name}: a symbol has no value before it is bound to arrays")
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
