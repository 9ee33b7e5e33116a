"""Rows of conversions between dtypes: every pair, against NumPy's `astype`."""

from __future__ import annotations

from specs.row import ALL, Domain, Row, shapes
from specs.tolerance import numpy_dtype


def cast_to(target: str) -> Row:
    """A row of the conversion to `target`; values are within every dtype's range."""

    def ref(x, dtype):
        return x.real.astype(numpy_dtype(dtype)) if x.dtype.kind == "c" else x.astype(numpy_dtype(dtype))

    sources = tuple(d for d in ALL if "complex" not in d or "complex" in target)
    if "complex" in target:
        ref = lambda x, dtype: x.astype(dtype)  # noqa: E731
    return Row(
        "ndarray.astype",
        ref,
        sources,
        (shapes((3, 4), dtype=target), shapes((), dtype=target), shapes((0, 3), dtype=target)),
        op="astype",
        domain=(Domain(0, 100),),
        result=target,
        grad=2 if target == "float64" else "finite differences take float64 on both sides",
        wide=False,
        specials=False,
    )


ROWS = tuple(cast_to(target) for target in ALL)
