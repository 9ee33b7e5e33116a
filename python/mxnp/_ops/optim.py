"""Optimizers' updates, each in one sweep over weight, gradient and state, in place."""

from __future__ import annotations

from mxnp._core import ndarray

from ._table import op

_SGD_UPDATE, _SGD_MOM_UPDATE, _ADAM_UPDATE = op("sgd_update"), op("sgd_mom_update"), op("adam_update")


def sgd_update(
    weight: ndarray,
    grad: ndarray,
    lr: float,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float | None = None,
) -> None:
    """weight -= lr * (clip(rescale_grad * grad) + wd * weight), in place; `clip_gradient` None: no clipping."""
    _SGD_UPDATE(weight, grad, lr, wd, rescale_grad, clip_gradient=clip_gradient)


def sgd_mom_update(
    weight: ndarray,
    grad: ndarray,
    mom: ndarray,
    lr: float,
    momentum: float = 0.0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float | None = None,
) -> None:
    """mom = momentum * mom - lr * (clip(rescale_grad * grad) + wd * weight); weight += mom; both in place."""
    _SGD_MOM_UPDATE(weight, grad, mom, lr, wd, rescale_grad, momentum=momentum, clip_gradient=clip_gradient)


def adam_update(
    weight: ndarray,
    grad: ndarray,
    mean: ndarray,
    var: ndarray,
    lr: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float | None = None,
) -> None:
    """Adam's step (Kingma and Ba, 2015), in place; the bias correction is part of `lr`."""
    _ADAM_UPDATE(
        weight,
        grad,
        mean,
        var,
        lr,
        wd,
        rescale_grad,
        beta1=beta1,
        beta2=beta2,
        epsilon=epsilon,
        clip_gradient=clip_gradient,
    )
