"""Sorting, and what sorting finds: argsort, topk, unique, set operations."""

from __future__ import annotations

from typing import Any

import numpy as onp

from mxnp import _core
from mxnp._core import Op, ndarray
from mxnp.error import MXNetAxisError, MXNetNotImplementedError, MXNetTypeError, MXNetValueError

from ._table import as_array, normalize_axis, op

_SORT, _ARGSORT, _TOPK = op("sort"), op("argsort"), op("topk")
_CONCATENATE, _SCATTER_ADD = op("concatenate"), op("scatter_add")


def _flat(a: Any, axis: int | None) -> tuple[ndarray, int]:
    x = as_array(a)
    return (x.ravel(), 0) if axis is None else (x, axis)


def _check_kth(name: str, x: ndarray, axis: int, kth: Any) -> None:
    """The places of a partition are integers within the axis."""
    size = x.shape[axis] if x.ndim else 1
    for k in onp.asarray(kth.asnumpy() if isinstance(kth, ndarray) else kth).reshape(-1):
        if not isinstance(k, (int, onp.integer)):
            raise MXNetTypeError(f"{name}: Partition index must be integer, got {k!r}")
        if not -size <= k < size:
            raise MXNetValueError(f"{name}: kth(={k}) out of bounds ({size})")


def _ordered(kind: Op, a: Any, axis: int | None, order: Any, descending: bool) -> ndarray:
    if order is not None:
        raise MXNetNotImplementedError("sort: `order` is for structured dtypes, which mxnp does not have")
    x, axis = _flat(a, axis)
    if not x.ndim:
        normalize_axis(axis, 1)
        if kind is _SORT:
            raise MXNetAxisError(axis, 0)
        x, axis = x.reshape(1), 0  # as NumPy: the one place of a number
    return kind(x, axis=axis, is_ascend=not descending)


def sort(
    a: Any,
    axis: int | None = -1,
    kind: Any = None,
    order: Any = None,
    *,
    stable: bool | None = None,
    descending: bool = False,
) -> ndarray:
    """`a` sorted along `axis` (None: flattened), least first, NaN last; every kind of sort is stable here.

    >>> np.sort(np.array([3, 1, 2]))
    array([1., 2., 3.])
    """
    return _ordered(_SORT, a, axis, order, descending)


def argsort(
    a: Any,
    axis: int | None = -1,
    kind: Any = None,
    order: Any = None,
    *,
    stable: bool | None = None,
    descending: bool = False,
) -> ndarray:
    """The positions that sort `a` along `axis` (None: flattened), equal elements in their order; int64.

    >>> np.argsort(np.array([3, 1, 2]))
    array([1, 2, 0], dtype=int64)
    """
    return _ordered(_ARGSORT, a, axis, order, descending)


def _sort_method(
    self: ndarray,
    axis: int = -1,
    kind: Any = None,
    order: Any = None,
    *,
    stable: bool | None = None,
    descending: bool = False,
) -> None:
    """Sorts the array in place along `axis`.

    >>> x = np.array([2, 1]); x.sort(); x
    array([1., 2.])
    """
    self[...] = sort(self, axis, kind, order, descending=descending)


def partition(
    a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: Any = None
) -> ndarray:
    """`a` with the element at place `kth` where sorting puts it, lesser ones before; here: sorted.

    >>> np.partition(np.array([3, 1, 2]), 1)
    array([1., 2., 3.])
    """
    x, along = _flat(a, axis)
    result = sort(x, along)
    _check_kth("partition", x, along, kth)
    return result


def argpartition(
    a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: Any = None
) -> ndarray:
    """The positions that partition `a`; here: those that sort it.

    >>> np.argpartition(np.array([3, 1, 2]), 1)
    array([1, 2, 0], dtype=int64)
    """
    x, along = _flat(a, axis)
    result = argsort(x, along)
    _check_kth("argpartition", x, along, kth)
    return result


def topk(
    data: Any,
    axis: int | None = -1,
    k: int = 1,
    ret_typ: str = "indices",
    is_ascend: bool = False,
    dtype: Any = "float32",
) -> Any:
    """The `k` greatest (`is_ascend`: least) elements along `axis`, in order.

    `ret_typ`: 'indices' (of `dtype`), 'value', 'both' (a list of values and indices) or 'mask'.

    >>> npx.topk(np.array([3, 1, 2]), k=2)
    array([0., 2.])
    """
    x, axis = _flat(data, axis)
    found = _TOPK(x, axis=axis, k=k, ret_typ=ret_typ, is_ascend=is_ascend, dtype=_core.dtype(dtype))
    return list(found) if isinstance(found, tuple) else found


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """The different elements of the flattened `ar` in order; or its different parts along `axis`. Waits for `ar`.

    On request also: where each comes first, which one each element is, and how often each occurs (int64).

    >>> np.unique(np.array([3, 1, 3]))
    array([1., 3.])
    """
    x = as_array(ar)
    asked = (return_index, return_inverse, return_counts)
    _core.end_trace("has a result whose size depends on data")
    if axis is not None:
        found = onp.unique(x.asnumpy(), *asked, axis=axis, equal_nan=equal_nan)  # type: ignore[call-overload]
        parts = found if isinstance(found, tuple) else (found,)
        arrays = tuple(_core.array(part, None, x.device) for part in parts)
        return arrays if len(arrays) > 1 else arrays[0]
    flat = x.ravel()
    order = argsort(flat) if return_index or return_inverse else None
    ordered = _SORT(flat, axis=0) if order is None else flat.take(order, 0)
    starts = _starts(ordered, equal_nan)
    values = ordered.take(starts, 0)
    results = [values]
    if order is not None and return_index:
        results.append(order.take(starts, 0))
    if order is not None and return_inverse:
        results.append(_inverse(starts, order, x.shape))
    if return_counts:
        ends = _core.array([flat.size], "int64", flat.device)
        results.append(_CONCATENATE(starts, ends, axis=0)[1:] - starts)
    return tuple(results) if len(results) > 1 else values


def _starts(ordered: ndarray, equal_nan: bool) -> ndarray:
    """Where each new value begins in a sorted array."""
    from .index import flatnonzero

    if ordered.size == 0:
        return _core.array(onp.zeros(0, "int64"), None, ordered.device)
    later, earlier = ordered[1:], ordered[:-1]
    changes = later != earlier
    if equal_nan and ordered.dtype.kind not in "iub":
        # NaN sorts last, so a NaN after a NaN is the same value again.
        changes = changes & (earlier == earlier)
    first = _core.array([True], "bool", ordered.device)
    return flatnonzero(_CONCATENATE(first, changes, axis=0))


def _inverse(starts: ndarray, order: ndarray, shape: tuple[int, ...]) -> ndarray:
    """The number of its value for each element."""
    marks = _SCATTER_ADD(starts * 0 + 1, starts, shape=order.shape)
    ranks = marks.cumsum(0) - 1
    return ranks.take(argsort(order), 0).reshape(shape)


def unique_values(x: Any) -> ndarray:
    """The different elements of `x`, in order; waits for `x`.

    >>> np.unique_values(np.array([2, 1, 2]))
    array([1., 2.])
    """
    return unique(x, equal_nan=False)


def unique_inverse(x: Any) -> tuple[ndarray, ndarray]:
    """The different elements of `x`, and which one each element is.

    >>> np.unique_inverse(np.array([2, 1, 2]))[1]
    array([1, 0, 1], dtype=int64)
    """
    return unique(x, return_inverse=True, equal_nan=False)


def unique_counts(x: Any) -> tuple[ndarray, ndarray]:
    """The different elements of `x`, and how often each occurs.

    >>> np.unique_counts(np.array([2, 1, 2]))[1]
    array([1, 2], dtype=int64)
    """
    return unique(x, return_counts=True, equal_nan=False)


def unique_all(x: Any) -> tuple[ndarray, ...]:
    """The different elements of `x`, their first places, which one each element is, and how often each occurs.

    >>> len(np.unique_all(np.array([2, 1, 2])))
    4
    """
    return unique(x, True, True, True, equal_nan=False)


def isin(element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False) -> ndarray:
    """Whether each of `element` is among `test_elements`.

    >>> np.isin(np.array([1, 2]), np.array([2, 3]))
    array([False,  True])
    """
    from .index import searchsorted

    x, wanted = as_array(element), as_array(test_elements).ravel()
    if wanted.size == 0:
        found = x != x
    else:
        ordered = sort(wanted)
        place = searchsorted(ordered, x).clip(0, wanted.size - 1)
        found = ordered.take(place, 0) == x
    return found == False if invert else found  # noqa: E712 an array's ==


def in1d(ar1: Any, ar2: Any, assume_unique: bool = False, invert: bool = False) -> ndarray:
    """`isin` of the flattened `ar1`.

    >>> np.in1d(np.array([[1, 2]]), np.array([2]))
    array([False,  True])
    """
    return isin(as_array(ar1).ravel(), ar2, assume_unique, invert)


def union1d(ar1: Any, ar2: Any) -> ndarray:
    """The different elements of both arrays, in order.

    >>> np.union1d(np.array([1, 2]), np.array([2, 3]))
    array([1., 2., 3.])
    """
    return unique(_CONCATENATE(as_array(ar1).ravel(), as_array(ar2).ravel(), axis=0))


def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> ndarray:
    """The different elements that are in both arrays, in order.

    >>> np.intersect1d(np.array([1, 2]), np.array([2, 3]))
    array([2.])
    """
    x = unique(ar1)
    return x[isin(x, ar2)]


def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> ndarray:
    """The different elements of `ar1` that are not in `ar2`, in order.

    >>> np.setdiff1d(np.array([1, 2]), np.array([2, 3]))
    array([1.])
    """
    x = unique(ar1)
    return x[isin(x, ar2, invert=True)]


METHODS = (argsort, topk)
SPECIAL_METHODS = {"sort": _sort_method}
