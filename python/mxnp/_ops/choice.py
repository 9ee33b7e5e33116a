"""Random orders and choices of what is there: permutations, samples with and without repeats, outcomes."""

from __future__ import annotations

import math
from typing import Any

import numpy as onp

from mxnp import _core
from mxnp._core import ndarray
from mxnp.error import MXNetTypeError, MXNetValueError

from ._table import as_array, deliver, look, one_device, op, shape_of
from .random import exponential, randint, uniform

_PERMUTATION, _TAKE, _SEARCHSORTED = op("permutation"), op("take"), op("searchsorted")
_ARGSORT, _TAKE_ALONG_AXIS, _LOG = op("argsort"), op("take_along_axis"), op("log")


def permutation(x: Any, *, device: Any = None, ctx: Any = None) -> ndarray:
    """The numbers below `x` in random order (int64), or the entries of the array `x` along its first axis.

    >>> np.sort(np.random.permutation(3))
    array([0, 1, 2], dtype=int64)
    """
    place = one_device(device, ctx)
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
    order = look(_PERMUTATION(n=len(x))).tolist()
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
    place = one_device(device, ctx)
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
    weights = look(as_array(p)).astype("float64")
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
    weights = look(as_array(pvals)).astype("float64")
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
