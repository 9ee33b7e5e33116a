"""Rows of rounding to whole numbers."""

from __future__ import annotations

import numpy as onp

from specs.row import BOOL, COMPLEX, FLOATS, INTS, REAL, Domain, unary

STEPS = Domain(avoid=tuple(k / 2 for k in range(-8, 9)), gap=0.1)  # away from where rounding jumps

ROWS = (
    unary("np.rint", onp.rint, FLOATS + COMPLEX, grad=0, domain=(STEPS,)),
    unary("np.rint", onp.rint, INTS + BOOL, grad=0, result="float"),
    unary("np.floor", onp.floor, REAL, grad=0, domain=(STEPS,)),
    unary("np.ceil", onp.ceil, REAL, grad=0, domain=(STEPS,)),
    unary("np.trunc", onp.trunc, REAL, grad=0, domain=(STEPS,)),
    unary("np.fix", onp.trunc, FLOATS, grad=0, domain=(STEPS,)),
)
