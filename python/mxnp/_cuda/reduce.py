"""Reductions on CUDA. As on the CPU, sums of float16 and bfloat16 add up in float32, those of integers in 64 bits."""

from __future__ import annotations

from typing import Any

from ._row import Row, axes


def _wide(x: Any) -> Any:
    """The dtype that sums of `x` add up in."""
    return "float32" if x.dtype.itemsize == 2 and x.dtype.kind not in "iu" else x.dtype


def _added(name: str) -> Row:
    """A sum, product or mean over axes."""

    def row(xp: Any, x: Any, *, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Any:
        if x.dtype.kind in "biu":
            return getattr(xp, name)(x, axes(axis), keepdims=keepdims)
        return getattr(xp, name)(x, axes(axis), dtype=_wide(x), keepdims=keepdims).astype(x.dtype)

    return _documented(row, name)


def _spread(name: str) -> Row:
    """A variance or its root over axes."""

    def row(
        xp: Any, x: Any, *, axis: Any = None, keepdims: bool = False, dtype: Any = None, ddof: float = 0.0
    ) -> Any:
        return getattr(xp, name)(x, axes(axis), dtype=_wide(x), ddof=ddof, keepdims=keepdims)

    return _documented(row, name)


def _squares(xp: Any, x: Any, *, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Any:
    """The sum of squares about the mean over axes."""
    apart = x - x.mean(axes(axis), keepdims=True)
    return (apart * apart).sum(axes(axis), keepdims=keepdims)


def _chosen(name: str) -> Row:
    """An extreme value, or a truth of all elements, over axes."""

    def row(xp: Any, x: Any, *, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Any:
        return getattr(xp, name)(x, axes(axis), keepdims=keepdims)

    return _documented(row, name)


def _placed(name: str) -> Row:
    """The position of an extreme value along an axis."""

    def row(xp: Any, x: Any, *, axis: int | None = None, keepdims: bool = False) -> Any:
        return getattr(xp, name)(x, axis, keepdims=keepdims)

    return _documented(row, name)


def _documented(row: Any, name: str) -> Row:
    row.__name__ = row.__qualname__ = name
    row.__doc__ = f"`xp.{name}` over axes."
    return row


ROWS: dict[str, Row] = {
    **{name: _added(name) for name in ("sum", "prod", "mean")},
    **{name: _spread(name) for name in ("var", "std")},
    **{name: _chosen(name) for name in ("max", "min", "all", "any")},
    **{name: _placed(name) for name in ("argmax", "argmin")},
    "_squares": _squares,
}
