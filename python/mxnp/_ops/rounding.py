"""Rounding to whole numbers and to decimal places."""

from __future__ import annotations

from typing import Any

from mxnp._core import ndarray

from ._table import as_array, deliver, integer, ufunc

floor = ufunc(
    "floor", "The greatest integer not above x.", ">>> np.floor(np.array([-1.5, 1.5]))\narray([-2.,  1.])"
)
ceil = ufunc(
    "ceil", "The least integer not below x.", ">>> np.ceil(np.array([-1.5, 1.5]))\narray([-1.,  2.])"
)
trunc = ufunc("trunc", "x without its fraction.", ">>> np.trunc(np.array([-1.5, 1.5]))\narray([-1.,  1.])")
rint = ufunc(
    "rint",
    "The nearest integer; halves go to the even one.",
    ">>> np.rint(np.array([0.5, 1.5]))\narray([0., 2.])",
)
fix = ufunc("fix", "x rounded toward zero, as trunc.", ">>> np.fix(np.array([-1.5, 1.5]))\narray([-1.,  1.])")


def round(a: Any, decimals: int = 0, out: ndarray | None = None) -> ndarray:
    """`a` rounded to `decimals` places; halves go to the even digit.

    >>> np.round(np.array([1.25, 2.35]), 1)
    array([1.2, 2.4])
    """
    x, decimals = as_array(a), integer(decimals, "decimals")
    if x.dtype.kind == "b":
        x = rint(x)  # floating, as NumPy's
    if x.dtype.kind in "iu" and decimals >= 0:
        return deliver(x.copy(), out)
    if decimals == 0:
        return rint(x, out=out)
    if x.dtype.kind in "iu":
        unit = 10.0 ** min(-decimals, 308)
        half = rint(x.astype("float64") / unit) * unit
        return deliver(half.astype(x.dtype), out)
    scale = 10.0 ** min(abs(decimals), 308)
    result = rint(x * scale) / scale if decimals > 0 else rint(x / scale) * scale
    return deliver(result, out)


def around(a: Any, decimals: int = 0, out: ndarray | None = None) -> ndarray:
    """Another name of `round`.

    >>> np.around(np.array([0.4, 1.6]))
    array([0., 2.])
    """
    return round(a, decimals, out)


METHODS = (round,)
