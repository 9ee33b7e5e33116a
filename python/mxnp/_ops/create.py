"""New arrays: from data, from values, in patterns.

Index patterns are made by NumPy and copied in: they are small or made once. ranges.py has the ranges.
"""

from __future__ import annotations

from typing import Any

import numpy as onp

from mxnp import _core
from mxnp._core import ndarray
from mxnp.error import MXNetValueError

from ._table import as_array, deliver, integer, one_device, op, shape_of

_FULL, _EYE = op("full"), op("eye")


def array(
    object: Any,
    dtype: Any = None,
    device: Any = None,
    *,
    copy: bool | None = True,
    order: str = "K",
    subok: bool = False,
    ndmin: int = 0,
    like: Any = None,
    ctx: Any = None,
) -> ndarray:
    """A new array with the elements of `object`: an array, a number, or nested sequences.

    Arrays keep their dtype; lists and Python numbers become the default float, bools stay bool.

    >>> np.array([[1, 2], [3, 4]])
    array([[1., 2.],
           [3., 4.]])
    """
    return _core.array(object, dtype, one_device(device, ctx), copy, ndmin)


def asarray(
    a: Any,
    dtype: Any = None,
    order: str | None = None,
    *,
    device: Any = None,
    copy: bool | None = None,
    like: Any = None,
    ctx: Any = None,
) -> ndarray:
    """`a` as an array; nothing is copied where it already is one of that dtype and device.

    >>> x = np.ones(2)
    >>> np.asarray(x) is x
    True
    """
    return _core.array(a, dtype, one_device(device, ctx), copy, 0)


def asanyarray(a: Any, dtype: Any = None, order: str | None = None, *, device: Any = None) -> ndarray:
    """Another name of `asarray`.

    >>> np.asanyarray([1, 2])
    array([1., 2.])
    """
    return asarray(a, dtype, device=device)


def ascontiguousarray(a: Any, dtype: Any = None) -> ndarray:
    """`a` as a C-contiguous array of at least one dimension; copied only where it is not one.

    >>> np.ascontiguousarray(np.ones((2, 3)).T).flags.c_contiguous
    True
    """
    x = asarray(a, dtype)
    x = x if x.ndim else x.reshape(1)
    return x if x.flags.c_contiguous else x.copy()


def frombuffer(buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0) -> ndarray:
    """A one-dimensional array of the bytes of `buffer`, copied.

    >>> np.frombuffer(bytes([1, 2]), dtype='uint8')
    array([1, 2], dtype=uint8)
    """
    return _core.array(onp.frombuffer(buffer, _core.dtype(dtype), count, offset))


def _order(order: str) -> None:
    if order not in ("C", "F", "A", "K"):
        raise MXNetValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")


def _filled(value: Any, shape: Any, dtype: Any, device: Any) -> ndarray:
    sizes = shape_of(shape)
    if min(sizes, default=0) < 0:
        raise MXNetValueError("negative dimensions are not allowed")
    to = _core.default_float() if dtype is None else _core.dtype(dtype)
    return _FULL(value, shape=sizes, dtype=to, device=device)


def zeros(shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None, ctx: Any = None) -> ndarray:
    """An array of zeros; float32 in the default mode.

    >>> np.zeros((2, 2))
    array([[0., 0.],
           [0., 0.]])
    """
    _order(order)
    return _filled(0, shape, dtype, one_device(device, ctx))


def ones(shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None, ctx: Any = None) -> ndarray:
    """An array of ones; float32 in the default mode.

    >>> np.ones(3)
    array([1., 1., 1.])
    """
    _order(order)
    return _filled(1, shape, dtype, one_device(device, ctx))


def empty(shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None, ctx: Any = None) -> ndarray:
    """An array whose elements are not promised (they are zeros).

    >>> np.empty((2, 3)).shape
    (2, 3)
    """
    return zeros(shape, dtype, order, device=device, ctx=ctx)


def full(
    shape: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "C",
    *,
    device: Any = None,
    ctx: Any = None,
    out: ndarray | None = None,
) -> ndarray:
    """An array of `fill_value`, which may be an array that broadcasts to `shape`.

    Without a dtype: that of an array, bool for a bool, else the default float (NumPy's own rule in NumPy mode).

    >>> np.full((2, 2), 7)
    array([[7., 7.],
           [7., 7.]])
    """
    _order(order)
    if dtype is None:
        dtype = _core.array(fill_value).dtype
    return deliver(_filled(fill_value, shape, dtype, one_device(device, ctx)), out)


def _like(value: Any, a: Any, dtype: Any, shape: Any, device: Any, out: ndarray | None) -> ndarray:
    x = as_array(a)
    made = _filled(
        value,
        x.shape if shape is None else shape,
        x.dtype if dtype is None else dtype,
        x.device if device is None else device,
    )
    return deliver(_core.constant_in(made, x), out)


def zeros_like(
    a: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
    ctx: Any = None,
    out: ndarray | None = None,
) -> ndarray:
    """Zeros with the shape, dtype and device of `a`, unless others are given.

    >>> np.zeros_like(np.array([1, 2]))
    array([0., 0.])
    """
    return _like(0, a, dtype, shape, one_device(device, ctx), out)


def ones_like(
    a: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
    ctx: Any = None,
    out: ndarray | None = None,
) -> ndarray:
    """Ones with the shape, dtype and device of `a`, unless others are given.

    >>> np.ones_like(np.array([1, 2]))
    array([1., 1.])
    """
    return _like(1, a, dtype, shape, one_device(device, ctx), out)


def empty_like(
    prototype: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
    ctx: Any = None,
) -> ndarray:
    """An array like `prototype` whose elements are not promised.

    >>> np.empty_like(np.ones((2, 3))).shape
    (2, 3)
    """
    return _like(0, prototype, dtype, shape, one_device(device, ctx), None)


def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
    ctx: Any = None,
    out: ndarray | None = None,
) -> ndarray:
    """`fill_value` with the shape, dtype and device of `a`, unless others are given.

    >>> np.full_like(np.array([1, 2]), 5)
    array([5., 5.])
    """
    return _like(fill_value, a, dtype, shape, one_device(device, ctx), out)


def made(data: onp.ndarray, dtype: Any, device: Any) -> ndarray:
    """NumPy's `data` as an array of `dtype`, by default the default float."""
    return _core.array(data, _core.default_float() if dtype is None else dtype, device)


def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: Any = None,
    order: str = "C",
    *,
    device: Any = None,
    ctx: Any = None,
) -> ndarray:
    """N rows of M (default N) columns, ones on diagonal `k` and zeros elsewhere.

    >>> np.eye(2)
    array([[1., 0.],
           [0., 1.]])
    """
    to = _core.default_float() if dtype is None else _core.dtype(dtype)
    rows, columns = integer(N), integer(N if M is None else M)
    return _EYE(n=rows, m=columns, k=integer(k), dtype=to, device=one_device(device, ctx))


def identity(n: int, dtype: Any = None, *, device: Any = None, ctx: Any = None) -> ndarray:
    """The identity matrix of `n` rows.

    >>> np.identity(2)
    array([[1., 0.],
           [0., 1.]])
    """
    return eye(n, dtype=dtype, device=device, ctx=ctx)


def tri(
    N: int, M: int | None = None, k: int = 0, dtype: Any = None, *, device: Any = None, ctx: Any = None
) -> ndarray:
    """Ones on and below diagonal `k`, zeros above.

    >>> np.tri(2, 3)
    array([[1., 0., 0.],
           [1., 1., 0.]])
    """
    return made(onp.tri(N, M, k, dtype="int8"), dtype, one_device(device, ctx))


def indices(
    dimensions: Any, dtype: Any = "int64", sparse: bool = False, *, device: Any = None, ctx: Any = None
) -> Any:
    """The index along each axis of every position of an array of shape `dimensions`.

    >>> np.indices((2, 2))[0]
    array([[0, 0],
           [1, 1]], dtype=int64)
    """
    found = onp.indices(shape_of(dimensions), _core.dtype(dtype), sparse)  # type: ignore[call-overload]
    place = one_device(device, ctx)
    return (
        tuple(_core.array(row, None, place) for row in found) if sparse else _core.array(found, None, place)
    )


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> list[ndarray]:
    """Coordinate arrays of the grid whose axes are the one-dimensional `xi`.

    >>> np.meshgrid(np.array([1, 2]), np.array([3, 4]))[1]
    array([[3., 3.],
           [4., 4.]])
    """
    if indexing not in ("xy", "ij"):
        raise MXNetValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    arrays = [as_array(x).reshape(-1) for x in xi]
    n = len(arrays)
    order = [1, 0, *range(2, n)] if indexing == "xy" and n > 1 else list(range(n))
    shape = tuple(arrays[i].size for i in order)
    out = []
    for i, x in enumerate(arrays):
        x = x.reshape(tuple(x.size if order[axis] == i else 1 for axis in range(n)))
        x = x if sparse else x.broadcast_to(shape)
        out.append(x.copy() if copy else x)
    return out


METHODS = (zeros_like, ones_like)
