"""Activations, softmax and its relatives on CUDA. Sums are found in float32 at least, as on the CPU."""

from __future__ import annotations

import math
from typing import Any

from ._row import Row, cpu_only
from .special import special


def sigmoid(xp: Any, x: Any) -> Any:
    """1 / (1 + exp(-x))."""
    return special(xp).expit(x)


def relu(xp: Any, x: Any) -> Any:
    """max(x, 0)."""
    return xp.maximum(x, xp.zeros((), x.dtype))


def softplus(xp: Any, x: Any) -> Any:
    """log(1 + exp(x))."""
    return xp.logaddexp(x, xp.zeros((), x.dtype))


def _share(xp: Any, x: Any, p: Any) -> Any:
    """x times p: 0 where p is, also of minus infinity."""
    return xp.where(p == 0, p, x * p)


def gelu(xp: Any, x: Any) -> Any:
    """x times the normal distribution function."""
    return _share(xp, x, 0.5 + 0.5 * special(xp).erf(x * math.sqrt(0.5)))


def silu(xp: Any, x: Any) -> Any:
    """x sigmoid(x)."""
    return _share(xp, x, special(xp).expit(x))


def mish(xp: Any, x: Any) -> Any:
    """x tanh(softplus(x))."""
    return _share(xp, x, xp.tanh(softplus(xp, x)))


def _wide(x: Any, scale: float) -> Any:
    """`x` times `scale`, in float32 at least."""
    return x.astype("float32" if x.dtype.itemsize == 2 else x.dtype) * scale


def _shifted(xp: Any, x: Any, axis: int) -> Any:
    """`x` less its greatest element along an axis: what exp cannot overflow on."""
    return x - x.max(axis, keepdims=True) if x.size else x


def softmax(
    xp: Any,
    x: Any,
    length: Any = None,
    *,
    axis: int = -1,
    temperature: float | None = None,
    dtype: Any = None,
    use_length: bool = False,
) -> Any:
    """exp(x / temperature) scaled to sum 1 along an axis, of which the first `length` count."""
    return _softmax(xp, x, length, axis, 1 / (temperature or 1.0))


def softmin(
    xp: Any,
    x: Any,
    length: Any = None,
    *,
    axis: int = -1,
    temperature: float | None = None,
    dtype: Any = None,
    use_length: bool = False,
) -> Any:
    """softmax of -x."""
    return _softmax(xp, x, length, axis, -1 / (temperature or 1.0))


def log_softmax(
    xp: Any,
    x: Any,
    length: Any = None,
    *,
    axis: int = -1,
    temperature: float | None = None,
    dtype: Any = None,
    use_length: bool = False,
) -> Any:
    """The logarithm of softmax, exact where that is tiny."""
    if length is not None:
        mask = _below(xp, x, length, axis)
        return masked_log_softmax(xp, x, mask, axis=axis, temperature=temperature or 1.0)
    y = _shifted(xp, _wide(x, 1 / (temperature or 1.0)), axis)
    return (y - xp.log(xp.exp(y).sum(axis, keepdims=True))).astype(x.dtype)


def softmax_grad(xp: Any, y: Any, g: Any, *, axis: int = -1, scale: float = 1.0) -> Any:
    """The gradient through softmax of result `y`."""
    wide, head = _wide(y, 1.0), _wide(g, 1.0)
    return (wide * (head - (head * wide).sum(axis, keepdims=True)) * scale).astype(y.dtype)


def log_softmax_grad(xp: Any, y: Any, g: Any, *, axis: int = -1, scale: float = 1.0) -> Any:
    """The gradient through log_softmax of result `y`."""
    head = _wide(g, 1.0)
    return ((head - xp.exp(_wide(y, 1.0)) * head.sum(axis, keepdims=True)) * scale).astype(y.dtype)


def _softmax(xp: Any, x: Any, length: Any, axis: int, scale: float) -> Any:
    if length is not None:
        return _masked(xp, x, _below(xp, x, length, axis), axis, scale).astype(x.dtype)
    raised = xp.exp(_shifted(xp, _wide(x, scale), axis))
    return (raised / raised.sum(axis, keepdims=True)).astype(x.dtype)


def _below(xp: Any, x: Any, length: Any, axis: int) -> Any:
    """Which places along an axis are below the length of their line."""
    axis = axis % x.ndim
    steps = xp.arange(x.shape[axis]).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    return steps < xp.expand_dims(length, axis)


def _masked(xp: Any, x: Any, mask: Any, axis: int, scale: float) -> Any:
    """softmax over the places where the mask holds; 0 elsewhere, and in a line without any."""
    lowest = xp.where(mask, _wide(x, scale), -xp.inf)
    greatest = lowest.max(axis, keepdims=True) if x.size else lowest
    raised = xp.where(mask, xp.exp(lowest - xp.where(xp.isfinite(greatest), greatest, 0)), 0)
    total = raised.sum(axis, keepdims=True)
    return raised / xp.where(total == 0, 1, total)


def masked_softmax(xp: Any, x: Any, mask: Any, *, axis: int = -1, temperature: float = 1.0) -> Any:
    """softmax over the places where the mask holds."""
    return _masked(xp, x, mask, axis, 1 / temperature).astype(x.dtype)


def masked_log_softmax(xp: Any, x: Any, mask: Any, *, axis: int = -1, temperature: float = 1.0) -> Any:
    """The logarithm of masked_softmax: minus infinity where the mask does not hold."""
    lowest = xp.where(mask, _wide(x, 1 / temperature), -xp.inf)
    greatest = lowest.max(axis, keepdims=True) if x.size else lowest
    shifted = lowest - xp.where(xp.isfinite(greatest), greatest, 0)
    total = xp.where(mask, xp.exp(shifted), 0).sum(axis, keepdims=True)
    return xp.where(mask, shifted - xp.log(xp.where(total == 0, 1, total)), -xp.inf).astype(x.dtype)


ROWS: dict[str, Row] = {
    "sigmoid": sigmoid,
    "relu": relu,
    "softplus": softplus,
    "gelu": gelu,
    "silu": silu,
    "mish": mish,
    "softmax": softmax,
    "softmin": softmin,
    "log_softmax": log_softmax,
    "softmax_grad": softmax_grad,
    "log_softmax_grad": log_softmax_grad,
    "masked_softmax": masked_softmax,
    "masked_log_softmax": masked_log_softmax,
    "leaky_relu": cpu_only(
        "it is written with other ops, which have rows of their own: its body runs on CUDA"
    ),
}
