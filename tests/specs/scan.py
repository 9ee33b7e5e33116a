"""Rows of running sums and products."""

from __future__ import annotations

import numpy as onp

from specs.reduce import bad_axis
from specs.row import ALL, Domain, Row, shapes

LINES = (
    shapes((3, 4)),
    shapes((3, 4), axis=0),
    shapes((2, 3, 4), axis=1),
    shapes((5,), axis=-1),
    shapes((0, 3), axis=0),
    shapes((70, 130), axis=1),
)

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
        grad=1,  # the core says so: its rule has none of its own
        bad=bad_axis("np.cumprod"),
    ),
)
