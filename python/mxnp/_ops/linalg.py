"""Products of matrices and vectors, norms and powers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as onp

from mxnp import _core
from mxnp._core import ndarray
from mxnp.error import MXNetLinAlgError, MXNetValueError

from . import index
from ._table import as_array, deliver, integer, normalize_axes, normalize_axis, op
from .arith import conjugate

_MATMUL, _DOT = op("matmul"), op("dot")
_ABSOLUTE, _SQRT, _WHERE, _ISINF = op("absolute"), op("sqrt"), op("where"), op("isinf")


def matmul(
    x1: Any, x2: Any, /, out: ndarray | None = None, *, casting: str = "same_kind", dtype: Any = None
) -> ndarray:
    """The product of matrices over the last two axes, the others broadcast; a vector counts as one row or column.

    >>> np.matmul(np.eye(2), np.array([1, 2]))
    array([1., 2.])
    """
    if dtype is not None:
        x1, x2 = (as_array(x).astype(dtype, casting=casting, copy=False) for x in (x1, x2))
    return _MATMUL(x1, x2, out=out)


def dot(a: Any, b: Any, out: ndarray | None = None) -> ndarray:
    """The sum of products over the last axis of `a` and the last but one of `b` (a vector's only one).

    >>> np.dot(np.array([1, 2]), np.array([3, 4]))
    array(11.)
    """
    return _DOT(a, b, out=out)


def vdot(a: Any, b: Any, /) -> ndarray:
    """The sum of products of the flattened arrays, the first one conjugated.

    >>> np.vdot(np.array([1, 2]), np.array([3, 4]))
    array(11.)
    """
    x, y = as_array(a).ravel(), as_array(b).ravel()
    return _DOT(conjugate(x), y)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> ndarray:
    """The sum of products along `axis`, the first array conjugated; other axes broadcast.

    >>> np.vecdot(np.array([[1, 2]]), np.array([3, 4]))
    array([11.])
    """
    x, y = as_array(x1), as_array(x2)
    if not (x.ndim and y.ndim):
        raise MXNetValueError("vecdot: both operands must have at least one dimension")
    return (conjugate(x) * y).sum(axis)


def inner(a: Any, b: Any, /) -> ndarray:
    """The sum of products over the last axis of both.

    >>> np.inner(np.array([1, 2]), np.array([3, 4]))
    array(11.)
    """
    x, y = as_array(a), as_array(b)
    if x.ndim == 0 or y.ndim == 0:
        return x * y
    if x.shape[-1] != y.shape[-1]:
        raise MXNetValueError(
            f"shapes {x.shape} and {y.shape} not aligned: {x.shape[-1]} (dim {x.ndim - 1}) != "
            f"{y.shape[-1]} (dim {y.ndim - 1})"
        )
    return tensordot(x, y, ((-1,), (-1,)))


def outer(a: Any, b: Any, out: ndarray | None = None) -> ndarray:
    """The products of each element of `a` with each of `b`, both flattened.

    >>> np.outer(np.array([1, 2]), np.array([3, 4]))
    array([[3., 4.],
           [6., 8.]])
    """
    x, y = as_array(a).ravel(), as_array(b).ravel()
    return deliver(x.reshape((x.size, 1)) * y, out)


def tensordot(a: Any, b: Any, axes: Any = 2) -> ndarray:
    """The sum of products over `axes`: the last n of `a` and first n of `b`, or a pair of lists of axes.

    >>> np.tensordot(np.ones((2, 3)), np.ones((3, 4)), 1).shape
    (2, 4)
    """
    x, y = as_array(a), as_array(b)
    if isinstance(axes, Sequence):
        first, second = (side if isinstance(side, Sequence) else (side,) for side in axes)
    else:
        n = integer(axes)
        first, second = range(x.ndim - n, x.ndim), range(n)
    left = [normalize_axis(i, x.ndim) for i in first]
    right = [normalize_axis(i, y.ndim) for i in second]
    if len(left) != len(right) or any(x.shape[i] != y.shape[j] for i, j in zip(left, right, strict=True)):
        raise MXNetValueError("shape-mismatch for sum")
    rows = [i for i in range(x.ndim) if i not in left]
    columns = [j for j in range(y.ndim) if j not in right]
    depth = 1
    for i in left:
        depth *= x.shape[i]
    heads, tails = tuple(x.shape[i] for i in rows), tuple(y.shape[j] for j in columns)
    wide = int(onp.prod(heads, dtype="int64")), int(onp.prod(tails, dtype="int64"))
    p = x.transpose(rows + left).reshape((wide[0], depth))
    q = y.transpose(right + columns).reshape((depth, wide[1]))
    return _MATMUL(p, q).reshape(heads + tails)


def kron(a: Any, b: Any) -> ndarray:
    """The Kronecker product: each element of `a` times the whole of `b`.

    >>> np.kron(np.array([1, 2]), np.array([1, 1]))
    array([1., 1., 2., 2.])
    """
    x, y = as_array(a), as_array(b)
    n = max(x.ndim, y.ndim)
    p, q = (1,) * (n - x.ndim) + x.shape, (1,) * (n - y.ndim) + y.shape
    wide = x.reshape(tuple(size for m in p for size in (m, 1))) * y.reshape(
        tuple(s for m in q for s in (1, m))
    )
    return wide.reshape(tuple(m * k for m, k in zip(p, q, strict=True)))


def cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> ndarray:
    """The vector product along the last axis (or the axes named), whose length is 3.

    >>> np.cross(np.array([1, 0, 0]), np.array([0, 1, 0]))
    array([0., 0., 1.])
    """
    from .join import stack
    from .shape import moveaxis

    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = moveaxis(a, axisa, -1), moveaxis(b, axisb, -1)
    if x.shape[-1] != 3 or y.shape[-1] != 3:
        raise MXNetValueError(
            "Both input arrays must be (arrays of) 3-dimensional vectors, but they are "
            f"{x.shape[-1]} and {y.shape[-1]} dimensional instead."
        )
    p, q = ([v[..., i] for i in range(3)] for v in (x, y))
    parts = [p[1] * q[2] - p[2] * q[1], p[2] * q[0] - p[0] * q[2], p[0] * q[1] - p[1] * q[0]]
    return stack(parts, axisc)


def batch_dot(
    a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False, forward_stype: Any = "default"
) -> ndarray:
    """The products of the matrices of two batches (batch, m, k) and (batch, k, n), each transposed on request.

    >>> npx.batch_dot(np.ones((2, 3, 4)), np.ones((2, 4, 5))).shape
    (2, 3, 5)
    """
    x, y = as_array(a), as_array(b)
    if x.ndim < 3 or y.ndim < 3 or x.shape[:-2] != y.shape[:-2]:
        raise MXNetValueError(
            f"batch_dot: expected (batch, m, k) and (batch, k, n), got {x.shape} and {y.shape}"
        )
    return _MATMUL(x.swapaxes(-1, -2) if transpose_a else x, y.swapaxes(-1, -2) if transpose_b else y)


def matrix_power(a: Any, n: int) -> ndarray:
    """The square matrix `a` multiplied by itself `n` times, n not negative.

    >>> np.linalg.matrix_power(np.array([[1, 1], [0, 1]]), 3)
    array([[1., 3.],
           [0., 1.]])
    """
    x = as_array(a)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise MXNetLinAlgError("Last 2 dimensions of the array must be square")
    n = integer(n)
    if n < 0:
        raise MXNetValueError(
            "matrix_power: negative powers need an inverse, which has not arrived in mxnp yet"
        )
    result = (
        _core.array(onp.broadcast_to(onp.eye(x.shape[-1]), x.shape), x.dtype, x.device) if n == 0 else None
    )
    square = x
    while n:
        if n & 1:
            result = square if result is None else _MATMUL(result, square)
        n >>= 1
        if n:
            square = _MATMUL(square, square)
    assert result is not None
    return result


def multi_dot(arrays: Any, *, out: ndarray | None = None) -> ndarray:
    """The product of several matrices, from left to right.

    >>> np.linalg.multi_dot([np.eye(2), np.eye(2), np.array([1, 2])])
    array([1., 2.])
    """
    if len(arrays) < 2:
        raise MXNetValueError("Expecting at least two arrays.")
    result = as_array(arrays[0])
    for array in arrays[1:]:
        result = _DOT(result, array)
    return deliver(result, out)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> ndarray:
    """The norm of the vectors along `axis` (None: of all elements): (sum |x|**ord)**(1/ord). Its gradient at 0 is 0.

    >>> np.linalg.vector_norm(np.array([3, 4]))
    array(5.)
    """
    a = as_array(x)
    if a.dtype.kind in "iub":
        a = a.astype(_core.default_float())
    size = _ABSOLUTE(a)
    if ord == onp.inf:
        return size.max(axis, None, keepdims)
    if ord == -onp.inf:
        return size.min(axis, None, keepdims)
    if ord == 0:
        return (size != 0).astype(size.dtype).sum(axis, None, None, keepdims)
    if ord == 1:
        return size.sum(axis, None, None, keepdims)
    if ord == 2:
        total = (size * size).sum(axis, None, None, keepdims)
        # The root's slope at 0 is infinite: 0 goes round it, so that its gradient is 0.
        empty = total == 0
        root = _SQRT(_WHERE(empty, 1, total))
        return _WHERE(empty, 0, root)
    if isinstance(ord, str):
        raise MXNetValueError(f"Invalid norm order '{ord}' for vectors")
    total = (size**ord).sum(axis, None, None, keepdims)
    # The same of every other root: its slope is infinite where the sum is 0 or, of a negative order, infinite.
    ends = (total == 0) | _ISINF(total)
    return _WHERE(ends, total.detach() ** (1.0 / ord), _WHERE(ends, 1, total) ** (1.0 / ord))


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro", axis: Any = (-2, -1)) -> ndarray:
    """The norm of the matrices along two axes: 'fro', 1, -1, inf or -inf.

    >>> np.linalg.matrix_norm(np.array([[3, 4]]))
    array(5.)
    """
    a = as_array(x)
    if a.dtype.kind in "iub":
        a = a.astype(_core.default_float())
    axes = normalize_axes(axis, a.ndim)
    if len(axes) != 2:
        raise MXNetValueError(f"matrix_norm: axis must name two axes, got {axis}")
    row, column = axes
    if ord in ("fro", "f", None):
        return vector_norm(a, axis=(row, column), keepdims=keepdims)
    if ord in (1, -1, onp.inf, -onp.inf):
        inner_axis, other = (row, column) if abs(ord) == 1 else (column, row)
        sums = _ABSOLUTE(a).sum(inner_axis, None, None, True)
        result = sums.max(other, None, True) if ord > 0 else sums.min(other, None, True)
        return result if keepdims else result.squeeze((row, column))
    if ord in (2, -2, "nuc"):
        raise MXNetValueError(
            f"matrix_norm: order {ord!r} needs singular values, which have not arrived in mxnp yet"
        )
    raise MXNetValueError("Invalid norm order for matrices.")


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> ndarray:
    """The norm of vectors (one axis, or all elements) or matrices (two axes); by default the root of a sum of squares.

    >>> np.linalg.norm(np.array([[3, 4], [6, 8]]), axis=1)
    array([ 5., 10.])
    """
    a = as_array(x)
    if axis is None and (ord is None or (ord in ("f", "fro") and a.ndim == 2) or (ord == 2 and a.ndim == 1)):
        return vector_norm(a, keepdims=keepdims)
    axes = normalize_axes(axis, a.ndim)
    if len(axes) == 1:
        return vector_norm(a, axis=axes[0], keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) == 2:
        return matrix_norm(a, axis=axes, keepdims=keepdims, ord=ord)
    raise MXNetValueError("Improper number of dimensions to norm.")


def diagonal(x: Any, /, *, offset: int = 0) -> ndarray:
    """The diagonals of the matrices along the last two axes (`np.diagonal` takes the first two).

    >>> np.linalg.diagonal(np.arange(8).reshape(2, 2, 2))
    array([[0., 3.],
           [4., 7.]])
    """
    return index.diagonal(x, offset, -2, -1)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> ndarray:
    """The sums of the diagonals of the matrices along the last two axes (`np.trace` takes the first two).

    >>> np.linalg.trace(np.arange(8).reshape(2, 2, 2))
    array([ 3., 11.])
    """
    return index.trace(x, offset, -2, -1, dtype)


METHODS = (dot,)
