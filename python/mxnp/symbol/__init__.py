"""`mx.sym`: graphs of operators without arrays. Functions of 1.x by their names; `np` and `npx` as MXNet 2's."""

from __future__ import annotations

from typing import Any as _Any

from . import contrib, linalg, numpy, numpy_extension, random
from . import numpy as np
from . import numpy_extension as npx
from ._functions import (
    Custom,
    arange,
    concat,
    eye,
    full,
    hypot,
    linspace,
    maximum,
    minimum,
    mod,
    ones,
    power,
    split_v2,
    zeros,
)
from ._functions import power as pow
from ._namespace import function as _function
from .symbol import Group, Symbol, Variable, fromjson, load, load_json, var

__all__ = [
    "Custom",
    "Group",
    "Symbol",
    "Variable",
    "arange",
    "concat",
    "contrib",
    "eye",
    "fromjson",
    "full",
    "hypot",
    "linalg",
    "linspace",
    "load",
    "load_json",
    "maximum",
    "minimum",
    "mod",
    "np",
    "npx",
    "numpy",
    "numpy_extension",
    "ones",
    "pow",
    "power",
    "random",
    "split_v2",
    "var",
    "zeros",
]


def __getattr__(name: str) -> _Any:
    """An operator of 1.x by its name: `FullyConnected`, `broadcast_add`, `_plus_scalar`."""
    if name in ("op", "_internal"):
        import sys

        return sys.modules[__name__]
    return _function(__name__, "", name)
