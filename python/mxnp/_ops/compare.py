"""Comparisons and truth: equal, logical_and, isnan, and tests of closeness."""

from __future__ import annotations

from typing import Any

import numpy as onp

from mxnp._core import ndarray

from ._table import as_array, ufunc
from .arith import absolute

equal = ufunc("equal", "x1 == x2.", ">>> np.equal(np.array([1, 2]), 2)\narray([False,  True])")
not_equal = ufunc("not_equal", "x1 != x2.", ">>> np.not_equal(np.array([1, 2]), 2)\narray([ True, False])")
less = ufunc("less", "x1 < x2.", ">>> np.less(np.array([1, 2]), 2)\narray([ True, False])")
less_equal = ufunc("less_equal", "x1 <= x2.", ">>> np.less_equal(np.array([1, 2]), 1)\narray([ True, False])")
greater = ufunc("greater", "x1 > x2.", ">>> np.greater(np.array([1, 2]), 1)\narray([False,  True])")
greater_equal = ufunc(
    "greater_equal", "x1 >= x2.", ">>> np.greater_equal(np.array([1, 2]), 2)\narray([False,  True])"
)
logical_and = ufunc(
    "logical_and",
    "x1 and x2, as truth values.",
    ">>> np.logical_and(np.array([0, 2]), 1)\narray([False,  True])",
)
logical_or = ufunc(
    "logical_or",
    "x1 or x2, as truth values.",
    ">>> np.logical_or(np.array([0, 2]), 0)\narray([False,  True])",
)
logical_xor = ufunc(
    "logical_xor",
    "Whether exactly one of x1 and x2 is true.",
    ">>> np.logical_xor(np.array([0, 2]), 1)\narray([ True, False])",
)
logical_not = ufunc(
    "logical_not", "Whether x is false.", ">>> np.logical_not(np.array([0, 2]))\narray([ True, False])"
)
isnan = ufunc("isnan", "Whether x is NaN.", ">>> np.isnan(np.array([1, np.nan]))\narray([False,  True])")
isinf = ufunc(
    "isinf", "Whether x is infinite.", ">>> np.isinf(np.array([1, -np.inf]))\narray([False,  True])"
)
isfinite = ufunc(
    "isfinite",
    "Whether x is neither infinite nor NaN.",
    ">>> np.isfinite(np.array([1, np.nan]))\narray([ True, False])",
)
signbit = ufunc(
    "signbit", "Whether the sign bit is set.", ">>> np.signbit(np.array([-1.0, 1.0]))\narray([ True, False])"
)


def isposinf(x: Any, out: ndarray | None = None) -> ndarray:
    """Whether x is plus infinity.

    >>> np.isposinf(np.array([np.inf, -np.inf]))
    array([ True, False])
    """
    return equal(x, onp.inf, out=out)


def isneginf(x: Any, out: ndarray | None = None) -> ndarray:
    """Whether x is minus infinity.

    >>> np.isneginf(np.array([np.inf, -np.inf]))
    array([False,  True])
    """
    return equal(x, -onp.inf, out=out)


def isclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> ndarray:
    """Whether |a - b| <= atol + rtol * |b|, elementwise; equal infinities are close.

    >>> np.isclose(np.array([1.0, 2.0]), np.array([1.0, 2.1]))
    array([ True, False])
    """
    x, y = as_array(a), as_array(b)
    # Differences of integers would wrap around: 3 - 5 of uint8, abs of the least int64.
    if x.dtype.kind in "iub":
        x = x.astype("float64")
    if y.dtype.kind in "iub":
        y = y.astype("float64")
    near = logical_and(less_equal(absolute(x - y), atol + rtol * absolute(y)), isfinite(y))
    result = logical_or(near, equal(x, y))
    return logical_or(result, logical_and(isnan(x), isnan(y))) if equal_nan else result


def allclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether `isclose` holds everywhere; waits for the arrays.

    >>> np.allclose(np.array([1.0]), np.array([1.0 + 1e-7]))
    True
    """
    return bool(isclose(a, b, rtol, atol, equal_nan).all())


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    """Whether both have the same shape and elements; waits for the arrays.

    >>> np.array_equal(np.array([1, 2]), [1, 2])
    True
    """
    x, y = as_array(a1), as_array(a2)
    if x.shape != y.shape:
        return False
    same = equal(x, y)
    if equal_nan and x.dtype.kind not in "iub" and y.dtype.kind not in "iub":
        same = logical_or(same, logical_and(isnan(x), isnan(y)))
    return bool(same.all())


def array_equiv(a1: Any, a2: Any) -> bool:
    """Whether the arrays are equal once broadcast together; waits for them.

    >>> np.array_equiv(np.array([1, 1]), 1)
    True
    """
    x, y = as_array(a1), as_array(a2)
    try:
        onp.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return False
    return bool(equal(x, y).all())
