"""Exponentials, logarithms and roots on CUDA."""

from __future__ import annotations

from typing import Any

from ._row import Row, named


def rsqrt(xp: Any, x: Any) -> Any:
    """1 / sqrt(x)."""
    return 1 / xp.sqrt(x)


ROWS: dict[str, Row] = {
    **named("exp", "expm1", "exp2", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "logaddexp"),
    "rsqrt": rsqrt,
}
