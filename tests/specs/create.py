"""Rows of creation: what makes arrays from shapes and numbers. Checked in full by tests/np; here each op once."""

from __future__ import annotations

import numpy as onp

from specs.row import NUMBERS, Row, shapes

ROWS = (
    Row(
        "np.zeros_like",
        onp.zeros_like,
        NUMBERS,
        (shapes((2, 3)), shapes(())),
        op="full",
        grad="constant",
        wide=False,
    ),
    Row(
        "np.ones_like",
        onp.ones_like,
        NUMBERS,
        (shapes((2, 3)), shapes((0,))),
        op="full",
        grad="constant",
        wide=False,
    ),
)
