"""Random draws. `size` is the result's shape; None means the shape the parameters broadcast to."""

from __future__ import annotations

import math
from typing import Any

import numpy as onp

from mxnp import _core
from mxnp._core import ndarray
from mxnp.error import MXNetTypeError, MXNetValueError

from ._table import as_array, deliver, op, shape_of

_UNIFORM, _NORMAL, _EXPONENTIAL = op("uniform"), op("normal"), op("exponential")
_BERNOULLI, _RANDINT, _PERMUTATION = op("bernoulli"), op("randint"), op("permutation")
_SIGMOID, _LOG, _LOG1P, _EXP = op("sigmoid"), op("log"), op("log1p"), op("exp")
_SQRT, _EXPM1, _TAKE, _SEARCHSORTED = op("sqrt"), op("expm1"), op("take"), op("searchsorted")
_ARGSORT, _TAKE_ALONG_AXIS = op("argsort"), op("take_along_axis")


def _draw(
    kind: Any, params: tuple, size: Any, dtype: Any, device: Any, ctx: Any, out: ndarray | None = None
) -> ndarray:
    if device is not None and ctx is not None:
        raise MXNetValueError("device and ctx are two names of one argument: give one of them")
    shape = None if size is None else shape_of(size)
    if shape is None and out is not None:
        shape = out.shape
    if shape is not None and min(shape, default=0) < 0:
        raise MXNetValueError("negative dimensions are not allowed")
    if isinstance(out, ndarray) and dtype is None:
        dtype = out.dtype
    to = None if dtype is None else _core.dtype(dtype)
    place = device if ctx is None else ctx
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


# ---- What is made from uniform numbers by inverting a distribution function. U is never 1; 1 - U is never 0.


def _numbers(op_name: str, **params: Any) -> list[Any]:
    """The parameters of a distribution as numbers and arrays. Raises TypeError for anything else."""
    found = []
    for name, p in params.items():
        given = p if isinstance(p, (int, float, ndarray)) else as_array(p)
        if isinstance(given, ndarray) and given.dtype.kind == "c":
            raise MXNetTypeError(f"{op_name}: {name} must be real, got {given.dtype}")
        found.append(given)
    return found


def _check_sign(op_name: str, name: str, value: Any, positive: bool) -> None:
    """Refuses a scale below 0 (or a shape that is not positive); NaN too. Arrays are not waited for."""
    if isinstance(value, (int, float)) and not (value > 0 if positive else value >= 0):
        raise MXNetValueError(
            f"{op_name}: {name} must be {'positive' if positive else 'non-negative'}, got {value}"
        )


def _common_shape(op_name: str, *params: Any) -> tuple[int, ...]:
    shapes = [getattr(p, "shape", ()) for p in params]
    try:
        return onp.broadcast_shapes(*shapes)
    except ValueError:
        text = " ".join(str(shape).replace(" ", "") for shape in shapes)
        raise MXNetValueError(
            f"{op_name}: parameters could not be broadcast together with shapes {text}"
        ) from None


def _inverted(
    name: str, formula: Any, params: tuple, size: Any, dtype: Any, device: Any, out: Any, ctx: Any
) -> ndarray:
    shape = size
    if size is None and out is None:
        shape = _common_shape(name, *params)
    place = next((p.device for p in params if isinstance(p, ndarray)), None) if device is None else device
    u = uniform(0.0, 1.0, shape if out is None else out.shape, dtype, place, ctx=ctx)
    return deliver(formula(u, *params), out)


def _above_zero(x: ndarray) -> ndarray:
    """`x`, with 0 as a number whose logarithm is finite: float16's least, or float32's least normal one."""
    return x + (2.0**-24 if x.dtype.itemsize == 2 else 2.0**-126)


def gumbel(
    loc: Any = 0.0,
    scale: Any = 1.0,
    size: Any = None,
    device: Any = None,
    out: Any = None,
    *,
    dtype: Any = None,
    ctx: Any = None,
) -> ndarray:
    """Numbers of the Gumbel distribution.

    >>> np.random.gumbel(size=3).shape
    (3,)
    """
    loc, scale = _numbers("gumbel", loc=loc, scale=scale)
    _check_sign("gumbel", "scale", scale, positive=False)
    return _inverted(
        "gumbel",
        lambda u, m, s: m - s * _LOG(_above_zero(-_LOG1P(-u))),
        (loc, scale),
        size,
        dtype,
        device,
        out,
        ctx,
    )


def logistic(
    loc: Any = 0.0,
    scale: Any = 1.0,
    size: Any = None,
    device: Any = None,
    out: Any = None,
    *,
    dtype: Any = None,
    ctx: Any = None,
) -> ndarray:
    """Numbers of the logistic distribution.

    >>> np.random.logistic(size=3).shape
    (3,)
    """
    loc, scale = _numbers("logistic", loc=loc, scale=scale)
    _check_sign("logistic", "scale", scale, positive=False)
    return _inverted(
        "logistic",
        lambda u, m, s: m + s * (_LOG(_above_zero(u)) - _LOG1P(-u)),
        (loc, scale),
        size,
        dtype,
        device,
        out,
        ctx,
    )


def laplace(
    loc: Any = 0.0,
    scale: Any = 1.0,
    size: Any = None,
    dtype: Any = None,
    device: Any = None,
    out: Any = None,
    *,
    ctx: Any = None,
) -> ndarray:
    """Numbers of the Laplace distribution: the difference of two exponential ones.

    >>> np.random.laplace(size=3).shape
    (3,)
    """
    loc, scale = _numbers("laplace", loc=loc, scale=scale)
    _check_sign("laplace", "scale", scale, positive=False)
    shape = _common_shape("laplace", loc, scale) if size is None else size
    shape = out.shape if out is not None else shape
    place = device if ctx is None else ctx
    gap = exponential(1.0, shape, place, dtype=dtype) - exponential(1.0, shape, place, dtype=dtype)
    return deliver(loc + scale * gap, out)


def lognormal(
    mean: Any = 0.0,
    sigma: Any = 1.0,
    size: Any = None,
    dtype: Any = None,
    device: Any = None,
    out: Any = None,
    *,
    ctx: Any = None,
) -> ndarray:
    """Numbers whose logarithm has the normal distribution.

    >>> np.random.lognormal(size=3).shape
    (3,)
    """
    return deliver(
        _EXP(normal(mean, sigma, out.shape if out is not None else size, dtype, device, ctx=ctx)), out
    )


def rayleigh(
    scale: Any = 1.0,
    size: Any = None,
    device: Any = None,
    out: Any = None,
    *,
    dtype: Any = None,
    ctx: Any = None,
) -> ndarray:
    """Numbers of the Rayleigh distribution.

    >>> np.random.rayleigh(size=3).shape
    (3,)
    """
    (scale,) = _numbers("rayleigh", scale=scale)
    _check_sign("rayleigh", "scale", scale, positive=False)
    return _inverted(
        "rayleigh", lambda u, s: s * _SQRT(-2.0 * _LOG1P(-u)), (scale,), size, dtype, device, out, ctx
    )


def weibull(
    a: Any, size: Any = None, device: Any = None, out: Any = None, *, dtype: Any = None, ctx: Any = None
) -> ndarray:
    """Numbers of the Weibull distribution of shape `a`.

    >>> np.random.weibull(2.0, size=3).shape
    (3,)
    """
    (a,) = _numbers("weibull", a=a)
    _check_sign("weibull", "a", a, positive=True)
    return _inverted("weibull", lambda u, k: (-_LOG1P(-u)) ** (1.0 / k), (a,), size, dtype, device, out, ctx)


def pareto(
    a: Any, size: Any = None, device: Any = None, out: Any = None, *, dtype: Any = None, ctx: Any = None
) -> ndarray:
    """Numbers of the Pareto (Lomax) distribution of shape `a`.

    >>> np.random.pareto(2.0, size=3).shape
    (3,)
    """
    (a,) = _numbers("pareto", a=a)
    _check_sign("pareto", "a", a, positive=True)
    return _inverted("pareto", lambda u, k: _EXPM1(-_LOG1P(-u) / k), (a,), size, dtype, device, out, ctx)


def power(
    a: Any, size: Any = None, device: Any = None, out: Any = None, *, dtype: Any = None, ctx: Any = None
) -> ndarray:
    """Numbers of [0, 1) whose density grows as x**(a - 1).

    >>> np.random.power(2.0, size=3).shape
    (3,)
    """
    (a,) = _numbers("power", a=a)
    _check_sign("power", "a", a, positive=True)
    return _inverted("power", lambda u, k: u ** (1.0 / k), (a,), size, dtype, device, out, ctx)


# ---- Orders and choices


def permutation(x: Any, *, device: Any = None, ctx: Any = None) -> ndarray:
    """The numbers below `x` in random order (int64), or the entries of the array `x` along its first axis.

    >>> np.sort(np.random.permutation(3))
    array([0, 1, 2], dtype=int64)
    """
    place = device if ctx is None else ctx
    if isinstance(x, (int, onp.integer)):
        if x < 0:
            raise MXNetValueError(f"permutation: expected a number of items of at least 0, got {x}")
        return _PERMUTATION(n=int(x), device=place)
    array = as_array(x)
    if array.ndim == 0:
        return permutation(int(array), device=array.device)
    return _TAKE(array, _PERMUTATION(n=array.shape[0], device=array.device), axis=0)


def shuffle(x: Any) -> None:
    """Puts the entries of `x` along its first axis into random order, in place.

    >>> x = np.arange(3); np.random.shuffle(x); np.sort(x)
    array([0., 1., 2.])
    """
    if isinstance(x, ndarray) and x.ndim:
        x[...] = permutation(x)
        return
    if isinstance(x, ndarray) or not hasattr(x, "__setitem__"):
        raise MXNetTypeError("shuffle: expected an array of at least one axis, or a mutable sequence")
    order = _PERMUTATION(n=len(x)).tolist()
    x[:] = x[onp.array(order, dtype=int)] if isinstance(x, onp.ndarray) else [x[i] for i in order]


def choice(
    a: Any,
    size: Any = None,
    replace: bool = True,
    p: Any = None,
    device: Any = None,
    out: ndarray | None = None,
    *,
    ctx: Any = None,
) -> ndarray:
    """Entries of the one-dimensional `a` (or numbers below it), with probabilities `p`, with or without repeats.

    >>> np.random.choice(5, size=3).shape
    (3,)
    """
    place = device if ctx is None else ctx
    count, array = _population(a)
    shape = () if size is None else shape_of(size)
    total = math.prod(shape)
    if not replace and total > count:
        raise MXNetValueError("Cannot take a larger sample than population when replace is False")
    if count == 0 and total:
        raise MXNetValueError("a cannot be empty unless no samples are taken")
    if p is None and replace:
        index = randint(0, max(count, 1), shape, device=place)
    elif p is None:
        index = _PERMUTATION(n=count, device=place)[:total].reshape(shape)
    else:
        index = _weighted(_probabilities(p, count), total, replace, place).reshape(shape)
    return deliver(index if array is None else _TAKE(array, index, axis=0), out)


def _population(a: Any) -> tuple[int, ndarray | None]:
    if isinstance(a, (int, onp.integer)):
        if a < 0:
            raise MXNetValueError("a must be greater than or equal to 0")
        return int(a), None
    array = as_array(a)
    if array.ndim == 0:
        return int(array), None
    if array.ndim != 1:
        raise MXNetValueError("a must be 1-dimensional or an integer")
    return array.size, array


def _probabilities(p: Any, count: int) -> onp.ndarray:
    weights = as_array(p).asnumpy().astype("float64")
    if weights.shape != (count,):
        raise MXNetValueError("'a' and 'p' must have same size")
    if not (weights >= 0).all():
        raise MXNetValueError("probabilities are not non-negative")
    if abs(weights.sum() - 1) > 1e-4:  # a float32 distribution of thousands of entries sums to 1 within this
        raise MXNetValueError("probabilities do not sum to 1")
    return weights / weights.sum()


def _weighted(weights: onp.ndarray, total: int, replace: bool, device: Any) -> ndarray:
    """Indices drawn with probabilities `weights`."""
    if replace:
        edges = _core.array(onp.cumsum(weights)[:-1], "float64", device)
        return _SEARCHSORTED(edges, uniform(0.0, 1.0, (total,), "float64", device), side="right")
    if (weights > 0).sum() < total:
        raise MXNetValueError("Fewer non-zero entries in p than size")
    # The smallest of independent exponential times with these rates (Efraimidis and Spirakis 2006).
    with onp.errstate(divide="ignore"):
        scale = _core.array(1 / weights, "float64", device)
    times = exponential(1.0, (len(weights),), device, dtype="float64") * scale
    return _ARGSORT(times, axis=0)[:total]


def multinomial(n: int, pvals: Any, size: Any = None, **kwargs: Any) -> ndarray:
    """How often each outcome occurs in `n` trials with probabilities `pvals` along the last axis; int64.

    >>> np.random.multinomial(4, [0.5, 0.5]).sum()
    array(4, dtype=int64)
    """
    weights = as_array(pvals).asnumpy().astype("float64")
    if weights.ndim != 1:
        raise MXNetValueError("multinomial: pvals must have one dimension")
    if not weights.size:
        raise MXNetValueError("multinomial: pvals must hold at least one probability")
    if not (weights >= 0).all() or weights[:-1].sum() > 1 + 1e-6:
        raise MXNetValueError(
            "sum(pvals[:-1]) > 1.0" if (weights >= 0).all() else "pvals < 0, pvals > 1 or pvals contains NaNs"
        )
    weights[-1] = max(0.0, 1.0 - weights[:-1].sum())
    shape = () if size is None else shape_of(size)
    drawn = _weighted(weights, n * math.prod(shape), True, None).reshape((math.prod(shape), n))
    hits = drawn.expand_dims(-1) == _core.array(onp.arange(len(weights)))
    return hits.sum(1).reshape(shape + weights.shape)


def categorical(data: Any, size: Any = None, get_prob: bool = False, dtype: Any = "int32") -> Any:
    """For each distribution along the last axis of `data`, the numbers of `size` outcomes drawn from it.

    With `get_prob` also the logarithms of their probabilities.

    >>> mx.random.categorical(np.array([[0.0, 1.0]]))
    array([1], dtype=int32)
    """
    p = as_array(data)
    shape = () if size is None else shape_of(size)
    count = math.prod(shape)
    edges = p.astype("float64").cumsum(-1)
    u = uniform(0.0, 1.0, (*p.shape[:-1], count, 1), "float64", p.device) * edges.expand_dims(-2)[..., -1:]
    found = (edges.expand_dims(-2)[..., :-1] <= u).sum(-1)
    result = found.astype(dtype).reshape(p.shape[:-1] + shape)
    if not get_prob:
        return result
    chosen = _TAKE_ALONG_AXIS(p, found, axis=p.ndim - 1)
    return result, _LOG(chosen).reshape(result.shape)
