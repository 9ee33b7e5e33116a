"""How close two arrays must be, by dtype. The numbers are MXNet's; the least exact of two dtypes decides."""

from __future__ import annotations

from typing import Any

import numpy as onp

EXACT = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
RTOLS = {
    "bfloat16": 1e-1,
    "float16": 1e-2,
    "float32": 1e-4,
    "float64": 1e-5,
    "complex64": 1e-4,
    "complex128": 1e-5,
}
ATOLS = {
    "bfloat16": 1e-1,
    "float16": 1e-1,
    "float32": 1e-3,
    "float64": 1e-20,
    "complex64": 1e-3,
    "complex128": 1e-20,
}
# 2 to the minus third of the mantissa's bits, where rounding and truncation of a central difference balance.
NUMERIC_EPS = {"float16": 2.0**-6, "float32": 2.0**-9, "float64": 2.0**-14}


def _by_dtype(table: dict[str, float]) -> dict[onp.dtype, float]:
    known = {name: value for name, value in table.items() if name != "bfloat16"}
    return {onp.dtype(name): value for name, value in {**known, **dict.fromkeys(EXACT, 0)}.items()}


def default_rtols() -> dict[onp.dtype, float]:
    """Relative tolerance by dtype; integers must be equal.

    >>> default_rtols()[onp.dtype("int32")]
    0
    """
    return _by_dtype(RTOLS)


def default_atols() -> dict[onp.dtype, float]:
    """Absolute tolerance by dtype; integers must be equal.

    >>> default_atols()[onp.dtype("int32")]
    0
    """
    return _by_dtype(ATOLS)


def default_numeric_eps() -> dict[onp.dtype, float]:
    """Step of numeric gradients by dtype.

    >>> 0 < default_numeric_eps()[onp.dtype("float64")] < 1e-2
    True
    """
    return {onp.dtype(name): value for name, value in NUMERIC_EPS.items()}


def effective_dtype(dat: Any) -> onp.dtype:
    """The dtype whose accuracy `dat` has: its own, float64 for what has none.

    >>> effective_dtype(np.ones(1)), effective_dtype(1.5)
    (dtype('float32'), dtype('float64'))
    """
    return onp.dtype(getattr(dat, "dtype", onp.float64))


def get_tolerance(dat: Any, tol: float | None, default_tol: dict) -> float:
    """`tol`, or the entry of `default_tol` for the dtype of `dat`.

    >>> get_tolerance(np.ones(1), None, {onp.dtype("float32"): 0.1})
    0.1
    """
    return default_tol.get(effective_dtype(dat), 0) if tol is None else tol


def get_tols(x: Any, y: Any, rtol: float | None, atol: float | None) -> tuple[float, float]:
    """The (relative, absolute) tolerances for comparing x with y where None is given.

    >>> get_tols(np.ones(1), np.ones(1), 1e-2, 1e-3)
    (0.01, 0.001)
    """
    names = [effective_dtype(value).name for value in (x, y)]
    if rtol is None:
        rtol = max(RTOLS.get(name, 0) for name in names)
    if atol is None:
        atol = max(ATOLS.get(name, 0) for name in names)
    return rtol, atol


def get_rtol(rtol: float | None = None, dtype: Any = "float64") -> float:
    """`rtol`, or the default for `dtype`.

    >>> get_rtol(None, "int64")
    0
    """
    return RTOLS.get(onp.dtype(dtype).name, 0) if rtol is None else rtol


def get_atol(atol: float | None = None, dtype: Any = "float64") -> float:
    """`atol`, or the default for `dtype`.

    >>> get_atol(1e-3)
    0.001
    """
    return ATOLS.get(onp.dtype(dtype).name, 0) if atol is None else atol


def get_etol(etol: float | None = None) -> float:
    """`etol`, the share of elements that may differ, or 0.

    >>> get_etol()
    0
    """
    return 0 if etol is None else etol
