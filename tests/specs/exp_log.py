"""Rows of exponentials, logarithms and roots."""

from __future__ import annotations

import numpy as onp

from specs.row import BINARY, COMPLEX, FLOATS, REAL, Domain, Row, binary, unary

POSITIVE = Domain(0.125, 4.0)
ANYWHERE = Domain()
APART = Domain(avoid=(0.0,), gap=0.25)


def floats(name: str, domain: Domain = ANYWHERE, dtypes: tuple[str, ...] = REAL, **kw):
    """A row of a floating function: integers become float32."""
    return unary(f"np.{name}", getattr(onp, name), dtypes, result="float", domain=(domain,), **kw)


ROWS = (
    floats("exp", dtypes=REAL + COMPLEX, loose=2),
    floats("exp2", dtypes=REAL + COMPLEX, loose=2),
    floats("expm1", dtypes=REAL + COMPLEX, loose=2),
    floats("log", POSITIVE, dtypes=REAL + COMPLEX, loose=2),
    floats("log2", POSITIVE, dtypes=REAL + COMPLEX, loose=2),
    floats("log10", POSITIVE, dtypes=REAL + COMPLEX, loose=2),
    floats("log1p", Domain(-0.75, 4.0), dtypes=REAL + COMPLEX, loose=2),
    floats("sqrt", POSITIVE, dtypes=REAL + COMPLEX),
    floats("cbrt", APART, loose=2),
    binary("np.logaddexp", onp.logaddexp, FLOATS, loose=2),
    Row("np.logaddexp2", onp.logaddexp2, FLOATS, BINARY, op=None, loose=4),
    unary("core.rsqrt", lambda x: 1 / onp.sqrt(x), FLOATS, domain=(POSITIVE,), loose=2),
)
