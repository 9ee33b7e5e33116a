"""Rows of special functions, against SciPy."""

from __future__ import annotations

import scipy.special

from specs.row import FLOATS, Domain, unary

ROWS = (
    unary("npx.erf", scipy.special.erf, FLOATS, loose=2),
    unary("npx.erfinv", scipy.special.erfinv, FLOATS, domain=(Domain(-0.9, 0.9),), loose=8),
)
