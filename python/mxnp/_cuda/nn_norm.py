"""Normalisations on CUDA. Statistics are found in float32 at least, as on the CPU."""

from __future__ import annotations

from typing import Any

from ._row import Row, cpu_only


def normalize(xp: Any, x: Any, *, axes: Any, eps: float) -> tuple[Any, Any, Any]:
    """(x - mean) / sqrt(variance + eps) over axes, the mean, and the inverse deviation."""
    over = tuple(axes)
    wide = x.astype("float32" if x.dtype.itemsize == 2 else x.dtype)
    mean = wide.mean(over, keepdims=True)
    inverse = 1 / xp.sqrt(wide.var(over, keepdims=True) + eps)
    return ((wide - mean) * inverse).astype(x.dtype), mean, inverse


def layer_norm(xp: Any, x: Any, gamma: Any, beta: Any, *, axis: int = -1, eps: float = 1e-5) -> Any:
    """Normalised along an axis, then scaled and shifted."""
    axis = axis % x.ndim
    shape = [n if i == axis else 1 for i, n in enumerate(x.shape)]
    return normalize(xp, x, axes=(axis,), eps=eps)[0] * gamma.reshape(shape) + beta.reshape(shape)


def layer_norm_grad(
    xp: Any, g: Any, x: Any, gamma: Any, *, axis: int = -1, eps: float = 1e-5
) -> tuple[Any, Any, Any]:
    """The gradients of layer_norm's operands."""
    axis = axis % x.ndim
    others = tuple(i for i in range(x.ndim) if i != axis)
    kind = "float32" if x.dtype.itemsize == 2 else x.dtype
    wide, head = x.astype(kind), g.astype(kind)
    y, _, inverse = normalize(xp, wide, axes=(axis,), eps=eps)
    scaled = head * gamma.reshape([n if i == axis else 1 for i, n in enumerate(x.shape)])
    mean = scaled.mean(axis, keepdims=True)
    slope = (scaled * y).mean(axis, keepdims=True)
    dx = (inverse * (scaled - mean - y * slope)).astype(x.dtype)
    return dx, (head * y).sum(others), head.sum(others)


WHY = "its statistics are updated in place: the write to a device array is not written yet"

ROWS: dict[str, Row] = {
    "normalize": normalize,
    "layer_norm": layer_norm,
    "layer_norm_grad": layer_norm_grad,
    "group_norm": cpu_only("written with normalize on the CPU; its CUDA form is not written yet"),
    "instance_norm": cpu_only("written with normalize on the CPU; its CUDA form is not written yet"),
    "batch_norm": cpu_only(WHY),
    "batch_norm_grad": cpu_only(WHY),
}
