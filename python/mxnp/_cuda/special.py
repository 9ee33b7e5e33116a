"""Special functions on CUDA: from `cupyx.scipy.special`, found beside the array module."""

from __future__ import annotations

import importlib
import math
from types import ModuleType
from typing import Any

from ._row import Row


def special(xp: Any) -> ModuleType:
    """SciPy's functions for the array module: `cupyx.scipy.special` for cupy, `scipy.special` for NumPy."""
    name = "cupyx.scipy.special" if xp.__name__ == "cupy" else "scipy.special"
    return importlib.import_module(name)


def erf(xp: Any, x: Any) -> Any:
    """The error function."""
    return special(xp).erf(x)


def erfinv(xp: Any, x: Any) -> Any:
    """The inverse of the error function."""
    return special(xp).erfinv(x)


def sigmoid(xp: Any, x: Any) -> Any:
    """1 / (1 + exp(-x))."""
    return special(xp).expit(x)


def relu(xp: Any, x: Any) -> Any:
    """max(x, 0)."""
    return xp.maximum(x, xp.zeros((), x.dtype))


def softplus(xp: Any, x: Any) -> Any:
    """log(1 + exp(x))."""
    return xp.logaddexp(x, xp.zeros((), x.dtype))


def gelu(xp: Any, x: Any) -> Any:
    """x times the normal distribution function."""
    return x * (0.5 + 0.5 * special(xp).erf(x * math.sqrt(0.5)))


def silu(xp: Any, x: Any) -> Any:
    """x sigmoid(x)."""
    return x * special(xp).expit(x)


ROWS: dict[str, Row] = {
    "erf": erf,
    "erfinv": erfinv,
    "sigmoid": sigmoid,
    "relu": relu,
    "softplus": softplus,
    "gelu": gelu,
    "silu": silu,
}
