"""Arithmetic: add, multiply, maximum, rounding, and what is composed of them."""

from __future__ import annotations

from typing import Any

import numpy as onp

from mxnp import _core
from mxnp._core import ndarray
from mxnp.error import MXNetTypeError

from ._table import as_array, deliver, op, ufunc
from .rounding import trunc

add = ufunc("add", "x1 + x2.", ">>> np.add(np.array([1, 2]), 3)\narray([4., 5.])")
subtract = ufunc("subtract", "x1 - x2.", ">>> np.subtract(np.array([1, 2]), 3)\narray([-2., -1.])")
multiply = ufunc("multiply", "x1 * x2.", ">>> np.multiply(np.array([1, 2]), 3)\narray([3., 6.])")
true_divide = ufunc("true_divide", "x1 / x2.", ">>> np.true_divide(np.array([1, 2]), 2)\narray([0.5, 1. ])")
floor_divide = ufunc(
    "floor_divide", "The floor of x1 / x2.", ">>> np.floor_divide(np.array([-3, 3]), 2)\narray([-2.,  1.])"
)
remainder = ufunc(
    "remainder",
    "x1 - floor(x1 / x2) * x2, with the sign of x2.",
    ">>> np.remainder(np.array([-3, 3]), 2)\narray([1., 1.])",
    op="mod",
)
fmod = ufunc(
    "fmod",
    "The remainder of x1 / x2, with the sign of x1.",
    ">>> np.fmod(np.array([-3, 3]), 2)\narray([-1.,  1.])",
)
power = ufunc("power", "x1 to the power of x2.", ">>> np.power(np.array([1, 2, 3]), 2)\narray([1., 4., 9.])")
negative = ufunc("negative", "-x.", ">>> np.negative(np.array([1, -2]))\narray([-1.,  2.])")
positive = ufunc("positive", "+x: a copy.", ">>> np.positive(np.array([1, -2]))\narray([ 1., -2.])")
absolute = ufunc(
    "absolute",
    "The absolute value; its gradient at 0 is 0.",
    ">>> np.absolute(np.array([1, -2]))\narray([1., 2.])",
)
fabs = ufunc("fabs", "The absolute value as a float.", ">>> np.fabs(np.array([1, -2]))\narray([1., 2.])")
conjugate = ufunc(
    "conjugate",
    "The complex conjugate; of real numbers x itself.",
    ">>> np.conjugate(np.array([1, 2]))\narray([1., 2.])",
)
sign = ufunc("sign", "-1, 0 or 1 as x is.", ">>> np.sign(np.array([-3, 0, 2]))\narray([-1.,  0.,  1.])")
maximum = ufunc(
    "maximum",
    "The greater of x1 and x2; NaN where either is. Where they are equal the gradient goes to x1.",
    ">>> np.maximum(np.array([1, 5]), 3)\narray([3., 5.])",
)
minimum = ufunc(
    "minimum",
    "The lesser of x1 and x2; NaN where either is. Where they are equal the gradient goes to x1.",
    ">>> np.minimum(np.array([1, 5]), 3)\narray([1., 3.])",
)
fmax = ufunc(
    "fmax",
    "The greater of x1 and x2, ignoring NaN.",
    ">>> np.fmax(np.array([1, np.nan]), 3)\narray([3., 3.])",
)
fmin = ufunc(
    "fmin", "The lesser of x1 and x2, ignoring NaN.", ">>> np.fmin(np.array([1, np.nan]), 3)\narray([1., 3.])"
)
reciprocal = ufunc(
    "reciprocal", "1 / x; of integers truncated.", ">>> np.reciprocal(np.array([2, 4]))\narray([0.5 , 0.25])"
)
square = ufunc("square", "x * x.", ">>> np.square(np.array([1, 2, 3]))\narray([1., 4., 9.])")
hypot = ufunc(
    "hypot", "sqrt(x1**2 + x2**2).", ">>> np.hypot(np.array([3, 5]), np.array([4, 12]))\narray([ 5., 13.])"
)
copysign = ufunc(
    "copysign", "x1 with the sign of x2.", ">>> np.copysign(np.array([1, 2]), -1)\narray([-1., -2.])"
)

_CLIP = op("clip")


def clip(a: Any, a_min: Any = None, a_max: Any = None, out: ndarray | None = None, **kwargs: Any) -> ndarray:
    """`a` with what is below `a_min` or above `a_max` moved to the bound; either may be None.

    The bounds broadcast with `a`; they may also be given as `min` and `max`. The gradient at a bound is 1. A Python
    integer that lies beyond all integers of `a`'s dtype is no bound.

    >>> np.clip(np.array([1, 5, 9]), 2, 7)
    array([2., 5., 7.])
    """
    low, high = kwargs.pop("min", a_min), kwargs.pop("max", a_max)
    result: Any = a
    if (type(low) is int or type(high) is int) and as_array(a).dtype.kind in "iu":
        limits = onp.iinfo(as_array(a).dtype)
        low = None if type(low) is int and low <= limits.min else low
        high = None if type(high) is int and high >= limits.max else high
    if low is not None and high is not None:
        if kwargs:
            return minimum(maximum(a, low), high, out=out, **kwargs)
        return _CLIP(a, low, high, out=out)
    if low is not None:
        return maximum(a, low, out=out, **kwargs)
    if high is not None:
        return minimum(a, high, out=out, **kwargs)
    result = positive(a) if as_array(a).dtype != onp.bool_ else as_array(a).copy()
    return deliver(result, out)


def float_power(x1: Any, x2: Any, /, out: ndarray | None = None, **kwargs: Any) -> ndarray:
    """x1 to the power of x2 in double precision.

    >>> np.float_power(np.array([4]), 0.5)
    array([2.], dtype=float64)
    """
    from .cast import result_type

    double = "complex128" if result_type(x1, x2).kind == "c" else "float64"
    return power(as_array(x1).astype(double, copy=False), x2, out=out, **kwargs)


def divmod(x1: Any, x2: Any) -> tuple[ndarray, ndarray]:
    """The floor of x1 / x2 and the remainder.

    >>> np.divmod(np.array([7]), 2)
    (array([3.]), array([1.]))
    """
    return floor_divide(x1, x2), remainder(x1, x2)


def modf(x: Any) -> tuple[ndarray, ndarray]:
    """The fraction and the integer part, both with the sign of x.

    >>> np.modf(np.array([1.5, -2.25]))
    (array([ 0.5 , -0.25]), array([ 1., -2.]))
    """
    from .compare import isinf
    from .index import where

    a = as_array(x)
    if a.dtype.kind in "iub":
        a = a.astype(_core.default_float())
    whole = trunc(a)
    return copysign(where(isinf(a), 0, a - whole), a), whole


def nan_to_num(
    x: Any, copy: bool = True, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> ndarray:
    """`x` with NaN replaced by `nan` and the infinities by the greatest and least number of the dtype.

    >>> np.nan_to_num(np.array([1, np.nan]), nan=5)
    array([1., 5.])
    """
    from .compare import isnan
    from .index import where

    a = as_array(x)
    if a.dtype.kind in "iub":
        return a.copy() if copy else a
    limits = finfo(a.dtype)
    result = where(isnan(a), nan, a)
    result = where(a == onp.inf, limits.max.item() if posinf is None else posinf, result)
    result = where(a == -onp.inf, limits.min.item() if neginf is None else neginf, result)
    if copy or not isinstance(x, ndarray):
        return result
    x[...] = result
    return x


def finfo(dtype: Any) -> Any:
    """The limits of a floating dtype, as NumPy's finfo.

    >>> float(np.finfo('float32').eps)
    1.1920928955078125e-07
    """
    found = _core.dtype(getattr(dtype, "dtype", dtype))
    if found.name == "bfloat16":
        import ml_dtypes

        return ml_dtypes.finfo(found)
    return onp.finfo(found)


def add_n(*args: Any) -> ndarray:
    """The sum of several arrays.

    >>> npx.add_n(np.array([1]), np.array([2]), np.array([3]))
    array([6.])
    """
    if not args:
        raise MXNetTypeError("add_n: expected at least one array")
    total = as_array(args[0])
    for x in args[1:]:
        total = total + x
    return total


METHODS = (clip,)
