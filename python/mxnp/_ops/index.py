"""Choosing elements: where, take, pick, one_hot, nonzero, diagonals, triangles, masks of sequences."""

from __future__ import annotations

import math
from typing import Any

import numpy as onp

from mxnp import _core
from mxnp._core import ndarray
from mxnp.error import MXNetTypeError, MXNetValueError

from ._table import as_array, deliver, look, normalize_axis, op, shape_of

_WHERE, _TAKE, _TAKE_ALONG, _PICK = op("where"), op("take"), op("take_along_axis"), op("pick")
_ONE_HOT, _COUNT, _NONZERO, _SEARCH = op("one_hot"), op("count_nonzero"), op("nonzero"), op("searchsorted")
_SCATTER_ADD, _INDEX_GET, _FULL = op("scatter_add"), op("index_get"), op("full")
_INDEX_ASSIGN = op("index_assign")


def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    """Elements of `x` where `condition` is true, of `y` elsewhere; with `condition` alone, as `nonzero`.

    The three broadcast. The branch not taken gives no NaN to the gradient.

    >>> np.where(np.array([True, False]), 1, 2)
    array([1., 2.])
    """
    if x is None and y is None:
        return nonzero(condition)
    if x is None or y is None:
        raise MXNetValueError("either both or neither of x and y should be given")
    if not hasattr(x, "dtype") and not hasattr(y, "dtype"):
        x = as_array(x)  # two Python numbers: data without a dtype, as in np.array
    return _WHERE(condition, x, y)


def take(a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str = "raise") -> ndarray:
    """The entries `indices` of `a` along `axis` (None: of the flattened array).

    Negative indices count from the end. An index out of range raises IndexError, unless `mode` is 'clip' or 'wrap'.

    >>> np.take(np.array([10, 20, 30]), np.array([0, 2], dtype='int64'))
    array([10., 30.])
    """
    if isinstance(out, str):  # MXNet's fourth argument is the mode
        out, mode = None, out
    x = as_array(a)
    x, axis = (x.ravel(), 0) if axis is None else (x, axis)
    return _TAKE(x, indices, axis=axis, mode=mode, out=out)


def take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> ndarray:
    """For each position of the other axes, the entries `indices` along `axis`.

    >>> x = np.array([[3, 1], [2, 4]])
    >>> np.take_along_axis(x, np.argsort(x, 1), 1)
    array([[1., 3.],
           [2., 4.]])
    """
    x = as_array(arr)
    x, axis = (x.ravel(), 0) if axis is None else (x, axis)
    index = as_array(indices)
    if index.ndim != x.ndim:
        raise MXNetValueError("`indices` and `arr` must have the same number of dimensions")
    return _TAKE_ALONG(x, index, axis=normalize_axis(axis, x.ndim))


def pick(data: Any, index: Any, axis: int = -1, mode: str = "clip", keepdims: bool = False) -> ndarray:
    """One element of `data` along `axis` for each position of the other axes; indices out of range by `mode`.

    `mode`: 'clip' to the nearest, 'wrap' around, 'raise' IndexError, or 'strict': negative ones raise too.

    >>> npx.pick(np.array([[1, 2], [3, 4]]), np.array([0, 1]))
    array([1., 4.])
    """
    return _PICK(data, index, axis=axis, mode=mode, keepdims=keepdims)


def one_hot(
    data: Any, depth: int | None = None, on_value: float = 1.0, off_value: float = 0.0, dtype: Any = "float32"
) -> ndarray:
    """A row of `depth` values `off_value` with `on_value` at the index, for each index; all off where out of range.

    >>> npx.one_hot(np.array([0, 2]), 3)
    array([[1., 0., 0.],
           [0., 0., 1.]])
    """
    if depth is None:
        raise MXNetTypeError("one_hot() missing 1 required positional argument: 'depth'")
    return _ONE_HOT(
        data, depth=depth, on_value=float(on_value), off_value=float(off_value), dtype=_core.dtype(dtype)
    )


def _positions(a: Any) -> ndarray:
    """The index of each element that is not zero, one row each; waits for the count."""
    x = as_array(a)
    _core.end_trace("has a result whose size depends on data")
    return _NONZERO(x, count=int(_COUNT(x)))


def nonzero(a: Any) -> tuple[ndarray, ...]:
    """The indices of the elements that are not zero, one int64 array for each axis; waits for `a`.

    >>> np.nonzero(np.array([0, 3, 4]))
    (array([1, 2], dtype=int64),)
    """
    x = as_array(a)
    if x.ndim == 0:
        raise MXNetValueError(
            "Calling nonzero on 0d arrays is not allowed. Use np.atleast_1d(scalar).nonzero() instead."
        )
    rows = _positions(x)
    return tuple(rows[:, i] for i in range(x.ndim))


def argwhere(a: Any) -> ndarray:
    """The index of each element that is not zero, one row each; waits for `a`.

    >>> np.argwhere(np.array([[0, 1]]))
    array([[0, 1]], dtype=int64)
    """
    return _positions(a)


def flatnonzero(a: Any) -> ndarray:
    """The indices of the elements of the flattened array that are not zero; waits for `a`.

    >>> np.flatnonzero(np.array([0, 3, 4]))
    array([1, 2], dtype=int64)
    """
    return nonzero(as_array(a).ravel())[0]


def extract(condition: Any, arr: Any) -> ndarray:
    """The elements of the flattened array where `condition` is true; waits for it.

    >>> np.extract(np.array([True, False]), np.array([1, 2]))
    array([1.])
    """
    return _TAKE(as_array(arr).ravel(), flatnonzero(condition), axis=0)


def compress(condition: Any, a: Any, axis: int | None = None, out: ndarray | None = None) -> ndarray:
    """The entries along `axis` (None: of the flattened array) where the one-dimensional `condition` is true.

    >>> np.compress([False, True], np.array([[1, 2], [3, 4]]), axis=0)
    array([[3., 4.]])
    """
    mask = as_array(condition)
    if mask.ndim != 1:
        raise MXNetValueError("condition must be a 1-d array")
    return take(a, flatnonzero(mask), axis, out)


def select(condlist: Any, choicelist: Any, default: Any = 0) -> ndarray:
    """For each element the choice of the first condition that holds, else `default`.

    >>> np.select([np.array([True, False])], [np.array([1, 2])], 9)
    array([1., 9.])
    """
    if len(condlist) != len(choicelist):
        raise MXNetValueError("list of cases must be same length as list of conditions")
    if not len(condlist):
        raise MXNetValueError("select with an empty condition list is not possible")
    result = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        result = _WHERE(condition, choice, result)
    return result


def choose(a: Any, choices: Any, out: ndarray | None = None, mode: str = "raise") -> ndarray:
    """For each index in `a`, the element of that choice at its position.

    >>> np.choose(np.array([1, 0], dtype='int64'), [np.array([1, 2]), np.array([3, 4])])
    array([3., 2.])
    """
    from .join import stack
    from .shape import broadcast_arrays

    index, *arrays = broadcast_arrays(as_array(a), *choices)
    return deliver(take_checked(stack(arrays), index, mode), out)


def take_checked(stacked: ndarray, index: ndarray, mode: str) -> ndarray:
    """The entry `index` along the first axis at each position of the others."""
    return _PICK(stacked, index, axis=0, mode=mode, caller="choose")


def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> ndarray:
    """Where each of `v` would go into the sorted one-dimensional `a` ('left': before equal ones, 'right': after).

    >>> np.searchsorted(np.array([1, 2, 3]), np.array([2]))
    array([1], dtype=int64)
    """
    x = as_array(a) if sorter is None else take(a, sorter)
    return _SEARCH(x, v, side=side)


def digitize(x: Any, bins: Any, right: bool = False) -> ndarray:
    """The bin of each element of `x`: how many of the increasing (or decreasing) `bins` are not above it.

    >>> np.digitize(np.array([0.5, 2.5]), np.array([1, 2, 3]))
    array([0, 2], dtype=int64)
    """
    edges = as_array(bins)
    if edges.ndim != 1:
        depth = "small" if not edges.ndim else "large"
        raise MXNetValueError(
            f"digitize: object of too {depth} depth for desired array: bins must have one axis"
        )
    if "c" in (edges.dtype.kind, as_array(x).dtype.kind):
        raise MXNetTypeError("digitize: x and bins may not be complex")
    values = look(edges)
    if (values[1:] < values[:-1]).any():
        if (values[1:] > values[:-1]).any():
            raise MXNetValueError("bins must be monotonically increasing or decreasing")
        return edges.size - searchsorted(edges[::-1], x, "right" if right else "left")
    return searchsorted(edges, x, "left" if right else "right")


def bincount(x: Any, weights: Any = None, minlength: int = 0) -> ndarray:
    """How often each integer occurs in the one-dimensional `x`, or the sum of its weights; waits for `x`.

    >>> np.bincount(np.array([0, 2, 2], dtype='int64'))
    array([1, 0, 2], dtype=int64)
    """
    index = as_array(x)
    if index.ndim != 1:
        raise MXNetValueError(
            "object of too small depth for desired array"
            if not index.ndim
            else "object too deep for desired array"
        )
    if minlength < 0:
        raise MXNetValueError("'minlength' must not be negative")
    if index.dtype.kind not in "iub":
        index = index.astype("int64")
    length = max(int(index.max()) + 1, minlength) if index.size else minlength
    if index.size and int(index.min()) < 0:
        raise MXNetValueError("'list' argument must have no negative elements")
    if weights is None:
        counted = _FULL(1, shape=(), dtype="int64", device=index.device)
    else:
        counted = as_array(weights)
        if counted.shape != index.shape:
            raise MXNetValueError("The weights and list don't have the same length.")
    return _SCATTER_ADD(counted, index, shape=(length,))


def _offset_indices(rows: int, columns: int, offset: int) -> tuple[onp.ndarray, onp.ndarray]:
    count = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    steps = onp.arange(count)
    return steps - min(offset, 0), steps + max(offset, 0)


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> ndarray:
    """The elements a[i, i + offset] of the matrices along two axes; the diagonal becomes the last axis.

    >>> np.diagonal(np.array([[1, 2], [3, 4]]))
    array([1., 4.])
    """
    x = as_array(a)
    if x.ndim < 2:
        raise MXNetValueError("diag requires an array of at least two dimensions")
    i, j = normalize_axis(axis1, x.ndim, "axis1"), normalize_axis(axis2, x.ndim, "axis2")
    if i == j:
        raise MXNetValueError("axis1 and axis2 cannot be the same")
    moved = x.transpose([i, j, *(k for k in range(x.ndim) if k not in (i, j))])
    found = _INDEX_GET(moved, *_offset_indices(moved.shape[0], moved.shape[1], offset), axis=0)
    return found.transpose([*range(1, found.ndim), 0])


def diag(v: Any, k: int = 0) -> ndarray:
    """The diagonal `k` of a matrix, or the matrix with a vector on diagonal `k`.

    >>> np.diag(np.array([1, 2]))
    array([[1., 0.],
           [0., 2.]])
    """
    x = as_array(v)
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise MXNetValueError("Input must be 1- or 2-d.")
    n = x.size + abs(k)
    rows, columns = _offset_indices(n, n, k)
    if x.dtype.kind == "b":
        return _SCATTER_ADD(x.astype("int8"), rows, columns, shape=(n, n)).astype("bool")
    return _SCATTER_ADD(x, rows, columns, shape=(n, n))


def diagflat(v: Any, k: int = 0) -> ndarray:
    """The matrix with the flattened `v` on diagonal `k`.

    >>> np.diagflat(np.array([[1, 2]])).shape
    (2, 2)
    """
    return diag(as_array(v).ravel(), k)


def trace(
    a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: ndarray | None = None
) -> ndarray:
    """The sum of the diagonal.

    >>> np.trace(np.array([[1, 2], [3, 4]]))
    array(5.)
    """
    return diagonal(a, offset, axis1, axis2).sum(-1, dtype, out)


def _triangle(m: Any, k: int, lower: bool) -> ndarray:
    x = as_array(m)
    if x.ndim == 1:
        x = x.broadcast_to((x.size, x.size))
    elif x.ndim == 0:
        raise MXNetValueError("tril and triu need an array of at least one dimension")
    rows, columns = x.shape[-2:]
    mask = onp.tri(rows, columns, k if lower else k - 1, dtype=bool)
    keep = _core.array(mask if lower else ~mask, None, x.device)
    zero: Any = False if x.dtype.kind == "b" else 0
    return _WHERE(keep, x, zero)


def tril(m: Any, k: int = 0) -> ndarray:
    """`m` with zeros above diagonal `k`.

    >>> np.tril(np.ones((2, 2)))
    array([[1., 0.],
           [1., 1.]])
    """
    return _triangle(m, k, True)


def triu(m: Any, k: int = 0) -> ndarray:
    """`m` with zeros below diagonal `k`.

    >>> np.triu(np.ones((2, 2)))
    array([[1., 1.],
           [0., 1.]])
    """
    return _triangle(m, k, False)


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[ndarray, ndarray]:
    """The indices of the elements on and below diagonal `k` of an n by m matrix.

    >>> np.tril_indices(2)[0]
    array([0, 1, 1], dtype=int64)
    """
    rows, columns = onp.tril_indices(n, k, m)
    return _core.array(rows), _core.array(columns)


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[ndarray, ndarray]:
    """The indices of the elements on and above diagonal `k` of an n by m matrix.

    >>> np.triu_indices(2)[0]
    array([0, 0, 1], dtype=int64)
    """
    rows, columns = onp.triu_indices(n, k, m)
    return _core.array(rows), _core.array(columns)


def diag_indices_from(arr: Any) -> tuple[ndarray, ...]:
    """The indices of the main diagonal of `arr`, whose axes are all of one length.

    >>> np.diag_indices_from(np.ones((2, 2)))[0]
    array([0, 1], dtype=int64)
    """
    x = as_array(arr)
    if x.ndim < 2:
        raise MXNetValueError("input array must be at least 2-d")
    if len(set(x.shape)) > 1:
        raise MXNetValueError("All dimensions of input must be of equal length")
    return (_core.array(onp.arange(x.shape[0])),) * x.ndim


def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[ndarray, ...]:
    """The index along each axis of positions in the flattened array of `shape`; waits for the positions.

    >>> np.unravel_index(np.array([5], dtype='int64'), (2, 3))
    (array([1], dtype=int64), array([2], dtype=int64))
    """
    rest = as_array(indices)
    if rest.dtype.kind == "f":  # Python numbers and lists, and MXNet's float indices
        rest = rest.astype("int64")
    sizes = shape_of(shape)
    count = math.prod(sizes)
    for bound in (rest.min(), rest.max()) if rest.size else ():
        if not 0 <= look(bound) < count:
            raise MXNetValueError(f"index {bound.item()} is out of bounds for array with size {count}")
    found: list[ndarray] = []
    for n in reversed(sizes) if order == "C" else sizes:
        found.append(rest % n)
        rest = rest // n
    return tuple(reversed(found)) if order == "C" else tuple(found)


def ix_(*args: Any) -> tuple[ndarray, ...]:
    """Index arrays that select the grid of the one-dimensional `args`.

    >>> np.ones((3, 3))[np.ix_([0, 1], [2])].shape
    (2, 1)
    """
    out = []
    for i, arg in enumerate(args):
        x = arg if isinstance(arg, ndarray) else _core.array(onp.asarray(arg))
        if x.ndim != 1:
            raise MXNetValueError("Cross index must be 1 dimensional")
        x = flatnonzero(x) if x.dtype.kind == "b" else x
        out.append(x.reshape(tuple(x.size if i == j else 1 for j in range(len(args)))))
    return tuple(out)


def fill_diagonal(a: ndarray, val: Any, wrap: bool = False) -> None:
    """Writes `val` to the main diagonal of the matrix `a`, in place.

    >>> x = np.zeros((2, 2)); np.fill_diagonal(x, 5); x
    array([[5., 0.],
           [0., 5.]])
    """
    if a.ndim < 2:
        raise MXNetValueError("array must be at least 2-d")
    if a.ndim > 2 and len(set(a.shape)) > 1:
        raise MXNetValueError("All dimensions of input must be of equal length")
    if wrap and a.ndim == 2 and a.shape[0] > a.shape[1]:
        rows = onp.array([i for i in range(a.shape[0]) if i % (a.shape[1] + 1) < a.shape[1]])
        index: tuple = (rows, rows % (a.shape[1] + 1))
    else:
        index = (onp.arange(min(a.shape)),) * a.ndim
    a[index] = val


def gather_nd(data: Any, indices: Any) -> ndarray:
    """The entries of `data` whose index along its first axes is the columns of `indices` (one row per axis).

    >>> npx.gather_nd(np.array([[1, 2], [3, 4]]), np.array([[0, 1], [1, 0]]))
    array([2., 3.])
    """
    rows = as_array(indices)
    if rows.ndim < 1:
        raise MXNetValueError("gather_nd: indices must have at least one axis")
    return _INDEX_GET(data, *rows, axis=0)


def index_update(a: Any, ind: Any, val: Any) -> ndarray:
    """A copy of `a` with `val` at the positions `ind` (one row of indices per axis).

    >>> npx.index_update(np.zeros(3), np.array([[0, 2]]), np.array([5, 6]))
    array([5., 0., 6.])
    """
    return _INDEX_ASSIGN(a, val, *as_array(ind), axis=0)


def index_add(a: Any, ind: Any, val: Any) -> ndarray:
    """`a` with `val` added at the positions `ind` (one row of indices per axis); equal positions add up.

    >>> npx.index_add(np.zeros(3), np.array([[0, 0]]), np.array([5, 6]))
    array([11.,  0.,  0.])
    """
    x, rows = as_array(a), as_array(ind)
    spread = as_array(val).broadcast_to(rows.shape[1:] + x.shape[rows.shape[0] :])
    return x + _SCATTER_ADD(spread, *rows, shape=x.shape)


METHODS = (take, nonzero, diagonal, trace, pick, one_hot, choose, searchsorted)
