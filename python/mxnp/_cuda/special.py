"""Special functions on CUDA: from `cupyx.scipy.special`, found beside the array module."""

from __future__ import annotations

import importlib
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


ROWS: dict[str, Row] = {"erf": erf, "erfinv": erfinv}
