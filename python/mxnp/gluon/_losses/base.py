"""The base of the losses, and what they share: weights, the mean of each sample, labels in the predictions' shape.

A loss is the mean over all axes but `batch_axis`, times `weight`, with each element first multiplied by
`sample_weight` where one is given. The sum over the batch, and the division by its size, are the trainer's.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from mxnp import np
from mxnp.error import MXNetTypeError, MXNetValueError

from ..block import HybridBlock

# Keeps the logarithm of a probability, and a division by a norm, finite.
TINY = 1e-12


class Loss(HybridBlock):
    """Base of the losses.

    A subclass defines `forward(pred, label, sample_weight=None)`, or `hybrid_forward(F, pred, label, ...)`
    as in MXNet 1. `sample_weight` must broadcast to the shape of the loss before the mean, without
    enlarging it: for predictions of shape (N, C) one weight for each sample has shape (N, 1); axes of
    length 1 may be left out.

    The loss has the predictions' dtype. Shapes that do not fit raise ValueError.

    >>> class RelativeLoss(gluon.loss.Loss):
    ...     def __init__(self):
    ...         super().__init__(weight=None, batch_axis=0)
    ...
    ...     def forward(self, pred, label):
    ...         return np.abs(pred / label - 1).mean(axis=1)
    >>> RelativeLoss()(np.array([[1.0, 3.0]]), np.array([[2.0, 2.0]]))
    array([0.5])
    """

    def __init__(self, weight: Any, batch_axis: int, **kwargs: Any) -> None:
        """Parameters
        ----------
        weight : a number that multiplies the loss, or None.
        batch_axis : the axis of the samples, which is kept; the mean is taken over the others.
        """
        super().__init__(**kwargs)
        if weight is not None and not isinstance(weight, Real):
            raise MXNetTypeError(f"{type(self).__name__}: weight must be a number or None, got {weight!r}")
        self._weight = weight
        self._batch_axis = batch_axis

    def __repr__(self) -> str:
        return f"{type(self).__name__}(batch_axis={self._batch_axis}, w={self._weight})"

    def _finish(self, loss: Any, sample_weight: Any, factor: float = 1.0) -> Any:
        """Apply the weights to the loss of each element and take the mean of each sample.

        `factor` belongs to the formula; one multiplication does for it and `weight`.
        """
        scale = factor if self._weight is None else factor * self._weight
        loss = apply_weighting(loss, None if scale == 1.0 else scale, sample_weight)
        return batch_mean(loss, self._batch_axis)


def apply_weighting(*args: Any, weight: float | None = None, sample_weight: Any = None) -> Any:
    """`loss * sample_weight * weight`: (loss, weight, sample_weight), after a leading `F` in MXNet 1's way."""
    if not isinstance(args[0], np.ndarray):
        args = args[1:]
    loss = args[0]
    weight = args[1] if len(args) > 1 else weight
    sample_weight = args[2] if len(args) > 2 else sample_weight
    if sample_weight is not None:
        loss = loss * fitting(sample_weight, loss)
    return loss if weight is None else loss * weight


def fitting(sample_weight: Any, loss: Any) -> Any:
    """The weights, in a shape that multiplies the loss without enlarging it."""
    shape = tuple(getattr(sample_weight, "shape", ()))
    aligned = zip(reversed(shape), reversed(loss.shape), strict=False)
    if len(shape) <= loss.ndim and all(mine in (1, its) for mine, its in aligned):
        return sample_weight
    if _essence(shape) == _essence(loss.shape):
        return sample_weight.reshape(loss.shape)
    hint = ""
    if len(shape) == 1 and shape[0] == loss.shape[0]:
        hint = f"\nhint: for one weight for each sample give shape {shape + (1,) * (loss.ndim - 1)}"
    raise MXNetValueError(
        f"loss: sample_weight of shape {shape} does not fit a loss of shape {loss.shape}{hint}"
    )


def _essence(shape: tuple[int, ...]) -> list[int]:
    """The lengths other than 1."""
    return [n for n in shape if n != 1]


def batch_mean(loss: Any, batch_axis: int) -> Any:
    """The mean over all axes but `batch_axis`."""
    if loss.ndim <= 1:
        return loss
    kept = batch_axis % loss.ndim
    return np.mean(loss, axis=tuple(axis for axis in range(loss.ndim) if axis != kept))


def reshape_like(*args: Any) -> Any:
    """`x` in the shape of `y`, the last two arguments; MXNet 1 puts `F` before them."""
    x, y = args[-2:]
    return reshape_label(x, y.shape)


def reshape_label(label: Any, shape: tuple[int, ...]) -> Any:
    """The label in another shape of as many elements: axes of length 1 and flattened ones may differ.

    The same axes in another order are a mistake that a plain reshape would hide.
    """
    if label.shape == shape:
        return label
    mine, its = _essence(label.shape), _essence(shape)
    if label.size != math.prod(shape) or (len(mine) == len(its) and mine != its):
        raise MXNetValueError(f"loss: labels of shape {label.shape} do not fit, expected {tuple(shape)}")
    return label.reshape(shape)


def softplus_of_minus(x: Any) -> Any:
    """log(1 + exp(-x)) without overflow; (|x| - x) / 2 has the exact slope -1/2 at 0, as relu(-x) has not."""
    magnitude = np.abs(x)
    return 0.5 * (magnitude - x) + np.log1p(np.exp(-magnitude))
