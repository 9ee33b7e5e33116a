"""Exponentials, logarithms and roots."""

import math
from typing import Any

from mxnp import _core
from mxnp._core import ndarray

from ._table import as_array, deliver, ufunc
from .cast import result_type

exp = ufunc("exp", "e to the power of x.", ">>> np.exp(np.array([0, 1]))\narray([1.       , 2.7182817])")
exp2 = ufunc("exp2", "2 to the power of x.", ">>> np.exp2(np.array([1, 3]))\narray([2., 8.])")
expm1 = ufunc("expm1", "exp(x) - 1, exact near 0.", ">>> np.expm1(np.array([0]))\narray([0.])")
log = ufunc("log", "The natural logarithm.", ">>> np.log(np.array([1, np.e]))\narray([0., 1.])")
log2 = ufunc("log2", "The logarithm to base 2.", ">>> np.log2(np.array([1, 8]))\narray([0., 3.])")
log10 = ufunc("log10", "The logarithm to base 10.", ">>> np.log10(np.array([1, 100]))\narray([0., 2.])")
log1p = ufunc("log1p", "log(1 + x), exact near 0.", ">>> np.log1p(np.array([0]))\narray([0.])")
logaddexp = ufunc(
    "logaddexp",
    "log(exp(x1) + exp(x2)), without overflow.",
    ">>> np.logaddexp(np.array([0]), 0)\narray([0.6931472])",
)
sqrt = ufunc("sqrt", "The square root.", ">>> np.sqrt(np.array([1, 4]))\narray([1., 2.])")
cbrt = ufunc("cbrt", "The cube root.", ">>> np.cbrt(np.array([1, 8]))\narray([1., 2.])")

rsqrt = ufunc(
    "rsqrt", "1 / sqrt(x).", ">>> npx.rsqrt(np.array([4]))\narray([0.5])", signature="(data, out=None)"
)


def logaddexp2(x1: Any, x2: Any, /, out: ndarray | None = None) -> ndarray:
    """log2(2**x1 + 2**x2), without overflow.

    >>> np.logaddexp2(np.array([0]), 0)
    array([1.])
    """
    ln2 = math.log(2)
    dtype = result_type(x1, x2)
    if dtype.kind in "iub":
        dtype = _core.default_float()
    x, y = (as_array(x).astype(dtype, copy=False) * ln2 for x in (x1, x2))
    return deliver(logaddexp(x, y) / ln2, out)
