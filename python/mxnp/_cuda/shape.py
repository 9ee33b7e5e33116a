"""Views and the two copies that undo a basic index, on CUDA.

A basic index arrives as the core's items: an integer, None, or (start, step, length).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._row import Row, axes

Item = int | None | tuple[int, int, int]


def basic(index: Sequence[Item]) -> tuple[Any, ...]:
    """The index as an array module takes it: the core's slices never wrap around and name their length."""
    out: list[Any] = []
    for item in index:
        if isinstance(item, tuple):
            start, step, length = item
            stop = start + step * length
            out.append(slice(start, None if stop < 0 else stop, step) if length else slice(0, 0))
        else:
            out.append(item)
    return (*out, ...)


def reshape(xp: Any, x: Any, *, shape: Any) -> Any:
    """The same elements in another shape."""
    return x.reshape(tuple(shape))


def broadcast_to(xp: Any, x: Any, *, shape: Any) -> Any:
    """The array repeated to a shape by strides of zero."""
    return xp.broadcast_to(x, tuple(shape))


def transpose(xp: Any, x: Any, *, axes: Any) -> Any:
    """The axes in another order."""
    return x.transpose(tuple(axes))


def expand_dims(xp: Any, x: Any, *, axis: Any) -> Any:
    """Axes of size 1 added."""
    return xp.expand_dims(x, axes(axis))


def squeeze(xp: Any, x: Any, *, axis: Any = None) -> Any:
    """Axes of size 1 taken away."""
    return xp.squeeze(x, axes(axis))


def flip(xp: Any, x: Any, *, axis: Any = None) -> Any:
    """The order turned round along axes."""
    return xp.flip(x, axes(axis))


def slice_(xp: Any, x: Any, *, index: Sequence[Item]) -> Any:
    """A basic index."""
    return x[basic(index)]


def slice_zero(xp: Any, g: Any, *, index: Sequence[Item], shape: Any) -> Any:
    """Zeros of `shape` with `g` at the index."""
    out = xp.zeros(tuple(shape), g.dtype)
    out[basic(index)] = g
    return out


def slice_assign(xp: Any, x: Any, value: Any, *, index: Sequence[Item]) -> Any:
    """`x` with `value` at the index, as a new array."""
    out = x.copy()
    out[basic(index)] = value
    return out


ROWS: dict[str, Row] = {
    "reshape": reshape,
    "broadcast_to": broadcast_to,
    "transpose": transpose,
    "expand_dims": expand_dims,
    "squeeze": squeeze,
    "flip": flip,
    "slice": slice_,
    "slice_zero": slice_zero,
    "slice_assign": slice_assign,
}
