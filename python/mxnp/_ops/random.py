"""Draws the core makes. `size` is the result's shape; None means the shape the parameters broadcast to.

distributions.py has the laws that are formulas of these, choice.py orders and samples of what is there.
"""

from __future__ import annotations

from typing import Any

import numpy as onp

from mxnp import _core
from mxnp._core import ndarray
from mxnp.error import MXNetValueError

from ._table import deliver, one_device, op, shape_of

_UNIFORM, _NORMAL, _EXPONENTIAL = op("uniform"), op("normal"), op("exponential")
_BERNOULLI, _RANDINT, _SIGMOID = op("bernoulli"), op("randint"), op("sigmoid")


def _draw(
    kind: Any, params: tuple, size: Any, dtype: Any, device: Any, ctx: Any, out: ndarray | None = None
) -> ndarray:
    place = one_device(device, ctx)
    shape = None if size is None else shape_of(size)
    if shape is None and out is not None:
        shape = out.shape
    if shape is not None and min(shape, default=0) < 0:
        raise MXNetValueError("negative dimensions are not allowed")
    if isinstance(out, ndarray) and dtype is None:
        dtype = out.dtype
    to = None if dtype is None else _core.dtype(dtype)
    return deliver(kind(*params, size=shape, dtype=to, device=place), out)


def seed(seed_state: int | None = None, device: Any = "all", *, ctx: Any = "all") -> None:
    """Starts every stream of random numbers anew; without a number from the system's entropy.

    `device`, or 1.x's `ctx`, is accepted: one seed governs all devices.

    >>> np.random.seed(1); a = np.random.uniform(size=2)
    >>> np.random.seed(1); b = np.random.uniform(size=2)
    >>> np.array_equal(a, b)
    True
    """
    if seed_state is None:
        import secrets

        seed_state = secrets.randbits(64)
    try:
        value = int(seed_state)
    except (TypeError, ValueError):
        raise MXNetValueError(f"seed: expected an integer, got {seed_state!r}") from None
    _core.seed(value)


def uniform(
    low: Any = 0.0,
    high: Any = 1.0,
    size: Any = None,
    dtype: Any = None,
    device: Any = None,
    out: ndarray | None = None,
    *,
    ctx: Any = None,
) -> ndarray:
    """Numbers from [low, high), each equally likely; float32 in the default mode.

    >>> np.random.uniform(0, 1, size=(2, 3)).shape
    (2, 3)
    """
    return _draw(_UNIFORM, (low, high), size, dtype, device, ctx, out)


def normal(
    loc: Any = 0.0,
    scale: Any = 1.0,
    size: Any = None,
    dtype: Any = None,
    device: Any = None,
    out: ndarray | None = None,
    *,
    ctx: Any = None,
) -> ndarray:
    """Numbers of the normal distribution of mean `loc` and standard deviation `scale`.

    >>> np.random.normal(size=3).shape
    (3,)
    """
    return _draw(_NORMAL, (loc, scale), size, dtype, device, ctx, out)


def exponential(
    scale: Any = 1.0,
    size: Any = None,
    device: Any = None,
    out: ndarray | None = None,
    *,
    dtype: Any = None,
    ctx: Any = None,
) -> ndarray:
    """Numbers of the exponential distribution of mean `scale`.

    >>> np.random.exponential(2.0, size=3).shape
    (3,)
    """
    return _draw(_EXPONENTIAL, (scale,), size, dtype, device, ctx, out)


def bernoulli(
    prob: Any = None,
    logit: Any = None,
    size: Any = None,
    dtype: Any = None,
    device: Any = None,
    *,
    ctx: Any = None,
) -> ndarray:
    """1 with probability `prob` (or the sigmoid of `logit`), else 0; float32 by default.

    >>> npx.random.bernoulli(0.5, size=3).shape
    (3,)
    """
    if (prob is None) == (logit is None):
        raise MXNetValueError("bernoulli: pass one of prob and logit")
    if prob is None:
        prob = (
            _SIGMOID(logit)
            if isinstance(logit, ndarray)
            else 1 / (1 + onp.exp(-onp.asarray(logit, "float64")))
        )
        prob = prob if isinstance(prob, ndarray) or prob.ndim else float(prob)
    return _draw(_BERNOULLI, (prob,), size, dtype, device, ctx)


def randint(
    low: Any,
    high: Any = None,
    size: Any = None,
    dtype: Any = None,
    device: Any = None,
    out: ndarray | None = None,
    *,
    ctx: Any = None,
) -> ndarray:
    """Integers from [low, high), each equally likely; with one number from [0, low). int64 by default.

    >>> np.random.randint(0, 10, size=(2, 3)).shape
    (2, 3)
    """
    if high is None:
        low, high = 0, low
    return _draw(_RANDINT, (low, high), size, dtype, device, ctx, out)


def rand(*size: int, dtype: Any = None, device: Any = None, ctx: Any = None) -> ndarray:
    """Numbers from [0, 1) in an array of the given sizes.

    >>> np.random.rand(2, 3).shape
    (2, 3)
    """
    return uniform(0.0, 1.0, size, dtype, device, ctx=ctx)


def randn(*size: int, dtype: Any = None, device: Any = None, ctx: Any = None) -> ndarray:
    """Numbers of the standard normal distribution in an array of the given sizes.

    >>> np.random.randn(2, 3).shape
    (2, 3)
    """
    return normal(0.0, 1.0, size, dtype, device, ctx=ctx)


def random(size: Any = None, dtype: Any = None, device: Any = None) -> ndarray:
    """Numbers from [0, 1).

    >>> np.random.random((2, 3)).shape
    (2, 3)
    """
    return uniform(0.0, 1.0, size, dtype, device)


random_sample = random


def standard_normal(size: Any = None, dtype: Any = None, device: Any = None) -> ndarray:
    """Numbers of the standard normal distribution.

    >>> np.random.standard_normal(3).shape
    (3,)
    """
    return normal(0.0, 1.0, size, dtype, device)


def normal_n(
    loc: Any = 0.0, scale: Any = 1.0, batch_shape: Any = None, dtype: Any = None, device: Any = None
) -> ndarray:
    """Numbers of the normal distribution, `batch_shape` of them for each pair of parameters.

    >>> npx.random.normal_n(np.zeros(3), 1.0, batch_shape=(2,)).shape
    (2, 3)
    """
    return normal(loc, scale, _batched(batch_shape, loc, scale), dtype, device)


def uniform_n(
    low: Any = 0.0, high: Any = 1.0, batch_shape: Any = None, dtype: Any = None, device: Any = None
) -> ndarray:
    """Numbers of the uniform distribution, `batch_shape` of them for each pair of parameters.

    >>> npx.random.uniform_n(np.zeros(3), 1.0, batch_shape=(2,)).shape
    (2, 3)
    """
    return uniform(low, high, _batched(batch_shape, low, high), dtype, device)


def _batched(batch_shape: Any, *params: Any) -> tuple[int, ...] | None:
    if batch_shape is None:
        return None
    return shape_of(batch_shape) + onp.broadcast_shapes(*(getattr(p, "shape", ()) for p in params))
