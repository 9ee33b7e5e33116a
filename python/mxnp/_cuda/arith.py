"""Arithmetic on CUDA. Division rounds as the core's does; bools are added as `or`, multiplied as `and`, by cupy too."""

from __future__ import annotations

from ._row import Row, named

ROWS: dict[str, Row] = named(
    "add",
    "subtract",
    "multiply",
    "true_divide",
    "negative",
)
