"""Sorting on CUDA. NaN is the greatest and equal elements keep their order, ascending and descending."""

from __future__ import annotations

from typing import Any

from ._row import Row, cpu_only


def argsort(xp: Any, x: Any, *, axis: int = -1, is_ascend: bool = True) -> Any:
    """The positions that sort `x`."""
    if not x.ndim:
        return xp.zeros((), "int64")
    if is_ascend:
        return xp.argsort(x, axis, kind="stable")
    back = xp.argsort(xp.flip(x, axis), axis, kind="stable")
    return x.shape[axis] - 1 - xp.flip(back, axis)


def sort(xp: Any, x: Any, *, axis: int = -1, is_ascend: bool = True) -> tuple[Any, Any]:
    """The elements in order, and their positions (a hidden output)."""
    order = argsort(xp, x, axis=axis, is_ascend=is_ascend)
    return (x if not x.ndim else xp.take_along_axis(x, order, axis)), order


ROWS: dict[str, Row] = {
    "argsort": argsort,
    "sort": sort,
    "topk": cpu_only("the rules for ties and NaN of the CPU's selection are not written for CUDA yet"),
}
