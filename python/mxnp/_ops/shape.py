"""Shapes and views: reshape (with MXNet's codes), transpose, squeeze, broadcast_to, flip and the like."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as onp

from mxnp._core import ndarray
from mxnp.error import MXNetTypeError, MXNetValueError

from ._table import Axis, as_array, deliver, normalize_axes, normalize_axis, op, shape_of

_RESHAPE, _BROADCAST_TO, _TRANSPOSE = op("reshape"), op("broadcast_to"), op("transpose")
_EXPAND_DIMS, _SQUEEZE, _FLIP = op("expand_dims"), op("squeeze"), op("flip")


def _known_shape(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    """`shape` with its -1 replaced. Raises ValueError as NumPy does where the sizes do not fit."""
    if -1 not in shape:
        return shape
    if shape.count(-1) > 1:
        raise MXNetValueError("can only specify one unknown dimension")
    known = -math.prod(shape)
    if known == 0 or size % known:
        text = f"({shape[0]},)" if len(shape) == 1 else str(shape).replace(" ", "")
        raise MXNetValueError(f"cannot reshape array of size {size} into shape {text}")
    return tuple(size // known if n == -1 else n for n in shape)


def _decode(shape: tuple[int, ...], own: tuple[int, ...], reverse: bool) -> tuple[int, ...]:
    """The shape that MXNet's codes -2 to -6 mean for an array of shape `own`; -1 may remain in it."""
    if reverse:
        return _decode(_mirrored(shape), own[::-1], False)[::-1]
    out: list[int] = []
    at, i = 0, 0

    def take(code: int) -> int:
        nonlocal at
        if at >= len(own):
            raise MXNetValueError(
                f"cannot reshape array of shape {own} into {shape}: no axis is left for {code}"
            )
        at += 1
        return own[at - 1]

    while i < len(shape):
        code = shape[i]
        if code == -2:
            out.append(take(code))
        elif code == -3:
            if take(code) != 1:
                raise MXNetValueError(
                    f"cannot reshape array of shape {own} into {shape}: axis {at - 1} is not of size 1"
                )
        elif code == -4:
            out += own[at:]
            at = len(own)
        elif code == -5:
            out.append(take(code) * take(code))
        elif code == -6:
            out += _halves(shape, own, i, take(code))
            i += 2
        elif code < -6:
            raise MXNetValueError(
                f"cannot reshape array of shape {own} into {shape}: {code} is not a code (-1 to -6)"
            )
        else:
            out.append(code)
            at += 1
        i += 1
    return tuple(out)


def _halves(shape: tuple[int, ...], own: tuple[int, ...], i: int, size: int) -> list[int]:
    """The two sizes after the code -6 at `i`, which split an axis of `size`."""
    parts = list(shape[i + 1 : i + 3])
    if len(parts) < 2 or parts == [-1, -1]:
        raise MXNetValueError(
            f"cannot reshape array of shape {own} into {shape}: -6 takes two sizes after it"
        )
    for here, other in ((0, 1), (1, 0)):
        if parts[here] == -1 and parts[other] > 0:
            parts[here] = size // parts[other]
    if parts[0] * parts[1] != size:
        raise MXNetValueError(
            f"cannot reshape array of shape {own} into {shape}: {parts} does not split {size}"
        )
    return parts


def _mirrored(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The codes from right to left; -6 stays before its two sizes."""
    items: list[tuple[int, ...]] = []
    i = 0
    while i < len(shape):
        step = 3 if shape[i] == -6 and i + 2 < len(shape) else 1
        item = shape[i : i + step]
        items.append(item if step == 1 else (-6, item[2], item[1]))
        i += step
    return tuple(n for item in reversed(items) for n in item)


def reshape_to(x: ndarray, shape: tuple[int, ...], order: str = "C", reverse: bool = False) -> ndarray:
    """`x` in another shape: a view where its layout allows. MXNet's codes are understood."""
    if shape and min(shape) < 0:
        if reverse or min(shape) < -1:
            shape = _decode(shape, x.shape, reverse)
        shape = _known_shape(shape, x.size)
    if order == "C" or (order == "A" and not _is_fortran(x)):
        return _RESHAPE(x, shape=shape)
    if order not in ("F", "A"):
        raise MXNetValueError(f"order must be one of 'C', 'F', or 'A' (got {order!r})")
    return _reversed(_RESHAPE(_reversed(x), shape=shape[::-1]))


def _is_fortran(x: ndarray) -> bool:
    """Whether the elements lie in memory with the first axis running fastest, and not in C's order as well."""
    axes = [i for i, n in enumerate(x.shape) if n > 1]
    step = x.itemsize
    for i in axes:
        if x.strides[i] != step:
            return False
        step *= x.shape[i]
    return len(axes) > 1


def _reversed(x: ndarray) -> ndarray:
    return _TRANSPOSE(x, axes=range(x.ndim - 1, -1, -1)) if x.ndim > 1 else x


def reshape(
    a: Any,
    /,
    shape: Any = None,
    order: str = "C",
    *,
    newshape: Any = None,
    copy: bool | None = None,
    out: Any = None,
) -> ndarray:
    """`a` in another shape of as many elements, a view where its layout allows; one size may be -1.

    The sizes -2 to -6 are MXNet's codes, explained at `npx.reshape`.

    >>> np.reshape(np.arange(6), (2, -1))
    array([[0., 1., 2.],
           [3., 4., 5.]])
    """
    wanted = newshape if shape is None else shape
    if wanted is None:
        raise MXNetTypeError("reshape() missing 1 required positional argument: 'shape'")
    x = as_array(a)
    result = reshape_to(x, shape_of(wanted), order)
    if copy:
        result = result.copy()
    elif copy is False and not result.same_memory(x):
        raise MXNetValueError("Unable to avoid creating a copy while reshaping.")
    return deliver(result, out)


def npx_reshape(a: Any, newshape: Any, reverse: bool = False, order: str = "C") -> ndarray:
    """`a` in another shape, written with MXNet's codes, read from the right where `reverse`.

    -1: what is left; -2: this axis as it is; -3: drop this axis of size 1; -4: all remaining axes; -5: this axis
    and the next as one; -6, m, n: this axis as two of sizes m and n, one of which may be -1.

    >>> npx.reshape(np.ones((8, 3, 3)), (-6, 2, -1, -5)).shape
    (2, 4, 9)
    """
    return reshape_to(as_array(a), shape_of(newshape), order, reverse)


def _reshape_method(
    self: ndarray, *shape: Any, order: str = "C", reverse: bool = False, copy: Any = None
) -> ndarray:
    """The array in another shape: `x.reshape(2, -1)` or `x.reshape((2, -1))`; see `np.reshape`.

    >>> np.arange(4).reshape(2, 2).shape
    (2, 2)
    """
    if len(shape) == 1:
        only = shape[0]
        sizes = (self.size if only == -1 else only,) if type(only) is int else shape_of(only)
    else:
        sizes = shape_of(shape)
    result = reshape_to(self, sizes, order, reverse)
    return result.copy() if copy else result


def ravel(a: Any, order: str = "C") -> ndarray:
    """`a` as one axis: a view where its layout allows.

    >>> np.ravel(np.ones((2, 2)))
    array([1., 1., 1., 1.])
    """
    x = as_array(a)
    if order == "K":
        # The order in memory; a broadcast axis has none, and the array is then read in C's order, as in NumPy.
        steps = [abs(step) for step in x.strides]
        if x.ndim > 1 and 0 not in steps:
            x = _TRANSPOSE(x, axes=sorted(range(x.ndim), key=lambda i: -steps[i]))
        order = "C"
    return reshape_to(x, (x.size,), order)


def _flatten(self: ndarray, order: str = "C") -> ndarray:
    """A copy of the array as one axis.

    >>> np.ones((2, 2)).flatten()
    array([1., 1., 1., 1.])
    """
    flat = ravel(self, order)
    return flat.copy() if flat.same_memory(self) else flat


def transpose(a: Any, axes: Any = None) -> ndarray:
    """`a` with its axes in the order `axes`, by default reversed: a view.

    >>> np.transpose(np.ones((2, 3, 4)), (1, 0, 2)).shape
    (3, 2, 4)
    """
    x = as_array(a)
    if axes is None:
        return x.T
    numbers = tuple(axes) if not isinstance(axes, int) else (axes,)
    if len(numbers) != x.ndim:
        raise MXNetValueError(f"axes don't match array: {numbers} for an array of shape {x.shape}")
    order = tuple(normalize_axis(n, x.ndim) for n in numbers)
    if len(set(order)) != len(order):
        raise MXNetValueError(f"repeated axis in transpose: {numbers}")
    return _TRANSPOSE(x, axes=order)


def _transpose_method(self: ndarray, *axes: Any) -> ndarray:
    """The array with its axes in another order, by default reversed; see `np.transpose`.

    >>> np.ones((2, 3)).transpose().shape
    (3, 2)
    """
    if not axes or axes == (None,):
        return transpose(self)
    return transpose(self, axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes)


def permute_dims(a: Any, axes: Any = None) -> ndarray:
    """Another name of `transpose`.

    >>> np.permute_dims(np.ones((2, 3)), (1, 0)).shape
    (3, 2)
    """
    return transpose(a, axes)


def matrix_transpose(x: Any, /) -> ndarray:
    """`x` with its last two axes exchanged.

    >>> np.matrix_transpose(np.ones((5, 2, 3))).shape
    (5, 3, 2)
    """
    a = as_array(x)
    if a.ndim < 2:
        raise MXNetValueError(f"Input array must be at least 2-dimensional, but it is {a.ndim}")
    return swapaxes(a, -1, -2)


def swapaxes(a: Any, axis1: int, axis2: int) -> ndarray:
    """`a` with two axes exchanged: a view.

    >>> np.swapaxes(np.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    x = as_array(a)
    i, j = normalize_axis(axis1, x.ndim, "axis1"), normalize_axis(axis2, x.ndim, "axis2")
    order = list(range(x.ndim))
    order[i], order[j] = j, i
    return _TRANSPOSE(x, axes=order)


def moveaxis(a: Any, source: Any, destination: Any) -> ndarray:
    """`a` with the axes `source` moved to the places `destination`, the others in order: a view.

    >>> np.moveaxis(np.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = as_array(a)
    origin = normalize_axes(source, x.ndim, "source")
    target = normalize_axes(destination, x.ndim, "destination")
    if len(origin) != len(target):
        raise MXNetValueError("`source` and `destination` arguments must have the same number of elements")
    order = [i for i in range(x.ndim) if i not in origin]
    for place, axis in sorted(zip(target, origin, strict=True)):
        order.insert(place, axis)
    return _TRANSPOSE(x, axes=order)


def rollaxis(a: Any, axis: int, start: int = 0) -> ndarray:
    """`a` with `axis` moved before `start`: a view. `moveaxis` says the same more plainly.

    >>> np.rollaxis(np.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    x = as_array(a)
    axis = normalize_axis(axis, x.ndim)
    start = x.ndim if start == x.ndim else normalize_axis(start, x.ndim, "start")
    return moveaxis(x, axis, start - 1 if axis < start else start)


def expand_dims(a: Any, axis: Any) -> ndarray:
    """`a` with axes of size 1 at the places `axis` of the result: a view.

    >>> np.expand_dims(np.ones(3), 0).shape
    (1, 3)
    """
    return _EXPAND_DIMS(as_array(a), axis=axis)


def squeeze(a: Any, axis: Axis = None, out: ndarray | None = None) -> ndarray:
    """`a` without its axes of size 1, or without those named: a view.

    Raises ValueError where a named axis has another size.

    >>> np.squeeze(np.ones((1, 3, 1))).shape
    (3,)
    """
    return deliver(_SQUEEZE(as_array(a), axis=axis), out)


def broadcast_to(array: Any, shape: Any, subok: bool = False) -> ndarray:
    """`array` repeated along axes to make it `shape`: a view.

    >>> np.broadcast_to(np.array([1, 2]), (2, 2))
    array([[1., 2.],
           [1., 2.]])
    """
    return _BROADCAST_TO(as_array(array), shape=shape_of(shape))


def broadcast_shapes(*args: Any) -> tuple[int, ...]:
    """The shape that arrays of these shapes broadcast to.

    >>> np.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    try:
        return onp.broadcast_shapes(*args)
    except ValueError as error:
        raise MXNetValueError(str(error)) from None


def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[ndarray, ...]:
    """The arrays broadcast to one shape: views.

    >>> [x.shape for x in np.broadcast_arrays(np.ones((2, 1)), np.ones(3))]
    [(2, 3), (2, 3)]
    """
    arrays = [as_array(a) for a in args]
    shape = broadcast_shapes(*(a.shape for a in arrays))
    return tuple(a if a.shape == shape else _BROADCAST_TO(a, shape=shape) for a in arrays)


def _atleast(ndim: int, arys: tuple, grow: Any) -> Any:
    arrays = [as_array(a) for a in arys]
    grown = tuple(a if a.ndim >= ndim else _RESHAPE(a, shape=grow(a.shape)) for a in arrays)
    return grown[0] if len(grown) == 1 else grown


def atleast_1d(*arys: Any) -> Any:
    """The arrays with at least one axis.

    >>> np.atleast_1d(np.array(3))
    array([3.])
    """
    return _atleast(1, arys, lambda shape: (1,))


def atleast_2d(*arys: Any) -> Any:
    """The arrays with at least two axes, new ones first.

    >>> np.atleast_2d(np.array([1, 2]))
    array([[1., 2.]])
    """
    return _atleast(2, arys, lambda shape: (1,) * (2 - len(shape)) + shape)


def atleast_3d(*arys: Any) -> Any:
    """The arrays with at least three axes: (n,) becomes (1, n, 1), and (m, n) becomes (m, n, 1).

    >>> np.atleast_3d(np.ones(2)).shape
    (1, 2, 1)
    """
    return _atleast(3, arys, lambda shape: {0: (1, 1, 1), 1: (1, *shape, 1)}.get(len(shape), (*shape, 1)))


def flip(m: Any, axis: Axis = None) -> ndarray:
    """`m` in reverse order along `axis` (None: all axes): a view.

    >>> np.flip(np.array([1, 2, 3]))
    array([3., 2., 1.])
    """
    return _FLIP(as_array(m), axis=axis)


def flipud(m: Any) -> ndarray:
    """`m` in reverse order along its first axis.

    >>> np.flipud(np.array([1, 2]))
    array([2., 1.])
    """
    x = as_array(m)
    if x.ndim < 1:
        raise MXNetValueError("Input must be >= 1-d.")
    return _FLIP(x, axis=0)


def fliplr(m: Any) -> ndarray:
    """`m` in reverse order along its second axis.

    >>> np.fliplr(np.array([[1, 2]]))
    array([[2., 1.]])
    """
    x = as_array(m)
    if x.ndim < 2:
        raise MXNetValueError("Input must be >= 2-d.")
    return _FLIP(x, axis=1)


def rot90(m: Any, k: int = 1, axes: Sequence[int] = (0, 1)) -> ndarray:
    """`m` turned by `k` quarters in the plane of two axes, from the first toward the second: a view.

    >>> np.rot90(np.array([[1, 2], [3, 4]]))
    array([[2., 4.],
           [1., 3.]])
    """
    x = as_array(m)
    if len(axes) != 2:
        raise MXNetValueError("len(axes) must be 2.")
    if axes[0] == axes[1] or abs(axes[0] - axes[1]) == x.ndim:
        raise MXNetValueError("Axes must be different.")
    if any(not -x.ndim <= axis < x.ndim for axis in axes):
        raise MXNetValueError(f"Axes={tuple(axes)} out of range for array of ndim={x.ndim}.")
    first, second = axes
    match k % 4:
        case 0:
            return _FLIP(x, axis=())
        case 1:
            return swapaxes(flip(x, second), first, second)
        case 2:
            return flip(flip(x, first), second)
        case _:
            return flip(swapaxes(x, first, second), second)


def shape(a: Any) -> tuple[int, ...]:
    """The shape of `a`.

    >>> np.shape(np.ones((2, 3)))
    (2, 3)
    """
    return as_array(a).shape


def ndim(a: Any) -> int:
    """The number of axes of `a`.

    >>> np.ndim(np.ones((2, 3)))
    2
    """
    return as_array(a).ndim


def size(a: Any, axis: int | None = None) -> int:
    """The number of elements of `a`, or its length along `axis`.

    >>> np.size(np.ones((2, 3)), 1)
    3
    """
    x = as_array(a)
    return x.size if axis is None else x.shape[normalize_axis(axis, x.ndim)]


METHODS = (ravel, swapaxes, squeeze, expand_dims, broadcast_to, flip)
SPECIAL_METHODS = {"reshape": _reshape_method, "transpose": _transpose_method, "flatten": _flatten}
