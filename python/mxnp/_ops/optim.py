"""Optimizers' updates, each in one sweep over weights, gradients and states, in place: one call for many weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mxnp._core import ndarray

from ._table import op
from .create import array

_SGD_UPDATE, _SGD_MOM_UPDATE, _ADAM_UPDATE = op("sgd_update"), op("sgd_mom_update"), op("adam_update")


def sgd_update(
    weights: Sequence[ndarray],
    grads: Sequence[ndarray],
    lrs: Sequence[float],
    wds: Sequence[float],
    rescale_grad: float = 1.0,
    clip_gradient: float | None = None,
) -> None:
    """weight -= lr * (clip(rescale_grad * grad) + wd * weight), in place, for weights of one dtype.

    `lrs`, `wds`: one number a weight; `clip_gradient` None: no clipping.
    """
    _SGD_UPDATE(*weights, *grads, _each(lrs), _each(wds), rescale_grad, clip_gradient=clip_gradient)


def sgd_mom_update(
    weights: Sequence[ndarray],
    grads: Sequence[ndarray],
    moms: Sequence[ndarray],
    lrs: Sequence[float],
    wds: Sequence[float],
    momentum: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float | None = None,
) -> None:
    """mom = momentum * mom - lr * (clip(rescale_grad * grad) + wd * weight); weight += mom; as `sgd_update`."""
    numbers = (_each(lrs), _each(wds), rescale_grad)
    _SGD_MOM_UPDATE(*weights, *grads, *moms, *numbers, momentum=momentum, clip_gradient=clip_gradient)


def adam_update(
    weights: Sequence[ndarray],
    grads: Sequence[ndarray],
    means: Sequence[ndarray],
    variances: Sequence[ndarray],
    lrs: Sequence[float],
    wds: Sequence[float],
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    rescale_grad: float = 1.0,
    clip_gradient: float | None = None,
) -> None:
    """Adam's step (Kingma and Ba, 2015) as `sgd_update`; the bias correction is part of `lrs`."""
    numbers = (_each(lrs), _each(wds), rescale_grad)
    constants: dict[str, Any] = {
        "beta1": beta1,
        "beta2": beta2,
        "epsilon": epsilon,
        "clip_gradient": clip_gradient,
    }
    _ADAM_UPDATE(*weights, *grads, *means, *variances, *numbers, **constants)


def _each(numbers: Sequence[float]) -> Any:
    """One number where all are equal, else an array of them."""
    first = numbers[0]
    return first if all(each == first for each in numbers) else array(numbers, dtype="float64")
