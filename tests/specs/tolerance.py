"""How far a result may be from its reference: one table by dtype, used by every driver.

A row may widen it by a factor (`Row.loose`) where errors add up, as in sums; nothing else sets a tolerance.
"""

from __future__ import annotations

import ml_dtypes
import numpy as onp

# dtype: (relative, absolute). About four units in the last place; float16 and bfloat16 round after each step.
TOLERANCE = {
    "float16": (2e-3, 1e-3),
    "bfloat16": (1.6e-2, 8e-3),
    "float32": (1e-6, 1e-6),
    "float64": (1e-13, 1e-13),
    "complex64": (2e-6, 2e-6),
    "complex128": (2e-13, 2e-13),
}

# Of a directional derivative against a central difference in float64, for the first and the second order.
DERIVATIVE = {1: (1e-6, 1e-7), 2: (1e-5, 1e-6)}

BFLOAT16 = onp.dtype(ml_dtypes.bfloat16)


def numpy_dtype(name: str) -> onp.dtype:
    """The NumPy dtype called `name`, bfloat16 included."""
    return BFLOAT16 if name == "bfloat16" else onp.dtype(name)


def widened(x: onp.ndarray) -> onp.ndarray:
    """`x` in the precision that references compute in: float64 or complex128; integers and bools as they are."""
    if x.dtype == BFLOAT16 or x.dtype.kind == "f":
        return x.astype("float64")
    return x.astype("complex128") if x.dtype.kind == "c" else x


def assert_close(got: onp.ndarray, want: onp.ndarray, loose: float = 1.0, what: str = "") -> None:
    """Equal shapes; equal values for integers and bools, values within the table for the others."""
    assert got.shape == want.shape, f"{what}: shape {got.shape}, expected {want.shape}"
    name = got.dtype.name
    if name not in TOLERANCE:
        onp.testing.assert_array_equal(got, want.astype(got.dtype), err_msg=what)
        return
    rtol, atol = (t * loose for t in TOLERANCE[name])
    with onp.errstate(over="ignore"):
        want = widened(want.astype(got.dtype) if want.dtype.kind in "biu" else rounded(want, got.dtype))
    onp.testing.assert_allclose(widened(got), want, rtol=rtol, atol=atol, err_msg=what)


def rounded(x: onp.ndarray, dtype: onp.dtype) -> onp.ndarray:
    """`x` as `dtype` would hold it: beyond its range infinite."""
    return onp.asarray(x).astype(dtype)
