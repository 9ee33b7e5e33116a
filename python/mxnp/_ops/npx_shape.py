"""npx's functions about shapes and ranges, and those whose name np gives to something else."""

from __future__ import annotations

from typing import Any

import numpy as onp

from mxnp import _core
from mxnp._core import ndarray
from mxnp.error import MXNetValueError

from . import join, linalg
from ._table import as_array, normalize_axes, normalize_axis
from .index import argwhere
from .shape import broadcast_to, reshape_to
from .shape import npx_reshape as reshape

# The builtin, whose name belongs to MXNet's function here.
_Slice = type(onp.s_[:])

__all__ = [
    "arange_like",
    "broadcast_like",
    "from_numpy",
    "nonzero",
    "norm",
    "pad",
    "reshape",
    "reshape_like",
    "shape_array",
    "slice",
    "slice_channel",
    "slice_like",
    "stop_gradient",
    "to_dlpack_for_read",
    "to_dlpack_for_write",
]


def arange_like(
    data: Any,
    start: float = 0.0,
    step: float = 1.0,
    repeat: int = 1,
    ctx: Any = None,
    axis: int | None = None,
) -> ndarray:
    """The numbers start, start + step, ..., each `repeat` times, in the shape of `data`, or as long as its `axis`.

    >>> npx.arange_like(np.ones((2, 3)), axis=1)
    array([0., 1., 2.])
    """
    x = as_array(data)
    count = x.size if axis is None else x.shape[normalize_axis(axis, x.ndim)]
    steps = onp.arange(count) // (1 if repeat is None else repeat)
    made = _core.array(start + step * steps, x.dtype, x.device if ctx is None else ctx)
    return _core.constant_in(made.reshape(x.shape) if axis is None else made, x)


def broadcast_like(lhs: Any, rhs: Any, lhs_axes: Any = None, rhs_axes: Any = None) -> ndarray:
    """`lhs` broadcast to the shape of `rhs`; with axes given only these axes take the sizes of those.

    >>> npx.broadcast_like(np.ones((1, 2)), np.ones((3, 2))).shape
    (3, 2)
    """
    x, y = as_array(lhs), as_array(rhs)
    if lhs_axes is None and rhs_axes is None:
        return broadcast_to(x, y.shape)
    if lhs_axes is None or rhs_axes is None or len(lhs_axes) != len(rhs_axes):
        raise MXNetValueError("broadcast_like: lhs_axes and rhs_axes must be of one length")
    sizes = list(x.shape)
    for i, j in zip(normalize_axes(lhs_axes, x.ndim), normalize_axes(rhs_axes, y.ndim), strict=True):
        sizes[i] = y.shape[j]
    return broadcast_to(x, sizes)


def reshape_like(
    lhs: Any,
    rhs: Any,
    lhs_begin: int | None = None,
    lhs_end: int | None = None,
    rhs_begin: int | None = None,
    rhs_end: int | None = None,
) -> ndarray:
    """`lhs` with its axes from `lhs_begin` to `lhs_end` in the shape of those of `rhs` (None: all axes).

    >>> npx.reshape_like(np.ones(4), np.ones((2, 2))).shape
    (2, 2)
    """
    x, y = as_array(lhs), as_array(rhs)
    begin, end, _ = _range(lhs_begin, lhs_end, x.ndim)
    first, last, _ = _range(rhs_begin, rhs_end, y.ndim)
    return reshape_to(x, x.shape[:begin] + y.shape[first:last] + x.shape[end:])


def _range(begin: int | None, end: int | None, ndim: int) -> tuple[int, int, int]:
    return _Slice(begin, end).indices(ndim)


def slice(data: Any, begin: Any, end: Any, step: Any = None) -> ndarray:
    """The part of `data` from `begin` to `end` by `step` along its first axes; None stands for a whole axis.

    >>> npx.slice(np.ones((3, 4)), begin=(0, 1), end=(2, None)).shape
    (2, 3)
    """
    steps = step if step else (None,) * len(begin)
    return as_array(data)[tuple(_Slice(*item) for item in zip(begin, end, steps, strict=True))]


def slice_like(data: Any, shape_like: Any, axes: Any = None) -> ndarray:
    """The first elements of `data` along `axes` (default: all of `shape_like`), as many as `shape_like` has.

    >>> npx.slice_like(np.ones((3, 4)), np.ones((2, 2))).shape
    (2, 2)
    """
    x, y = as_array(data), as_array(shape_like)
    chosen = range(min(x.ndim, y.ndim)) if not axes and axes != 0 else normalize_axes(axes, x.ndim)
    for i in chosen:
        if y.shape[i] > x.shape[i]:
            raise MXNetValueError(
                f"slice_like: axis {i} of shape {x.shape} is shorter than that of {y.shape}"
            )
    return x[tuple(_Slice(y.shape[i] if i in chosen else None) for i in range(x.ndim))]


def shape_array(data: Any) -> ndarray:
    """The shape of `data` as an int64 array.

    >>> npx.shape_array(np.ones((2, 3)))
    array([2, 3], dtype=int64)
    """
    x = as_array(data)
    return _core.constant_in(_core.array(onp.array(x.shape, "int64")), x)


def stop_gradient(data: Any) -> ndarray:
    """`data` as a constant: gradients stop here, and a backward from it gives zeros.

    >>> npx.stop_gradient(np.ones(1))
    array([1.])
    """
    x = as_array(data)
    return _core.constant_in(x.detach(), x)


def nonzero(a: Any) -> ndarray:
    """The index of each element that is not zero, one row each; waits for `a`.

    >>> npx.nonzero(np.array([0, 3]))
    array([[1]], dtype=int64)
    """
    return argwhere(a)


def norm(data: Any, ord: Any = 2, axis: Any = None, out_dtype: Any = None, keepdims: bool = False) -> ndarray:
    """The norm along `axis` (None: of all elements, as one element along one axis).

    >>> npx.norm(np.array([3, 4]))
    array([5.])
    """
    x = as_array(data) if out_dtype is None else as_array(data).astype(out_dtype)
    result = (
        linalg.norm(x, ord if axis is not None else None, axis, keepdims)
        if ord == 2
        else linalg.norm(x, ord, axis, keepdims)
    )
    return result.reshape(1) if axis is None and not keepdims else result


def pad(data: Any, mode: str = "constant", pad_width: Any = None, constant_value: float = 0) -> ndarray:
    """`data` padded by `pad_width`: before and after for each axis, in one flat tuple.

    >>> npx.pad(np.ones((1, 2)), mode='constant', pad_width=(0, 0, 1, 0))
    array([[0., 1., 1.]])
    """
    x = as_array(data)
    if pad_width is None or len(pad_width) != 2 * x.ndim:
        raise MXNetValueError(f"pad: pad_width must have {2 * x.ndim} numbers, got {pad_width!r}")
    pairs = [tuple(pad_width[2 * i : 2 * i + 2]) for i in range(x.ndim)]
    return (
        join.pad(x, pairs, mode, constant_values=constant_value)
        if mode == "constant"
        else join.pad(x, pairs, mode)
    )


def slice_channel(data: Any, num_outputs: int, axis: int = 1, squeeze_axis: bool = False) -> Any:
    """`data` cut along `axis` into `num_outputs` equal parts, without the axis where `squeeze_axis`; one part alone.

    >>> [x.shape for x in npx.slice_channel(np.ones((2, 4)), 2)]
    [(2, 2), (2, 2)]
    """
    parts = join.split(data, num_outputs, axis)
    if squeeze_axis:
        parts = [part.squeeze(axis) for part in parts]
    return parts if len(parts) > 1 else parts[0]


def to_dlpack_for_read(data: ndarray) -> Any:
    """A DLPack capsule of the array's memory, to be read; waits for the array.

    >>> type(npx.to_dlpack_for_read(np.ones(1))).__name__
    'PyCapsule'
    """
    return data.__dlpack__()


def to_dlpack_for_write(data: ndarray) -> Any:
    """A DLPack capsule of the array's memory, to be written; waits for the array.

    >>> type(npx.to_dlpack_for_write(np.ones(1))).__name__
    'PyCapsule'
    """
    return data.__dlpack__()


def from_numpy(ndarray: Any, zero_copy: bool = True) -> Any:
    """An array of NumPy's `ndarray`; with `zero_copy` they share the memory.

    >>> import numpy
    >>> npx.from_numpy(numpy.ones(1, 'float32'))
    array([1.])
    """
    return _core.from_buffer(ndarray) if zero_copy else _core.array(ndarray)
