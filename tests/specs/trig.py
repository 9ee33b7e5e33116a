"""Rows of trigonometric and hyperbolic functions and their inverses."""

from __future__ import annotations

import numpy as onp

from specs.row import COMPLEX, FLOATS, REAL, Domain, binary, unary

UNIT = Domain(-0.9, 0.9)
ANYWHERE = Domain()
APART = Domain(avoid=(0.0,), gap=0.25)


def floats(name: str, domain: Domain = ANYWHERE, dtypes: tuple[str, ...] = REAL + COMPLEX, **kw):
    """A row of a floating function: integers become float32."""
    return unary(f"np.{name}", getattr(onp, name), dtypes, result="float", domain=(domain,), loose=2, **kw)


ROWS = (
    floats("sin"),
    floats("cos"),
    floats("tan", Domain(-1.25, 1.25)),
    floats("arcsin", UNIT),
    floats("arccos", UNIT),
    floats("arctan"),
    floats("sinh"),
    floats("cosh"),
    floats("tanh"),
    floats("arcsinh"),
    floats("arccosh", Domain(1.25, 4.0)),
    floats("arctanh", UNIT),
    floats("degrees", dtypes=REAL),
    floats("radians", dtypes=REAL),
    binary("np.arctan2", onp.arctan2, FLOATS, domain=(APART, APART), loose=2),
)
