"""Reductions over axes: sum, mean, max, argmax and what is composed of them."""

from __future__ import annotations

import builtins
from typing import Any

from mxnp._core import ndarray
from mxnp.error import MXNetTypeError, MXNetValueError

from ._table import Axis, as_array, deliver, normalize_axes, op
from .arith import add as _add
from .arith import maximum, minimum, multiply

_SUM, _PROD, _MAX, _MIN = op("sum"), op("prod"), op("max"), op("min")
_MEAN, _VAR, _STD = op("mean"), op("var"), op("std")
_ARGMAX, _ARGMIN, _ANY, _ALL = op("argmax"), op("argmin"), op("any"), op("all")
_WHERE, _COUNT = op("where"), op("count_nonzero")
_FULL, _SORT = op("full"), op("sort")


def _masked(a: Any, where: Any, value: Any) -> Any:
    """`a` with `value` where the mask does not hold."""
    return a if where is None or where is True else _WHERE(where, a, value)


def sum(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: ndarray | None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> ndarray:
    """The sum over `axis` (None: all axes); of integers and bools an int64 or uint64.

    `initial` is added; elements where `where` is false are left out.

    >>> np.sum(np.array([[1, 2], [3, 4]]), axis=0)
    array([4., 6.])
    """
    a = _masked(a, where, 0)
    if initial is None:
        return _SUM(a, axis=axis, keepdims=keepdims, dtype=dtype, out=out)
    return deliver(_add(_SUM(a, axis=axis, keepdims=keepdims, dtype=dtype), initial), out)


def prod(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: ndarray | None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> ndarray:
    """The product over `axis` (None: all axes); of integers and bools an int64 or uint64.

    >>> np.prod(np.array([2, 3]))
    array(6.)
    """
    a = _masked(a, where, 1)
    if initial is None:
        return _PROD(a, axis=axis, keepdims=keepdims, dtype=dtype, out=out)
    return deliver(multiply(_PROD(a, axis=axis, keepdims=keepdims, dtype=dtype), initial), out)


def _extreme(name: str, a: Any, axis: Axis, out: Any, keepdims: bool, initial: Any, where: Any) -> ndarray:
    reduction, pair = (_MAX, maximum) if name == "maximum" else (_MIN, minimum)
    if where is not None and where is not True:
        if initial is None:
            raise MXNetValueError(
                f"reduction operation '{name}' does not have an identity, "
                "so to use a where mask one has to specify 'initial'"
            )
        a = _WHERE(where, a, initial)
    if initial is None:
        return reduction(a, axis=axis, keepdims=keepdims, out=out)
    x = as_array(a)
    axes = normalize_axes(axis, x.ndim)
    if builtins.any(x.shape[i] == 0 for i in axes):
        shape = [1 if i in axes else n for i, n in enumerate(x.shape) if keepdims or i not in axes]
        return deliver(_FULL(initial, shape=shape, dtype=x.dtype, device=x.device), out)
    return deliver(pair(reduction(x, axis=axis, keepdims=keepdims), initial), out)


def max(
    a: Any,
    axis: Axis = None,
    out: ndarray | None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> ndarray:
    """The greatest element over `axis` (None: all axes); NaN where there is one. Ties share the gradient: 1 to each.

    Raises ValueError for no elements without `initial`.

    >>> np.max(np.array([[1, 2], [3, 4]]), axis=1)
    array([2., 4.])
    """
    return _extreme("maximum", a, axis, out, keepdims, initial, where)


def min(
    a: Any,
    axis: Axis = None,
    out: ndarray | None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> ndarray:
    """The least element over `axis` (None: all axes); NaN where there is one. Ties share the gradient: 1 to each.

    Raises ValueError for no elements without `initial`.

    >>> np.min(np.array([[1, 2], [3, 4]]), axis=1)
    array([1., 3.])
    """
    return _extreme("minimum", a, axis, out, keepdims, initial, where)


amax, amin = max, min


def ptp(a: Any, axis: Axis = None, out: ndarray | None = None, keepdims: bool = False) -> ndarray:
    """The greatest element minus the least, over `axis`.

    >>> np.ptp(np.array([1, 5, 3]))
    array(4.)
    """
    return deliver(max(a, axis, None, keepdims) - min(a, axis, None, keepdims), out)


def _count(a: Any, axis: Axis, keepdims: bool, where: Any) -> ndarray:
    x = as_array(a)
    return _SUM(as_array(where).broadcast_to(x.shape), axis=axis, keepdims=keepdims)


def mean(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: ndarray | None = None,
    keepdims: bool = False,
    *,
    where: Any = None,
) -> ndarray:
    """The mean over `axis` (None: all axes); of integers the default float. NaN for no elements.

    >>> np.mean(np.array([[1, 2], [3, 4]]), axis=0)
    array([2., 3.])
    """
    if where is None or where is True:
        return _MEAN(a, axis=axis, keepdims=keepdims, dtype=dtype, out=out)
    total = sum(a, axis, dtype, None, keepdims, None, where)
    return deliver(_over(total, _count(a, axis, keepdims, where)), out)


def _over(total: ndarray, count: ndarray) -> ndarray:
    """`total / count` in the dtype of `total`, where that is a float: the count is a whole number."""
    result = total / count
    return result if total.dtype.kind in "iub" else result.astype(total.dtype, copy=False)


def _spread(
    root: bool, a: Any, axis: Axis, dtype: Any, out: Any, ddof: Any, keepdims: bool, where: Any
) -> ndarray:
    if where is None or where is True:
        return (_STD if root else _VAR)(a, axis=axis, keepdims=keepdims, dtype=dtype, ddof=ddof, out=out)
    x = as_array(a)
    if x.dtype.kind == "c":
        name = "std" if root else "var"
        raise MXNetTypeError(f"{name}: dtype {x.dtype} is not supported\nhint: take .real or abs() first")
    gap = x - mean(a, axis, dtype, None, True, where=where)
    total = sum(gap * gap, axis, dtype, None, keepdims, None, where)
    result = _over(total, _count(a, axis, keepdims, where) - ddof)
    if not root:
        return deliver(result, out)
    # The root's slope at 0 is infinite: 0 goes round it, so that its gradient is 0, as that of `std` without `where`.
    is_zero = result == 0
    return deliver(_WHERE(is_zero, 0, _WHERE(is_zero, 1, result) ** 0.5), out)


def _freedom(ddof: float, correction: Any) -> float:
    if correction is None:
        return ddof
    if ddof != 0:
        raise MXNetValueError("ddof and correction can't be provided simultaneously.")
    return correction


def std(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: ndarray | None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    correction: Any = None,
) -> ndarray:
    """The standard deviation over `axis`: the root of `var`.

    >>> np.std(np.array([1, 3]))
    array(1.)
    """
    return _spread(True, a, axis, dtype, out, _freedom(ddof, correction), keepdims, where)


def var(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: ndarray | None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    correction: Any = None,
) -> ndarray:
    """The variance over `axis`: squared distances from the mean, summed and divided by (count - ddof).

    >>> np.var(np.array([1, 3]))
    array(1.)
    """
    return _spread(False, a, axis, dtype, out, _freedom(ddof, correction), keepdims, where)


def argmax(a: Any, axis: int | None = None, out: ndarray | None = None, *, keepdims: bool = False) -> ndarray:
    """The position of the greatest element along `axis` (None: in the flattened array), the first of several; int64.

    >>> np.argmax(np.array([1, 5, 3]))
    array(1, dtype=int64)
    """
    return _ARGMAX(a, axis=axis, keepdims=keepdims, out=out)


def argmin(a: Any, axis: int | None = None, out: ndarray | None = None, *, keepdims: bool = False) -> ndarray:
    """The position of the least element along `axis` (None: in the flattened array), the first of several; int64.

    >>> np.argmin(np.array([4, 1, 3]))
    array(1, dtype=int64)
    """
    return _ARGMIN(a, axis=axis, keepdims=keepdims, out=out)


def any(
    a: Any, axis: Axis = None, out: ndarray | None = None, keepdims: bool = False, *, where: Any = None
) -> ndarray:
    """Whether an element is true, over `axis` (None: all axes).

    >>> np.any(np.array([0, 1]))
    array(True)
    """
    return _ANY(_masked(a, where, False), axis=axis, keepdims=keepdims, out=out)


def all(
    a: Any, axis: Axis = None, out: ndarray | None = None, keepdims: bool = False, *, where: Any = None
) -> ndarray:
    """Whether every element is true, over `axis` (None: all axes).

    >>> np.all(np.array([0, 1]))
    array(False)
    """
    return _ALL(_masked(a, where, True), axis=axis, keepdims=keepdims, out=out)


def count_nonzero(a: Any, axis: Axis = None, *, keepdims: bool = False) -> ndarray:
    """How many elements are not zero, over `axis` (None: all axes); int64.

    >>> np.count_nonzero(np.array([0, 3, 4]))
    array(2, dtype=int64)
    """
    if axis is None and not keepdims:
        return _COUNT(a)
    return _SUM(as_array(a) != 0, axis=axis, keepdims=keepdims)


METHODS = (sum, prod, max, min, ptp, mean, std, var, argmax, argmin, any, all)
