"""Laws made of other draws: a formula of uniform numbers inverts the distribution function, or combines draws.

In each formula u is in [0, 1): u may be 0 and is never 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as onp

from mxnp._core import ndarray
from mxnp.error import MXNetTypeError, MXNetValueError

from ._table import as_array, deliver, one_device, op
from .random import exponential, normal, uniform

_LOG, _LOG1P, _EXP, _EXPM1, _SQRT = op("log"), op("log1p"), op("exp"), op("expm1"), op("sqrt")


class _Law(NamedTuple):
    """A law: how it is drawn from numbers of another one, and the parameter whose sign is checked."""

    formula: Callable[..., ndarray]
    checked: str
    positive: bool = False  # else 0 is allowed


def _above_zero(x: ndarray) -> ndarray:
    """`x`, with 0 as a number whose logarithm is finite: float16's least, or float32's least normal one."""
    return x + (2.0**-24 if x.dtype.itemsize == 2 else 2.0**-126)


_LAWS = {
    "gumbel": _Law(lambda u, loc, scale: loc - scale * _LOG(_above_zero(-_LOG1P(-u))), "scale"),
    "logistic": _Law(lambda u, loc, scale: loc + scale * (_LOG(_above_zero(u)) - _LOG1P(-u)), "scale"),
    "pareto": _Law(lambda u, a: _EXPM1(-_LOG1P(-u) / a), "a", positive=True),
    "power": _Law(lambda u, a: u ** (1.0 / a), "a", positive=True),
    "rayleigh": _Law(lambda u, scale: scale * _SQRT(-2.0 * _LOG1P(-u)), "scale"),
    "weibull": _Law(lambda u, a: (-_LOG1P(-u)) ** (1.0 / a), "a", positive=True),
}


def _parameters(name: str, checked: str, positive: bool, given: dict[str, Any]) -> dict[str, Any]:
    """The parameters as numbers and arrays, the sign of a number checked; arrays are not waited for."""
    found = {}
    for key, value in given.items():
        x = value if isinstance(value, (int, float, ndarray)) else as_array(value)
        if isinstance(x, ndarray) and x.dtype.kind == "c":
            raise MXNetTypeError(f"{name}: {key} must be real, got {x.dtype}")
        if (
            key == checked
            and not isinstance(x, ndarray)
            and not (x > 0 if positive else x >= 0)  # NaN fails both
        ):
            sign = "positive" if positive else "non-negative"
            raise MXNetValueError(f"{name}: {key} must be {sign}, got {x}")
        found[key] = x
    return found


def _shape(name: str, size: Any, out: Any, params: dict[str, Any]) -> Any:
    """The shape to draw: that of `out`, or `size`, or the one the parameters broadcast to."""
    if out is not None:
        return out.shape
    if size is not None:
        return size
    shapes = [getattr(p, "shape", ()) for p in params.values()]
    try:
        return onp.broadcast_shapes(*shapes)
    except ValueError:
        text = " ".join(str(shape).replace(" ", "") for shape in shapes)
        raise MXNetValueError(
            f"{name}: parameters could not be broadcast together with shapes {text}"
        ) from None


def _place(device: Any, ctx: Any, params: dict[str, Any]) -> Any:
    """The device asked for, or that of the parameters."""
    given = one_device(device, ctx)
    return (
        next((p.device for p in params.values() if isinstance(p, ndarray)), None) if given is None else given
    )


def _invert(name: str, size: Any, dtype: Any, device: Any, ctx: Any, out: Any, **given: Any) -> ndarray:
    """Numbers of the law `name`, from as many uniform ones."""
    law = _LAWS[name]
    params = _parameters(name, law.checked, law.positive, given)
    u = uniform(0.0, 1.0, _shape(name, size, out, params), dtype, _place(device, ctx, params))
    return deliver(law.formula(u, **params), out)


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
    return _invert("gumbel", size, dtype, device, ctx, out, loc=loc, scale=scale)


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
    return _invert("logistic", size, dtype, device, ctx, out, loc=loc, scale=scale)


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
    params = _parameters("laplace", "scale", False, {"loc": loc, "scale": scale})
    shape, place = _shape("laplace", size, out, params), _place(device, ctx, params)
    gap = exponential(1.0, shape, place, dtype=dtype) - exponential(1.0, shape, place, dtype=dtype)
    return deliver(params["loc"] + params["scale"] * gap, out)


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
    shape = size if out is None else out.shape
    return deliver(_EXP(normal(mean, sigma, shape, dtype, one_device(device, ctx))), out)


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
    return _invert("rayleigh", size, dtype, device, ctx, out, scale=scale)


def weibull(
    a: Any, size: Any = None, device: Any = None, out: Any = None, *, dtype: Any = None, ctx: Any = None
) -> ndarray:
    """Numbers of the Weibull distribution of shape `a`.

    >>> np.random.weibull(2.0, size=3).shape
    (3,)
    """
    return _invert("weibull", size, dtype, device, ctx, out, a=a)


def pareto(
    a: Any, size: Any = None, device: Any = None, out: Any = None, *, dtype: Any = None, ctx: Any = None
) -> ndarray:
    """Numbers of the Pareto (Lomax) distribution of shape `a`.

    >>> np.random.pareto(2.0, size=3).shape
    (3,)
    """
    return _invert("pareto", size, dtype, device, ctx, out, a=a)


def power(
    a: Any, size: Any = None, device: Any = None, out: Any = None, *, dtype: Any = None, ctx: Any = None
) -> ndarray:
    """Numbers of [0, 1) whose density grows as x**(a - 1).

    >>> np.random.power(2.0, size=3).shape
    (3,)
    """
    return _invert("power", size, dtype, device, ctx, out, a=a)
