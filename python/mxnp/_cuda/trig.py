"""Trigonometric and hyperbolic functions on CUDA."""

from __future__ import annotations

from ._row import Row, named

ROWS: dict[str, Row] = named(
    "sin",
    "cos",
    "tan",
    "arcsin",
    "arccos",
    "arctan",
    "sinh",
    "cosh",
    "tanh",
    "arcsinh",
    "arccosh",
    "arctanh",
    "degrees",
    "radians",
    "arctan2",
)
