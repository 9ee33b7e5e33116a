"""Rows of creation: what makes arrays from shapes and numbers. Checked in full by tests/np; here each op once."""

from __future__ import annotations

import numpy as onp

from specs.row import NUMBERS, Bad, Case, Domain, Row


def made(name: str, *each: dict, **kw) -> Row:
    """A row of a function that takes no array: float32 in the default mode."""
    ref = getattr(onp, name)
    cases = tuple(Case((), attrs, core=None) for attrs in each)
    return Row(f"np.{name}", ref, ("float32",), cases, grad="takes no array", **kw)


ROWS = (
    made(
        "arange",
        {"start": 0, "stop": 7},
        {"start": 2, "stop": -3, "step": -1},
        {"start": 0.5, "stop": 3, "step": 0.25},
        {"start": 3, "stop": 1},
        {"start": 1, "stop": 9, "step": 2, "dtype": "int32"},
        bad=(
            Bad(lambda np, npx: np.arange(0, 3, 0), ZeroDivisionError, "step|division by zero|zero"),
            Bad(lambda np, npx: np.arange(), TypeError, "arange"),
        ),
    ),
    Row(
        "np.geomspace",
        onp.geomspace,
        ("float64",),
        (Case(((), ()), {"num": 5}), Case(((3,), (3,)), {"num": 4})),
        op=None,
        result="*",
        domain=(Domain(0.5, 8),),
        loose=1e8,  # float32 in the default mode
        grad="computed by NumPy",
    ),
    made(
        "linspace",
        {"start": 0, "stop": 1, "num": 5},
        {"start": 2, "stop": -2, "num": 7, "endpoint": False},
        {"start": 0, "stop": 1, "num": 1},
        {"start": 0, "stop": 1, "num": 0},
        bad=(Bad(lambda np, npx: np.linspace(0, 1, -1), ValueError, "must be non-negative"),),
    ),
    made(
        "eye",
        {"N": 3},
        {"N": 2, "M": 4, "k": 1},
        {"N": 3, "k": -1},
        {"N": 0},
        bad=(Bad(lambda np, npx: np.eye(-1), ValueError, "negative"),),
    ),
    Row(
        "np.zeros_like",
        onp.zeros_like,
        NUMBERS,
        (Case(((2, 3),), core=None), Case(((),), core=None)),
        op="full",
        grad="constant",
        wide=False,
    ),
    Row(
        "np.ones_like",
        onp.ones_like,
        NUMBERS,
        (Case(((2, 3),), core=None), Case(((0,),), core=None)),
        op="full",
        grad="constant",
        wide=False,
    ),
)
