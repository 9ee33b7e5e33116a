"""Arithmetic on CUDA. Where cupy and the core read an operand differently (bools, integer powers) it is said here."""

from __future__ import annotations

from typing import Any

from ._row import Row, named


def clip(xp: Any, a: Any, low: Any, high: Any) -> Any:
    """Between the bounds; the upper one holds where they cross."""
    return xp.minimum(xp.maximum(a, low), high)


def copy(xp: Any, a: Any) -> Any:
    """The same elements in memory of their own."""
    return a.copy()


def power(xp: Any, a: Any, b: Any) -> Any:
    """`a ** b`; integers to negative powers are refused before a row runs."""
    return xp.power(a, b)


def scale(xp: Any, g: Any, d: Any) -> Any:
    """`g * d`, and 0 where g is 0."""
    return xp.where(g == 0, g, g * d)


def unscale(xp: Any, g: Any, d: Any) -> Any:
    """`g / d`, and 0 where g is 0."""
    return xp.where(g == 0, g, g / d)


ROWS: dict[str, Row] = {
    **named(
        "add",
        "subtract",
        "multiply",
        "true_divide",
        "floor_divide",
        "fmod",
        "negative",
        "positive",
        "absolute",
        "sign",
        "conjugate",
        "reciprocal",
        "square",
        "maximum",
        "minimum",
        "fmax",
        "fmin",
        "copysign",
        "hypot",
        "where",
        mod="remainder",
        fabs="absolute",
    ),
    "clip": clip,
    "copy": copy,
    "power": power,
    "integer_power": power,
    "_scale": scale,
    "_unscale": unscale,
}
