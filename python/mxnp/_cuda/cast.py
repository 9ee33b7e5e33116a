"""Conversion between dtypes on CUDA."""

from __future__ import annotations

from typing import Any

from ._row import Row


def astype(xp: Any, x: Any, *, dtype: Any) -> Any:
    """The elements in another dtype."""
    return x.astype(dtype)


ROWS: dict[str, Row] = {"astype": astype}
