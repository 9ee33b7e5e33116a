"""Reductions on CUDA. Sums of float16 and bfloat16 add up in float32, as on the CPU."""

from __future__ import annotations

from typing import Any

from ._row import Row, axes


def total(xp: Any, x: Any, *, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Any:
    """The sum over axes."""
    wide = "float32" if x.dtype.itemsize == 2 and x.dtype.kind not in "iu" else x.dtype
    return x.sum(axes(axis), dtype=wide, keepdims=keepdims).astype(x.dtype)


ROWS: dict[str, Row] = {"sum": total}
