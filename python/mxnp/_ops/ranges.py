"""Ranges of numbers: by step, by count, by ratio.

What the core has no kernel for is made by NumPy and copied in.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as onp

from mxnp import _core
from mxnp._core import ndarray
from mxnp.error import MXNetTypeError, MXNetValueError, MXNetZeroDivisionError

from ._table import integer, look, one_device, op
from .create import made

_ARANGE, _LINSPACE = op("arange"), op("linspace")


def _default_dtype(dtype: Any) -> Any:
    """The dtype of a range: the one asked for; in NumPy mode NumPy's choice (None); else the default float."""
    return dtype if dtype is not None or _core.is_numpy_dtype() else _core.default_float()


def arange(
    start: Any = None,
    stop: Any = None,
    step: Any = 1,
    dtype: Any = None,
    *,
    device: Any = None,
    ctx: Any = None,
) -> ndarray:
    """The numbers from `start` (default 0) to `stop`, without it, by `step`; float32 in the default mode.

    >>> np.arange(3)
    array([0., 1., 2.])
    """
    if start is None and stop is None:
        raise MXNetTypeError("arange() requires stop to be specified.")
    values = [look(v).item() if isinstance(v, ndarray) else v for v in (start, stop, step)]
    if values[1] is None:
        values[:2] = [0, values[0]]
    elif values[0] is None:
        values[0] = 0
    if values[2] is None:
        values[2] = 1
    if values[2] == 0:
        raise MXNetZeroDivisionError("arange: step must not be zero")
    first, last, each = values
    return _range(first, last, each, _default_dtype(dtype), one_device(device, ctx))


def _range(start: Any, stop: Any, step: Any, dtype: Any, device: Any) -> ndarray:
    """The numbers of `arange`; a dtype of integers counts in integers, others in double precision."""
    try:
        to = onp.result_type(start, stop, step) if dtype is None else _core.dtype(dtype)
        count = max(0, math.ceil((stop - start) / step))
    except (TypeError, OverflowError, ValueError):
        raise MXNetValueError(f"arange: cannot count from {start!r} to {stop!r} by {step!r}") from None
    if count > sys.maxsize:
        raise MXNetValueError("arange: Maximum allowed size exceeded")
    if to.kind in "iu":
        first = int(start)
        return _ARANGE(
            int_start=first, int_step=int(start + step) - first, num=count, dtype=to, device=device
        )
    if to.kind == "b" and count > 2:
        raise MXNetTypeError("no fill-function for data-type bool: arange gives at most two bools")
    return _ARANGE(start=float(start), step=float(step), num=count, dtype=to, device=device)


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
    ctx: Any = None,
) -> Any:
    """`num` numbers from `start` to `stop` at equal distances; with `retstep` also the distance.

    >>> np.linspace(0, 1, 5)
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    place, count = one_device(device, ctx), integer(num)
    if count < 0:
        raise MXNetValueError(f"Number of samples, {count}, must be non-negative.")
    if isinstance(start, (int, float)) and isinstance(stop, (int, float)) and axis in (0, -1):
        to = _core.default_float() if dtype is None else _core.dtype(dtype)
        filled = _LINSPACE(
            start=float(start), stop=float(stop), num=count, endpoint=bool(endpoint), dtype=to, device=place
        )
        parts = count - bool(endpoint)
        return (filled, (stop - start) / parts if parts > 0 else onp.nan) if retstep else filled
    first, last = (look(v) if isinstance(v, ndarray) else v for v in (start, stop))
    data, step = onp.linspace(first, last, count, endpoint=endpoint, retstep=True, axis=axis)
    spaced = made(data, dtype, place)
    return (spaced, _core.array(step)) if retstep else spaced


def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: float = 10.0,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
    ctx: Any = None,
) -> ndarray:
    """`num` numbers from base**start to base**stop at equal ratios.

    >>> np.logspace(0, 2, 3)
    array([  1.,  10., 100.])
    """
    first, last = (look(v) if isinstance(v, ndarray) else v for v in (start, stop))
    data = onp.logspace(first, last, num, endpoint, base, axis=axis)
    return made(data, dtype, one_device(device, ctx))


def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> ndarray:
    """`num` numbers from `start` to `stop` at equal ratios.

    >>> np.geomspace(1, 100, 3)
    array([  1.,  10., 100.])
    """
    first, last = (look(v) if isinstance(v, ndarray) else v for v in (start, stop))
    return made(onp.geomspace(first, last, num, endpoint, axis=axis), dtype, None)
