"""The methods of arrays: attached from the rows of the op tables; and NumPy's functions on mxnp's arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _ops
from .._core import Device, ndarray
from .._ops import arith, exp_log, index, linalg, nn_act, rounding, shape, trig, ufunc_methods
from .._ops._table import normalize_axis
from ..error import MXNetTypeError, MXNetValueError


def copyto(self: ndarray, other: ndarray | Device) -> ndarray:
    """Writes the array into `other`, or copies it to a device; gives the copy.

    >>> x, y = np.ones(2), np.zeros(2)
    >>> x.copyto(y)
    array([1., 1.])
    """
    if isinstance(other, Device):
        return self.copy() if other == self.device else self.to_device(other)
    if not isinstance(other, ndarray):
        raise MXNetTypeError(f"copyto: expected an array or a device, got {type(other).__name__}")
    if other is not self:
        other[...] = self if other.device == self.device else self.to_device(other.device)
    return other


def fill(self: ndarray, value: Any) -> None:
    """Sets every element to `value`, in place.

    >>> x = np.zeros(2); x.fill(3); x
    array([3., 3.])
    """
    self[...] = value


def as_np_ndarray(self: ndarray) -> ndarray:
    """The array itself: mxnp has one kind of array.

    >>> x = np.ones(1)
    >>> x.as_np_ndarray() is x
    True
    """
    return self


def as_nd_ndarray(self: ndarray) -> ndarray:
    """The array itself: mxnp has one kind of array.

    >>> x = np.ones(1)
    >>> x.as_nd_ndarray() is x
    True
    """
    return self


def tostype(self: ndarray, stype: str) -> ndarray:
    """The array itself; sparse storage has not arrived.

    >>> np.ones(1).tostype('default')
    array([1.])
    """
    if stype != "default":
        raise MXNetValueError(f"tostype: only stype 'default' exists, got {stype!r}")
    return self


def reshape_like(self: ndarray, rhs: ndarray) -> ndarray:
    """The array in the shape of `rhs`.

    >>> np.ones(4).reshape_like(np.ones((2, 2))).shape
    (2, 2)
    """
    return shape.reshape_to(self, rhs.shape)


def broadcast_like(self: ndarray, rhs: ndarray) -> ndarray:
    """The array broadcast to the shape of `rhs`.

    >>> np.ones(2).broadcast_like(np.ones((2, 2))).shape
    (2, 2)
    """
    return shape.broadcast_to(self, rhs.shape)


def slice_axis(self: ndarray, axis: int, begin: int, end: int | None) -> ndarray:
    """The part from `begin` to `end` along `axis`.

    >>> np.arange(4).slice_axis(0, 1, 3)
    array([1., 2.])
    """
    return self[(slice(None),) * normalize_axis(axis, self.ndim) + (slice(begin, end),)]


def norm(self: ndarray, ord: Any = None, axis: Any = None, keepdims: bool = False) -> ndarray:
    """The norm; see `np.linalg.norm`.

    >>> np.array([3, 4]).norm()
    array(5.)
    """
    return linalg.norm(self, ord, axis, keepdims)


def __round__(self: ndarray, ndigits: int | None = None) -> ndarray:  # noqa: N807 it becomes a method
    """`round(x, 2)`; see `np.round`.

    >>> round(np.array(2.567), 1)
    array(2.6)
    """
    return rounding.round(self, 0 if ndigits is None else ndigits)


def compress(self: ndarray, condition: Any, axis: int | None = None, out: ndarray | None = None) -> ndarray:
    """The entries along `axis` where `condition` is true; see `np.compress`.

    >>> np.array([1, 2, 3]).compress([True, False, True])
    array([1., 3.])
    """
    return index.compress(condition, self, axis, out)


def conj(self: ndarray) -> ndarray:
    """The complex conjugate.

    >>> np.ones(1).conj()
    array([1.])
    """
    return linalg.conjugate(self)


_OWN = (
    copyto,
    fill,
    as_np_ndarray,
    as_nd_ndarray,
    tostype,
    reshape_like,
    broadcast_like,
    slice_axis,
    norm,
    compress,
    conj,
    __round__,
)
# Functions of one array that 1.x's programs call as methods: `x.exp()`.
_UNARY: tuple[tuple[Any, str], ...] = (
    (arith, "absolute negative reciprocal sign square"),
    (exp_log, "cbrt exp expm1 log log10 log1p log2 sqrt"),
    (nn_act, "relu sigmoid"),
    (rounding, "ceil fix floor rint trunc"),
    (trig, "arccos arccosh arcsin arcsinh arctan arctanh cos cosh degrees radians sin sinh tan tanh"),
)


def _method(function: Any) -> Callable[..., ndarray]:
    """A native function, which does not bind, as a method."""

    def method(self: ndarray, out: ndarray | None = None, **kwargs: Any) -> ndarray:
        return function(self, **kwargs) if out is None else function(self, out=out, **kwargs)

    method.__name__ = method.__qualname__ = function.__name__
    method.__doc__ = function.__doc__
    return method


def _attach() -> None:
    for family in list(vars(_ops).values()):  # every family that `np` has imported
        for function in getattr(family, "METHODS", ()):
            setattr(ndarray, function.__name__, function)
        for name, function in getattr(family, "SPECIAL_METHODS", {}).items():
            setattr(ndarray, name, function)
    for function in _OWN:
        setattr(ndarray, function.__name__, function)
    for family, names in _UNARY:
        for name in names.split():
            setattr(ndarray, name, _method(getattr(family, name)))
    own = (("abs", _method(arith.absolute)), ("mT", property(shape.matrix_transpose)), ("stype", "default"))
    for name, value in own:
        setattr(ndarray, name, value)


_attach()
ufunc_methods.attach()
