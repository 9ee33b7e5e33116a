"""Rows of special functions, against SciPy."""

from __future__ import annotations

import numpy as onp
import scipy.special

from specs.row import FLOATS, REAL, Domain, unary

APART = Domain(avoid=(0.0,), gap=0.25)


def gelu(x):
    """x times the normal distribution function of x."""
    return x * 0.5 * (1 + scipy.special.erf(x / onp.sqrt(2)))


ROWS = (
    unary("npx.erf", scipy.special.erf, FLOATS, loose=2),
    unary("npx.relu", lambda x: onp.maximum(x, 0), REAL, domain=(APART,)),
    unary("npx.sigmoid", scipy.special.expit, FLOATS, loose=2),
    unary("npx.softrelu", lambda x: onp.logaddexp(x, 0), FLOATS, op="softplus", loose=2),
    unary("npx.gelu", gelu, FLOATS, loose=4),
    unary("npx.silu", lambda x: x * scipy.special.expit(x), FLOATS, loose=2),
    unary("npx.erfinv", scipy.special.erfinv, FLOATS, domain=(Domain(-0.9, 0.9),), loose=8),
)
