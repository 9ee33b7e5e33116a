"""Bits of integers and bools on CUDA."""

from __future__ import annotations

from ._row import Row, named

ROWS: dict[str, Row] = named(
    "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", bitwise_not="invert"
)
