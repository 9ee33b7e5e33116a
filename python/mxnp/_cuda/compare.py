"""Comparisons and truth on CUDA."""

from __future__ import annotations

from ._row import Row, named

ROWS: dict[str, Row] = named(
    "equal",
    "not_equal",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
    "logical_not",
    "isnan",
    "isinf",
    "isfinite",
    "signbit",
)
