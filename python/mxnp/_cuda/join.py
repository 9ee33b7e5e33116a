"""Arrays put together, repeated and rolled, on CUDA."""

from __future__ import annotations

from typing import Any

from ._row import Row


def concatenate(xp: Any, *arrays: Any, axis: int = 0) -> Any:
    """The arrays one after another along an axis."""
    return xp.concatenate(arrays, axis)


def stack(xp: Any, *arrays: Any, axis: int = 0) -> Any:
    """The arrays along a new axis."""
    return xp.stack(arrays, axis)


def repeat(xp: Any, x: Any, *, repeats: int, axis: int) -> Any:
    """Each element several times along an axis."""
    return xp.repeat(x, repeats, axis)


def tile(xp: Any, x: Any, *, reps: Any) -> Any:
    """The whole array several times along each axis."""
    return xp.tile(x, reps if isinstance(reps, int) else tuple(reps))


def roll(xp: Any, x: Any, *, shift: Any, axis: Any) -> Any:
    """The elements moved along axes, the last coming round to the front."""
    pairs = zip(_several(shift), _several(axis), strict=True)
    for by, along in pairs:
        x = xp.roll(x, by, along)
    return x


def _several(value: Any) -> tuple[int, ...]:
    return (value,) if isinstance(value, int) else tuple(value)


def pad(xp: Any, x: Any, value: Any, *, pad_width: Any) -> Any:
    """`x` with `value` around it; widths come as before, after, before, after, ..."""
    widths = list(zip(pad_width[::2], pad_width[1::2], strict=True))
    out = xp.empty([before + n + after for n, (before, after) in zip(x.shape, widths, strict=True)], x.dtype)
    out[...] = value
    out[tuple(slice(before, before + n) for n, (before, _) in zip(x.shape, widths, strict=True))] = x
    return out


ROWS: dict[str, Row] = {
    "concatenate": concatenate,
    "stack": stack,
    "repeat": repeat,
    "tile": tile,
    "roll": roll,
    "pad": pad,
}
