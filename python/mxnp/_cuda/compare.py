"""Comparisons and truth on CUDA."""

from __future__ import annotations

from typing import Any

from ._row import Row, named


def _comparison(name: str) -> Row:
    def row(xp: Any, a: Any, b: Any) -> Any:
        compare = getattr(xp, name)
        if a.dtype == b.dtype:
            return compare(a, b)
        kinds = a.dtype.kind + b.dtype.kind
        if "f" in kinds:  # an integer scalar that is out of the array's range: its sign decides
            a, b = (xp.zeros(x.shape, "float64") if x.dtype.kind == "b" else x for x in (a, b))
            return compare(a, b)
        # int64 and uint64: a negative number is below all others, the rest are alike.
        negative = a < 0 if kinds == "iu" else b < 0
        zero, minus = xp.zeros((), "int64"), -xp.ones((), "int64")
        below = compare(minus, zero) if kinds == "iu" else compare(zero, minus)
        return xp.where(negative, below, compare(a.astype("uint64"), b.astype("uint64")))

    row.__name__ = row.__qualname__ = name
    row.__doc__ = f"`xp.{name}`, exact for every pair of integers."
    return row


_ORDERS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
ROWS: dict[str, Row] = {name: _comparison(name) for name in _ORDERS} | named(
    "logical_and",
    "logical_or",
    "logical_xor",
    "logical_not",
    "isnan",
    "isinf",
    "isfinite",
    "signbit",
)
