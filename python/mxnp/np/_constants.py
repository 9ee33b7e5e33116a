"""Constants, dtypes and what describes them."""

from __future__ import annotations

from typing import Any

import numpy as onp
from numpy import (
    complex64,
    complex128,
    dtype,
    float16,
    float32,
    float64,
    generic,
    get_printoptions,
    int8,
    int16,
    int32,
    int64,
    int_,
    intc,
    intp,
    printoptions,
    set_printoptions,
    uint8,
    uint16,
    uint32,
    uint64,
)

from .. import _core

__all__ = [
    "NAN",
    "NINF",
    "NZERO",
    "PINF",
    "PZERO",
    "NaN",
    "bool",
    "bool_",
    "boolean_dtypes",
    "complex64",
    "complex128",
    "dtype",
    "e",
    "euler_gamma",
    "float16",
    "float32",
    "float64",
    "floating_dtypes",
    "generic",
    "get_printoptions",
    "iinfo",
    "inf",
    "int8",
    "int16",
    "int32",
    "int64",
    "int_",
    "intc",
    "integer_dtypes",
    "intp",
    "nan",
    "newaxis",
    "numeric_dtypes",
    "pi",
    "printoptions",
    "set_printoptions",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]

bool = bool_ = onp.bool_
e, euler_gamma, pi = onp.e, onp.euler_gamma, onp.pi
inf, nan = onp.inf, onp.nan
newaxis = None
NAN = NaN = nan
PINF, NINF = inf, -inf
PZERO, NZERO = 0.0, -0.0

# MXNet's lists of names.
boolean_dtypes = ["bool"]
integer_dtypes = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
floating_dtypes = ["float16", "float32", "float64"]
numeric_dtypes = [*integer_dtypes, *floating_dtypes]


def iinfo(type: Any) -> onp.iinfo:
    """The limits of an integer dtype, as NumPy's iinfo.

    >>> int(np.iinfo('int8').max)
    127
    """
    return onp.iinfo(_core.dtype(getattr(type, "dtype", type)))
