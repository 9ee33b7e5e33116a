"""Rows of special functions, against SciPy."""

from __future__ import annotations

import scipy.special

from specs.row import FLOATS, Domain, unary

POSITIVE = Domain(0.5, 4.0)

ROWS = (
    unary("npx.erf", scipy.special.erf, FLOATS, loose=2),
    unary("npx.erfinv", scipy.special.erfinv, FLOATS, domain=(Domain(-0.9, 0.9),), loose=8),
    unary("npx.gamma", scipy.special.gamma, FLOATS, domain=(POSITIVE,), loose=16),
    unary("npx.gammaln", scipy.special.gammaln, FLOATS, domain=(POSITIVE,), loose=16),
    unary("npx.digamma", scipy.special.digamma, FLOATS, domain=(POSITIVE,), loose=16),
)
