"""Optimizers' updates on CUDA, written to weight and states; computed in float64, as on the CPU."""

from __future__ import annotations

from typing import Any

from ._row import Row


def _gradient(xp: Any, weight: Any, grad: Any, wd: Any, rescale: Any, clip: float | None) -> Any:
    """The gradient scaled and clipped, with the decay of the weight, in float64."""
    g = grad.astype("float64") * rescale
    return (g if clip is None else xp.clip(g, -clip, clip)) + wd * weight


def sgd_update(
    xp: Any,
    weight: Any,
    grad: Any,
    lr: Any,
    wd: Any,
    rescale: Any,
    *,
    momentum: float = 0.0,
    clip_gradient: float | None = None,
) -> tuple[()]:
    """weight -= lr (clip(rescale grad) + wd weight)."""
    w = weight.astype("float64")
    weight[...] = (w - lr * _gradient(xp, w, grad, wd, rescale, clip_gradient)).astype(weight.dtype)
    return ()


def sgd_mom_update(
    xp: Any,
    weight: Any,
    grad: Any,
    mom: Any,
    lr: Any,
    wd: Any,
    rescale: Any,
    *,
    momentum: float = 0.0,
    clip_gradient: float | None = None,
) -> tuple[()]:
    """mom = momentum mom - lr gradient; weight += mom."""
    w = weight.astype("float64")
    moved = momentum * mom.astype("float64") - lr * _gradient(xp, w, grad, wd, rescale, clip_gradient)
    weight[...] = (w + moved).astype(weight.dtype)
    mom[...] = moved.astype(mom.dtype)
    return ()


def adam_update(
    xp: Any,
    weight: Any,
    grad: Any,
    mean: Any,
    var: Any,
    lr: Any,
    wd: Any,
    rescale: Any,
    *,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    clip_gradient: float | None = None,
) -> tuple[()]:
    """Kingma and Ba, 2015; the bias correction is part of `lr`."""
    w = weight.astype("float64")
    g = _gradient(xp, w, grad, wd, rescale, clip_gradient)
    first = beta1 * mean.astype("float64") + (1 - beta1) * g
    second = beta2 * var.astype("float64") + (1 - beta2) * g * g
    weight[...] = (w - lr * first / (xp.sqrt(second) + epsilon)).astype(weight.dtype)
    mean[...] = first.astype(mean.dtype)
    var[...] = second.astype(var.dtype)
    return ()


ROWS: dict[str, Row] = {
    "sgd_update": sgd_update,
    "sgd_mom_update": sgd_mom_update,
    "adam_update": adam_update,
}
