"""`mxnp.random`: the seed, and draws with 1.x's signatures (`shape=`, `ctx=`)."""

from __future__ import annotations

from typing import Any

from ._core import ndarray
from ._missing import refuse as _refuse
from ._ops import random as _random
from ._ops.choice import categorical
from ._ops.choice import permutation as _permutation
from ._ops.random import seed

__all__ = [
    "bernoulli",
    "categorical",
    "exponential",
    "normal",
    "randint",
    "randn",
    "seed",
    "shuffle",
    "uniform",
]


def _size(shape: Any, out: Any, *params: Any) -> Any:
    """1.x's default shape: that of `out` or of the parameters, (1,) for numbers."""
    if shape is not None or out is not None:
        return shape
    return None if any(isinstance(p, ndarray) for p in params) else (1,)


def uniform(
    low: Any = 0,
    high: Any = 1,
    shape: Any = None,
    dtype: Any = None,
    ctx: Any = None,
    out: Any = None,
    *,
    device: Any = None,
) -> ndarray:
    """Numbers from [low, high).

    >>> mx.random.uniform(0, 1, shape=(2,)).shape
    (2,)
    """
    return _random.uniform(low, high, _size(shape, out, low, high), dtype, device, out, ctx=ctx)


def normal(
    loc: Any = 0,
    scale: Any = 1,
    shape: Any = None,
    dtype: Any = None,
    ctx: Any = None,
    out: Any = None,
    *,
    device: Any = None,
) -> ndarray:
    """Numbers of the normal distribution.

    >>> mx.random.normal(0, 1, shape=(2,)).shape
    (2,)
    """
    return _random.normal(loc, scale, _size(shape, out, loc, scale), dtype, device, out, ctx=ctx)


def randn(
    *shape: int, loc: Any = 0, scale: Any = 1, dtype: Any = None, ctx: Any = None, device: Any = None
) -> ndarray:
    """Numbers of the normal distribution in an array of the given sizes.

    >>> mx.random.randn(2, 3).shape
    (2, 3)
    """
    return _random.normal(loc, scale, shape or (1,), dtype, device, ctx=ctx)


def exponential(
    scale: Any = 1,
    shape: Any = None,
    dtype: Any = None,
    ctx: Any = None,
    out: Any = None,
    *,
    device: Any = None,
) -> ndarray:
    """Numbers of the exponential distribution of mean `scale`.

    >>> mx.random.exponential(1, shape=(2,)).shape
    (2,)
    """
    return _random.exponential(scale, _size(shape, out, scale), device, out, dtype=dtype, ctx=ctx)


def randint(
    low: Any,
    high: Any,
    shape: Any = None,
    dtype: Any = None,
    ctx: Any = None,
    out: Any = None,
    *,
    device: Any = None,
) -> ndarray:
    """Integers from [low, high); int32 by default.

    >>> mx.random.randint(0, 5, shape=(2,)).shape
    (2,)
    """
    kind = "int32" if dtype is None and out is None else dtype
    return _random.randint(low, high, _size(shape, out, low, high), kind, device, out, ctx=ctx)


def bernoulli(
    prob: Any = 0.5, shape: Any = None, dtype: Any = None, ctx: Any = None, *, device: Any = None
) -> ndarray:
    """1 with probability `prob`, else 0.

    >>> mx.random.bernoulli(0.5, shape=(2,)).shape
    (2,)
    """
    return _random.bernoulli(prob, None, _size(shape, None, prob), dtype, device, ctx=ctx)


def shuffle(data: ndarray) -> ndarray:
    """The entries of `data` along its first axis in random order, as a new array (unlike np.random.shuffle).

    >>> np.sort(mx.random.shuffle(np.arange(3)))
    array([0., 1., 2.])
    """
    return _permutation(data)


__getattr__ = _refuse(__name__)
