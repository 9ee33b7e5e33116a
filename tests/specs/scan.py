"""Rows of running sums and products."""

from __future__ import annotations

import numpy as onp

from specs.reduce import bad_axis
from specs.row import ALL, NUMBERS, Domain, Row, shapes

LINES = (
    shapes((3, 4)),
    shapes((3, 4), axis=0),
    shapes((2, 3, 4), axis=1),
    shapes((5,), axis=-1),
    shapes((0, 3), axis=0),
    shapes((70, 130), axis=1),
)


def recurrence(a, b, axis=0, reverse=False, shifted=False):
    """y[k] = b[k] + a[k] y[k-1] along the axis, or with a[k-1]."""
    a, b = (onp.moveaxis(x, axis, 0)[:: -1 if reverse else 1] for x in (a, b))
    y = b.copy()
    for k in range(1, len(y)):
        y[k] += a[k - shifted] * y[k - 1]
    return onp.moveaxis(y[:: -1 if reverse else 1], 0, axis)


ROWS = (
    Row("np.cumsum", onp.cumsum, ALL, LINES, result="sum", loose=16, out=True, bad=bad_axis("np.cumsum")),
    Row(
        "np.cumprod",
        onp.cumprod,
        ALL,
        LINES[:5],
        result="sum",
        loose=16,
        out=True,
        domain=(Domain(0.5, 1.5),),
        bad=bad_axis("np.cumprod"),
    ),
    Row(
        "core._recurrence",
        recurrence,
        NUMBERS,
        (
            shapes((5,), (5,)),
            shapes((3, 4), (3, 4), axis=1, reverse=True),
            shapes((3, 4), (3, 4), axis=0, shifted=True),
            shapes((2, 3, 4), (2, 3, 4), axis=1, reverse=True, shifted=True),
            shapes((0, 3), (0, 3)),
            shapes((70, 130), (70, 130), axis=1),
        ),
        op="_recurrence",
        domain=(Domain(-0.9, 0.9), Domain(-2, 2)),
        loose=16,
    ),
)
