"""Rows of comparison and logic: equal, less, logical_and, isnan."""

from __future__ import annotations

import numpy as onp

from specs.row import ALL, FLOATS, NUMBERS, REAL, Case, Domain, Row, binary, shapes, unary

FEW = Domain(-2, 2)  # few values, so that integers are equal often


def compared(name: str, dtypes: tuple[str, ...] = ALL):
    """A row of a comparison."""
    return binary(f"np.{name}", getattr(onp, name), dtypes, result="bool", domain=(FEW,), grad=0)


def question(name: str, dtypes: tuple[str, ...] = FLOATS):
    """A row of a test of each element."""
    return unary(f"np.{name}", getattr(onp, name), dtypes, result="bool", grad=0)


ROWS = (
    compared("equal"),
    compared("not_equal"),
    compared("less", REAL + ("bool",)),
    compared("less_equal", REAL + ("bool",)),
    compared("greater", REAL + ("bool",)),
    compared("greater_equal", REAL + ("bool",)),
    compared("logical_and"),
    compared("logical_or"),
    compared("logical_xor"),
    unary("np.logical_not", onp.logical_not, ALL, result="bool", domain=(FEW,), grad=0),
    question("isnan", FLOATS + ("complex64", "int32")),
    question("isinf", FLOATS + ("complex64", "int32")),
    question("isfinite", FLOATS + ("complex64", "int32")),
    question("signbit", ("float16", "float32", "float64")),
    Row("np.isclose", onp.isclose, FLOATS[2:], (shapes((3, 4), (3, 4)),), op=None, result="bool", grad=0),
    Row(
        "np.array_equal",
        lambda x, y: onp.asarray(onp.array_equal(x, y)),
        NUMBERS,
        (shapes((3,), (3,)), shapes((3,), (4,)), shapes((0,), (0,))),
        op=None,
        result="bool",
        grad="gives a Python bool",
    ),
    Row(
        "np.allclose",
        lambda x, y: onp.asarray(onp.allclose(x, y)),
        ("float32", "float64", "int32"),
        (Case(((3,), (3,))),),
        op=None,
        result="bool",
        grad="gives a Python bool",
    ),
)
