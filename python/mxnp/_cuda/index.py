"""Indexing by arrays on CUDA. cupy wraps indices that are out of range; the device checks them first (cuda/index.cu),
so a row may count on indices in range, negative ones included.
"""

from __future__ import annotations

from typing import Any

from ._row import Row, cpu_only


def resolved(xp: Any, index: Any, size: int, mode: str) -> Any:
    """An index between 0 and `size` - 1."""
    if mode == "clip":
        return xp.clip(index, 0, size - 1)
    if mode == "wrap":
        return xp.remainder(index, size)
    return xp.where(index < 0, index + size, index)


def _places(xp: Any, shape: Any, axis: int, mode: str, indices: Any) -> tuple[Any, ...]:
    """A full index: everything before `axis`, then the index arrays together."""
    axis = axis % len(shape)
    at = [resolved(xp, index, shape[axis + k], mode) for k, index in enumerate(indices)]
    return (*[slice(None)] * axis, *at)


def index_get(xp: Any, x: Any, *indices: Any, axis: int = 0, mode: str = "raise", names: Any = None) -> Any:
    """Elements of consecutive axes at integer arrays broadcast together."""
    return x[_places(xp, x.shape, axis, mode, indices)]


def scatter_add(xp: Any, g: Any, *indices: Any, shape: Any, axis: int = 0, mode: str = "raise") -> Any:
    """Zeros of `shape` with `g` added up at the indices."""
    out = xp.zeros(tuple(shape), g.dtype)
    xp.add.at(out, _places(xp, out.shape, axis, mode, indices), g)
    return out


def index_assign(
    xp: Any, x: Any, value: Any, *indices: Any, axis: int = 0, mode: str = "raise", names: Any = None
) -> Any:
    """`x` with `value` at the indices, as a new array; of equal indices any may count on CUDA."""
    out = x.copy()
    out[_places(xp, x.shape, axis, mode, indices)] = value
    return out


def index_put(
    xp: Any, x: Any, value: Any, *indices: Any, axis: int = 0, mode: str = "raise", names: Any = None
) -> tuple[()]:
    """`value` written into `x` at the indices."""
    x[_places(xp, x.shape, axis, mode, indices)] = value
    return ()


def take_along_axis(
    xp: Any, x: Any, index: Any, *, axis: int, mode: str = "raise", caller: str | None = None
) -> Any:
    """One index for each position along an axis, other axes broadcast."""
    axis = axis % x.ndim
    index = resolved(xp, index, x.shape[axis], mode)
    wide = [max(a, b) for a, b in zip(x.shape, index.shape, strict=True)]
    to_x, to_index = list(wide), list(wide)
    to_x[axis], to_index[axis] = x.shape[axis], index.shape[axis]
    return xp.take_along_axis(xp.broadcast_to(x, to_x), xp.broadcast_to(index, to_index), axis)


def scatter_along(xp: Any, g: Any, index: Any, *, axis: int, size: int, mode: str = "raise") -> Any:
    """Zeros with `g` added up at one index for each position along an axis."""
    axis = axis % g.ndim
    index = xp.broadcast_to(resolved(xp, index, size, mode), g.shape)
    out = xp.zeros((*g.shape[:axis], size, *g.shape[axis + 1 :]), g.dtype)
    grid = list(xp.ogrid[tuple(slice(n) for n in g.shape)])
    grid[axis] = index
    xp.add.at(out, tuple(grid), g)
    return out


def pick(
    xp: Any,
    x: Any,
    index: Any,
    *,
    axis: int = -1,
    keepdims: bool = False,
    mode: str = "clip",
    caller: str | None = None,
) -> Any:
    """One element for each position of the other axes."""
    axis = axis % x.ndim
    index = index.reshape((*x.shape[:axis], 1, *x.shape[axis + 1 :]))
    found = take_along_axis(xp, x, index, axis=axis, mode=mode)
    return found if keepdims else found.reshape((*x.shape[:axis], *x.shape[axis + 1 :]))


def one_hot(
    xp: Any, index: Any, *, depth: int, on_value: float = 1.0, off_value: float = 0.0, dtype: Any = "float32"
) -> Any:
    """A row of `off_value` with `on_value` where the index points."""
    return xp.where(index[..., None] == xp.arange(depth), on_value, off_value).astype(dtype)


def mask_get(xp: Any, x: Any, mask: Any, *, count: int) -> Any:
    """The entries where a mask of the first axes holds."""
    return x[mask]


def mask_spread(xp: Any, g: Any, mask: Any) -> Any:
    """Zeros with the entries of `g` where the mask holds."""
    out = xp.zeros((*mask.shape, *g.shape[1:]), g.dtype)
    out[mask] = g
    return out


def mask_put(xp: Any, x: Any, value: Any, mask: Any, *, count: int) -> tuple[()]:
    """`value` written into `x` where the mask holds."""
    x[mask] = value
    return ()


def nonzero(xp: Any, x: Any, *, count: int) -> Any:
    """The indices of what is not zero, one row each."""
    return xp.argwhere(x)


def count_nonzero(xp: Any, x: Any) -> Any:
    """How many elements are not zero."""
    return xp.asarray(xp.count_nonzero(x))


def searchsorted(xp: Any, a: Any, v: Any, *, side: str = "left") -> Any:
    """Where values would go into a sorted array."""
    return xp.searchsorted(a, v, side)


ROWS: dict[str, Row] = {
    "index_get": index_get,
    "take": index_get,
    "scatter_add": scatter_add,
    "index_assign": index_assign,
    "index_put": index_put,
    "index_get_last": cpu_only("only gradients of assignments by index arrays use it; see index_assign"),
    "take_along_axis": take_along_axis,
    "scatter_along": scatter_along,
    "pick": pick,
    "mask_get": mask_get,
    "mask_spread": mask_spread,
    "mask_put": mask_put,
    "one_hot": one_hot,
    "nonzero": nonzero,
    "count_nonzero": count_nonzero,
    "searchsorted": searchsorted,
}
