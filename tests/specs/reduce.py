"""Rows of reductions: sum, prod, max, argmax, mean, var, all, any."""

from __future__ import annotations

import numpy as onp

from specs.row import ALL, BOOL, COMPLEX, FLOATS, REAL, Bad, Domain, Row, public, shapes

AXES = (
    shapes((3, 4)),
    shapes((3, 4), axis=0),
    shapes((3, 4), axis=-1, keepdims=True),
    shapes((2, 3, 4), axis=(0, 2)),
    shapes((2, 3, 4), axis=None, keepdims=True),
    shapes((2, 3, 4), axis=1),
    shapes(()),
    shapes((70, 130), axis=0),
    shapes((70, 130), axis=1),
)
EMPTY = (shapes((0, 3), axis=0), shapes((3, 0), axis=1), shapes((0, 3), axis=1))
ONE_AXIS = (
    shapes((3, 4)),
    shapes((3, 4), axis=0),
    shapes((2, 3, 4), axis=-1, keepdims=True),
    shapes((2, 3, 4), axis=1),
    shapes((70, 130), axis=0),
    shapes((0, 3), axis=1),
)
DISTINCT = Domain(-20, 20, distinct=True)


def bad_axis(name: str) -> tuple[Bad, ...]:
    """Axes that are not there, or twice."""
    return (
        Bad(
            lambda np, npx: public(np, npx, name)(np.ones((2, 3)), axis=2),
            onp.exceptions.AxisError,
            r"axis 2 is out of bounds for array of dimension 2",
        ),
        Bad(
            lambda np, npx: public(np, npx, name)(np.ones((2, 3)), axis=-3),
            onp.exceptions.AxisError,
            r"axis -3 is out of bounds for array of dimension 2",
        ),
    )


def twice(name: str) -> tuple[Bad, ...]:
    """The same axis named twice."""
    return (
        Bad(
            lambda np, npx: public(np, npx, name)(np.ones((2, 3)), axis=(0, 0)),
            ValueError,
            "duplicate|repeated",
        ),
    )


def empty(name: str) -> tuple[Bad, ...]:
    """No element to choose from."""
    return (
        Bad(
            lambda np, npx: public(np, npx, name)(np.ones((0, 3)), axis=0),
            ValueError,
            r"zero-size array|empty sequence",
        ),
    )


def reduction(name: str, dtypes: tuple[str, ...], **kw) -> Row:
    """A row of a reduction over any set of axes, against NumPy's function of that name."""
    bad = bad_axis(f"np.{name}") + twice(f"np.{name}") + kw.pop("bad", ())
    return Row(
        f"np.{name}",
        kw.pop("ref", getattr(onp, name)),
        dtypes,
        kw.pop("cases", AXES),
        bad=bad,
        out=True,
        **kw,
    )


def floats_of(dtype: str) -> str:
    """What means give: the floating dtype itself, float32 for integers."""
    return dtype if dtype in FLOATS + COMPLEX else "float32"


def real_of(dtype: str) -> str:
    """What variances give."""
    return {"complex64": "float32", "complex128": "float64"}.get(floats_of(dtype), floats_of(dtype))


ROWS = (
    reduction("sum", ALL, result="sum", cases=AXES + EMPTY, loose=8),
    reduction("prod", ALL, result="sum", cases=AXES[:7] + EMPTY, domain=(Domain(0.5, 1.5),), loose=8),
    reduction("mean", ALL, result=floats_of, loose=8),
    reduction("var", REAL, result=real_of, loose=16),
    reduction("std", REAL, result=real_of, loose=16, cases=tuple(c for c in AXES if c.shapes != ((),))),
    reduction("max", REAL + BOOL, domain=(DISTINCT,), bad=empty("np.max")),
    reduction("min", REAL + BOOL, domain=(DISTINCT,), bad=empty("np.min")),
    reduction("all", ALL, result="bool", cases=AXES + EMPTY, grad=0),
    reduction("any", ALL, result="bool", cases=AXES + EMPTY, grad=0),
    Row(
        "np.argmax",
        onp.argmax,
        REAL + BOOL,
        ONE_AXIS,
        result="int64",
        domain=(Domain(-2, 2),),
        grad=0,
        out=True,
        bad=bad_axis("np.argmax") + empty("np.argmax"),
    ),
    Row(
        "np.argmin",
        onp.argmin,
        REAL + BOOL,
        ONE_AXIS,
        result="int64",
        domain=(Domain(-2, 2),),
        grad=0,
        out=True,
        bad=bad_axis("np.argmin") + empty("np.argmin"),
    ),
    Row(
        "np.ptp",
        onp.ptp,
        REAL,
        ONE_AXIS[:4],
        op=None,
        domain=(Domain(-20, 20, distinct=True),),
        bad=bad_axis("np.ptp"),
    ),
    Row(
        "np.average",
        onp.average,
        FLOATS,
        (shapes((3, 4)), shapes((3, 4), axis=0)),
        op=None,
        loose=8,
        bad=bad_axis("np.average"),
    ),
)
