"""Weighted means and order statistics: average, quantile, percentile, median."""

from __future__ import annotations

import math
from typing import Any

import numpy as onp

from mxnp import _core
from mxnp._core import ndarray
from mxnp.error import MXNetTypeError, MXNetValueError, MXNetZeroDivisionError

from ._table import Axis, as_array, deliver, look, normalize_axes, op
from .compare import isfinite
from .reduce import mean, sum

_WHERE, _SORT = op("where"), op("sort")


def average(
    a: Any, axis: Axis = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False
) -> Any:
    """The mean over `axis`, each element counted by its weight; with `returned` also the weights' sum.

    Raises ZeroDivisionError where the weights sum to zero.

    >>> np.average(np.array([1, 3]), weights=np.array([3, 1]))
    array(1.5)
    """
    x = as_array(a)
    if weights is None:
        result = mean(x, axis, None, None, keepdims)
        count = x.size / result.size if result.size else 0.0
        return (result, result * 0 + count) if returned else result
    w = as_array(weights)
    if w.shape != x.shape:
        w = _matched_weights(w, x, axis)
    scale = sum(w, axis, None, None, keepdims)
    if bool((scale == 0).any()):
        raise MXNetZeroDivisionError("Weights sum to zero, can't be normalized")
    result = sum(x * w, axis, None, None, keepdims) / scale
    return (result, scale.broadcast_to(result.shape)) if returned else result


def _matched_weights(w: ndarray, x: ndarray, axis: Axis) -> ndarray:
    if axis is None:
        raise MXNetTypeError("Axis must be specified when shapes of a and weights differ.")
    axes = normalize_axes(axis, x.ndim)
    if w.shape != tuple(x.shape[i] for i in axes):
        raise MXNetValueError("Shape of weights must be consistent with shape of a along specified axis.")
    order = sorted(range(w.ndim), key=lambda i: axes[i])
    return w.transpose(order).reshape(tuple(n if i in axes else 1 for i, n in enumerate(x.shape)))


def quantile(
    a: Any,
    q: Any,
    axis: Axis = None,
    out: ndarray | None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    interpolation: str | None = None,
) -> ndarray:
    """The value below which the fraction `q` (0 to 1) of the elements lies, over `axis`; NaN where there is one.

    `method` (MXNet: `interpolation`): 'linear', 'lower', 'higher', 'nearest' or 'midpoint'.

    >>> np.quantile(np.array([1, 2, 3, 4]), 0.5)
    array(2.5)
    """
    fractions = look(as_array(q)).astype("float64")
    if not ((fractions >= 0) & (fractions <= 1)).all():
        raise MXNetValueError("Quantiles must be in the range [0, 1]")
    x = as_array(a)
    axes = normalize_axes(axis, x.ndim)
    kept = [i for i in range(x.ndim) if i not in axes]
    count = math.prod(x.shape[i] for i in axes)
    lines = x.transpose(kept + list(axes)).reshape((*(x.shape[i] for i in kept), count))
    if lines.dtype.kind in "iub":
        lines = lines.astype(_core.default_float())
    result = _pick_quantiles(lines, fractions, interpolation or method)
    if keepdims:
        result = result.reshape(fractions.shape + tuple(1 if i in axes else n for i, n in enumerate(x.shape)))
    return deliver(result, out)


def _pick_quantiles(lines: ndarray, fractions: onp.ndarray, method: str) -> ndarray:
    """Quantiles along the last axis; the fractions' axes come first in the result."""
    size = lines.shape[-1]
    if size == 0:
        raise MXNetValueError("quantile: there are no elements along the axis")
    place = fractions.reshape(-1) * (size - 1)
    low, high = onp.floor(place), onp.ceil(place)
    share = {
        "linear": place - low,
        "lower": place * 0,
        "higher": place * 0 + 1,
        "nearest": (onp.rint(place) > low).astype("float64"),
        "midpoint": onp.where(low == high, 0.0, 0.5),
    }
    if method not in share:
        raise MXNetValueError(f"{method!r} is not a valid method. Use one of: {', '.join(share)}")
    # What lies on an element is that element: nothing of its neighbour, which may be infinite, goes in.
    part = share[method]
    low, high = onp.where(part == 1, high, low), onp.where(part == 0, low, high)
    part = onp.where(low == high, 0.5, part)
    ordered = _SORT(lines, axis=-1)
    below = ordered.take(low.astype("int64"), -1)
    above = ordered.take(high.astype("int64"), -1)
    weight = _core.array(part, lines.dtype, lines.device)
    gap = above - below
    result = _WHERE(isfinite(gap), below + gap * weight, below * (1 - weight) + above * weight)
    # NaN sorts last: it is in every quantile of its line.
    last = ordered[..., -1:]
    result = _WHERE(last != last, last, result)
    result = result.transpose([result.ndim - 1, *range(result.ndim - 1)])
    return result.reshape(fractions.shape + lines.shape[:-1])


def percentile(
    a: Any,
    q: Any,
    axis: Axis = None,
    out: ndarray | None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    interpolation: str | None = None,
) -> ndarray:
    """`quantile` with `q` from 0 to 100.

    >>> np.percentile(np.array([1, 2, 3, 4]), 50)
    array(2.5)
    """
    shares = look(as_array(q)).astype("float64")
    if not ((shares >= 0) & (shares <= 100)).all():
        raise MXNetValueError("Percentiles must be in the range [0, 100]")
    return quantile(
        a, shares / 100, axis, out, overwrite_input, method, keepdims, interpolation=interpolation
    )


def median(
    a: Any,
    axis: Axis = None,
    out: ndarray | None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> ndarray:
    """The middle element over `axis`, or the mean of the two in the middle; NaN where there is one, or no element.

    >>> np.median(np.array([3, 1, 2]))
    array(2.)
    """
    x = as_array(a)
    if not all(x.shape[i] for i in normalize_axes(axis, x.ndim)):
        return mean(x, axis, out=out, keepdims=keepdims)
    return quantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)
