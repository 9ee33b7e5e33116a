"""Rounding on CUDA."""

from __future__ import annotations

from ._row import Row, named

ROWS: dict[str, Row] = named("floor", "ceil", "trunc", "fix", "rint")
