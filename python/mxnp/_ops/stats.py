"""Statistics and curves: histograms, interpolation, integrals, covariance; and reductions that leave NaN out."""

from __future__ import annotations

from typing import Any

import numpy as onp

from mxnp import _core
from mxnp._core import ndarray
from mxnp.error import MXNetTypeError, MXNetValueError

from . import reduce
from ._table import Axis, as_array, as_mxnet, deliver, look, op
from .compare import isnan, logical_not
from .index import bincount, searchsorted, where
from .scan import diff

_TAKE, _MATMUL = op("take"), op("matmul")


def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> ndarray:
    """The edges of the bins `histogram` would use; waits for `a`.

    >>> np.histogram_bin_edges(np.array([0, 4]), 2)
    array([0., 2., 4.])
    """
    x = as_array(a)
    with as_mxnet("histogram"):
        edges = onp.histogram_bin_edges(look(x), look(bins) if isinstance(bins, ndarray) else bins, range)
    return _core.array(edges, x.dtype if x.dtype.kind == "f" else _core.default_float(), x.device)


def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[ndarray, ndarray]:
    """How many elements of `a` lie in each bin (or the sum of their weights), and the bins' edges; waits for `a`.

    Bins are half open, the last one is closed. `density`: the counts over their sum and the bins' widths.

    >>> np.histogram(np.array([1, 2, 1]), bins=2)[0]
    array([2, 1], dtype=int64)
    """
    x = as_array(a).ravel()
    edges = histogram_bin_edges(x, bins, range)
    count = edges.size - 1
    place = searchsorted(edges, x, "right")
    # The last edge belongs to the last bin; what lies outside goes to bins that are dropped.
    place = where(x == edges[-1], count, place)
    counts = bincount(place, None if weights is None else as_array(weights).ravel(), count + 2)[1 : count + 1]
    if density:
        counts = counts / diff(edges) / counts.sum()
    return counts, edges


def interp(
    x: Any, xp: Any, fp: Any, left: float | None = None, right: float | None = None, period: Any = None
) -> ndarray:
    """The values at `x` of the curve through the points (xp, fp), xp increasing; `left` and `right` outside.

    >>> np.interp(np.array([1.5]), np.array([1, 2]), np.array([10, 20]))
    array([15.])
    """
    at, points, values = as_array(x), as_array(xp), as_array(fp)
    if period is not None:
        raise MXNetTypeError("interp: `period` has not arrived in mxnp yet")
    if points.ndim != 1 or points.shape != values.shape or not points.size:
        raise MXNetValueError("fp and xp are not of the same length.")
    place = searchsorted(points, at, "right").clip(1, max(points.size - 1, 1))
    low, high = (_TAKE(points, place - back, axis=0, mode="clip") for back in (1, 0))
    below, above = (_TAKE(values, place - back, axis=0, mode="clip") for back in (1, 0))
    share = (at - low) / where(high == low, 1, high - low)
    result = below + (above - below) * share
    result = where(at < points[0], values[0] if left is None else left, result)
    return where(at > points[-1], values[-1] if right is None else right, result)


def trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> ndarray:
    """The integral along `axis` by the trapezoidal rule, over the places `x` or steps of `dx`.

    >>> np.trapezoid(np.array([1, 2, 3]))
    array(4.)
    """
    from .shape import moveaxis

    values = moveaxis(y, axis, -1)
    steps: Any = dx
    if x is not None:
        places = as_array(x)
        steps = diff(places if places.ndim == 1 else moveaxis(places, axis, -1))
    return ((values[..., 1:] + values[..., :-1]) * steps / 2.0).sum(-1)


def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    *,
    dtype: Any = None,
) -> ndarray:
    """The covariances of the variables, which are the rows of `m` (and of `y`), or with rowvar=False the columns.

    >>> np.cov(np.array([[1, 2, 3], [3, 2, 1]]))
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    from .join import vstack
    from .shape import atleast_2d

    rows = atleast_2d(as_array(m) if dtype is None else as_array(m).astype(dtype))
    rows = rows.T if not rowvar and rows.shape[0] != 1 else rows
    if y is not None:
        other = atleast_2d(y)
        rows = vstack((rows, other.T if not rowvar and other.shape[0] != 1 else other))
    gap = rows - reduce.mean(rows, 1, keepdims=True)
    freedom = rows.shape[1] - (int(not bias) if ddof is None else ddof)
    result = _MATMUL(gap, gap.T) / freedom
    return result.squeeze()


def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> ndarray:
    """The correlations of the variables: covariances over the deviations.

    >>> np.corrcoef(np.array([[1, 2, 3], [3, 2, 1]]))
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    from .index import diag

    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return c / c
    deviation = diag(c) ** 0.5
    return (c / deviation.reshape((-1, 1)) / deviation).clip(-1, 1)


def polyval(p: Any, x: Any) -> ndarray:
    """The polynomial with coefficients `p`, the highest power first, at `x`.

    >>> np.polyval(np.array([1, 0, 2]), np.array([3]))
    array([11.])
    """
    coefficients, at = as_array(p), as_array(x)
    result = at * 0
    for i in range(coefficients.size):
        result = result * at + coefficients[i]
    return result


# ---- Reductions that leave NaN out


def _without(a: Any, value: Any) -> ndarray:
    x = as_array(a)
    return x if x.dtype.kind in "iub" else where(isnan(x), value, x)


def nansum(
    a: Any, axis: Axis = None, dtype: Any = None, out: ndarray | None = None, keepdims: bool = False
) -> ndarray:
    """The sum, NaN counting as 0.

    >>> np.nansum(np.array([1, np.nan]))
    array(1.)
    """
    return reduce.sum(_without(a, 0), axis, dtype, out, keepdims)


def nanprod(
    a: Any, axis: Axis = None, dtype: Any = None, out: ndarray | None = None, keepdims: bool = False
) -> ndarray:
    """The product, NaN counting as 1.

    >>> np.nanprod(np.array([2, np.nan]))
    array(2.)
    """
    return reduce.prod(_without(a, 1), axis, dtype, out, keepdims)


def _numbers(a: Any) -> ndarray | None:
    """Where the elements are numbers; None where all must be."""
    x = as_array(a)
    return None if x.dtype.kind in "iub" else logical_not(isnan(x))


def nanmean(
    a: Any, axis: Axis = None, dtype: Any = None, out: ndarray | None = None, keepdims: bool = False
) -> ndarray:
    """The mean of the elements that are not NaN.

    >>> np.nanmean(np.array([1, np.nan, 3]))
    array(2.)
    """
    return reduce.mean(a, axis, dtype, out, keepdims, where=_numbers(a))


def nanvar(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: ndarray | None = None,
    ddof: float = 0,
    keepdims: bool = False,
) -> ndarray:
    """The variance of the elements that are not NaN.

    >>> np.nanvar(np.array([1, np.nan, 3]))
    array(1.)
    """
    return reduce.var(a, axis, dtype, out, ddof, keepdims, where=_numbers(a))


def nanstd(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: ndarray | None = None,
    ddof: float = 0,
    keepdims: bool = False,
) -> ndarray:
    """The standard deviation of the elements that are not NaN.

    >>> np.nanstd(np.array([1, np.nan, 3]))
    array(1.)
    """
    return reduce.std(a, axis, dtype, out, ddof, keepdims, where=_numbers(a))


def _nan_extreme(function: Any, a: Any, axis: Axis, out: Any, keepdims: bool, worst: float) -> ndarray:
    x = as_array(a)
    if x.dtype.kind in "iub":
        return function(x, axis, out, keepdims)
    result = function(_without(x, worst), axis, None, keepdims)
    return deliver(where(isnan(x).all(axis, None, keepdims), onp.nan, result), out)


def nanmax(a: Any, axis: Axis = None, out: ndarray | None = None, keepdims: bool = False) -> ndarray:
    """The greatest element that is not NaN; NaN where all are.

    >>> np.nanmax(np.array([1, np.nan, 3]))
    array(3.)
    """
    return _nan_extreme(reduce.max, a, axis, out, keepdims, -onp.inf)


def nanmin(a: Any, axis: Axis = None, out: ndarray | None = None, keepdims: bool = False) -> ndarray:
    """The least element that is not NaN; NaN where all are.

    >>> np.nanmin(np.array([1, np.nan, 3]))
    array(1.)
    """
    return _nan_extreme(reduce.min, a, axis, out, keepdims, onp.inf)
