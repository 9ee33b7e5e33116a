"""NumPy's functions called on mxnp's arrays: `numpy.mean(x)` is `mxnp.np.mean(x)`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as onp

from .. import _core
from .._core import Ufunc
from . import linalg


def register(namespace: Mapping[str, Any]) -> None:
    """Tells the core what NumPy's functions become; ufuncs are known to it by name already."""
    table: dict[Any, Any] = {}
    for ours, theirs in ((namespace, onp), (vars(linalg), onp.linalg)):
        for name, function in ours.items():
            known = getattr(theirs, name, None) if not name.startswith("_") else None
            takes_arrays = callable(known) and not isinstance(known, type) and callable(function)
            if takes_arrays and not isinstance(function, (Ufunc, type)):
                table[known] = function
    # NumPy's functions that take no arrays or mean NumPy's own state stay NumPy's.
    for function in (onp.set_printoptions, onp.get_printoptions, onp.isscalar, onp.from_dlpack):
        table.pop(function, None)
    _core.register_array_functions(table)
