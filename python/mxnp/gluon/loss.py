"""Losses: blocks that compare predictions with labels and give one value for each sample.

A loss is the mean over all axes but `batch_axis`, times `weight`, with each element first multiplied by
`sample_weight` where one is given. The sum over the batch, and the division by its size, are the trainer's.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from mxnp import np, npx
from mxnp._missing import refuse as _refuse
from mxnp.error import MXNetTypeError, MXNetValueError

from .block import HybridBlock

__all__ = [
    "CosineEmbeddingLoss",
    "HingeLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "L2Loss",
    "LogisticLoss",
    "Loss",
    "PoissonNLLLoss",
    "SDMLLoss",
    "SigmoidBCELoss",
    "SigmoidBinaryCrossEntropyLoss",
    "SoftmaxCELoss",
    "SoftmaxCrossEntropyLoss",
    "SquaredHingeLoss",
    "TripletLoss",
]

# Keeps the logarithm of a probability, and a division by a norm, finite.
_TINY = 1e-12


class Loss(HybridBlock):
    """Base of the losses.

    weight: a number that multiplies the loss, or None.
    batch_axis: the axis of the samples, which is kept.

    A subclass defines `forward(pred, label, sample_weight=None)`, or `hybrid_forward(F, pred, label, ...)`
    as in MXNet 1. `sample_weight` must broadcast to the shape of the loss before the mean, without
    enlarging it: for predictions of shape (N, C) one weight for each sample has shape (N, 1); axes of
    length 1 may be left out.
    """

    def __init__(self, weight: Any, batch_axis: int, **kwargs: Any) -> None:
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
        loss = _apply_weighting(loss, None if scale == 1.0 else scale, sample_weight)
        return _batch_mean(loss, self._batch_axis)


def _apply_weighting(*args: Any, weight: float | None = None, sample_weight: Any = None) -> Any:
    """`loss * sample_weight * weight`: (loss, weight, sample_weight), after a leading `F` in MXNet 1's way."""
    if not isinstance(args[0], np.ndarray):
        args = args[1:]
    loss = args[0]
    weight = args[1] if len(args) > 1 else weight
    sample_weight = args[2] if len(args) > 2 else sample_weight
    if sample_weight is not None:
        loss = loss * _fitting(sample_weight, loss)
    return loss if weight is None else loss * weight


def _fitting(sample_weight: Any, loss: Any) -> Any:
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


def _batch_mean(loss: Any, batch_axis: int) -> Any:
    """The mean over all axes but `batch_axis`."""
    if loss.ndim <= 1:
        return loss
    kept = batch_axis % loss.ndim
    return np.mean(loss, axis=tuple(axis for axis in range(loss.ndim) if axis != kept))


def _reshape_like(*args: Any) -> Any:
    """`x` in the shape of `y`, the last two arguments; MXNet 1 puts `F` before them."""
    x, y = args[-2:]
    return _reshape_label(x, y.shape)


def _reshape_label(label: Any, shape: tuple[int, ...]) -> Any:
    """The label in another shape of as many elements: axes of length 1 and flattened ones may differ.

    The same axes in another order are a mistake that a plain reshape would hide.
    """
    if label.shape == shape:
        return label
    mine, its = _essence(label.shape), _essence(shape)
    if label.size != math.prod(shape) or (len(mine) == len(its) and mine != its):
        raise MXNetValueError(f"loss: labels of shape {label.shape} do not fit, expected {tuple(shape)}")
    return label.reshape(shape)


def _softplus_of_minus(x: Any) -> Any:
    """log(1 + exp(-x)) without overflow; (|x| - x) / 2 has the exact slope -1/2 at 0, as relu(-x) has not."""
    magnitude = np.abs(x)
    return 0.5 * (magnitude - x) + np.log1p(np.exp(-magnitude))


class L2Loss(Loss):
    """Half the squared difference: weight / 2 * (label - pred)^2.

    >>> from mxnp import gluon, np
    >>> gluon.loss.L2Loss()(np.array([[1.0, 2.0], [3.0, 4.0]]), np.zeros((2, 2))).tolist()
    [1.25, 6.25]
    """

    def __init__(self, weight: float | None = 1.0, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)

    def forward(self, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """One value for each sample."""
        loss = np.square(_reshape_like(label, pred) - pred)
        return self._finish(loss, sample_weight, factor=0.5)


class L1Loss(Loss):
    """The absolute difference: |label - pred|."""

    def __init__(self, weight: float | None = None, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)

    def forward(self, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """One value for each sample."""
        return self._finish(np.abs(_reshape_like(label, pred) - pred), sample_weight)


class HuberLoss(Loss):
    """Quadratic for differences d up to `rho`, linear beyond: d^2 / (2 rho), and |d| - rho / 2."""

    def __init__(
        self, rho: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        if not rho > 0:
            raise MXNetValueError(f"HuberLoss: rho must be positive, got {rho!r}")
        self._rho = rho

    def forward(self, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """One value for each sample."""
        distance = np.abs(_reshape_like(label, pred) - pred)
        quadratic = (0.5 / self._rho) * np.square(distance)
        loss = np.where(distance > self._rho, distance - 0.5 * self._rho, quadratic)
        return self._finish(loss, sample_weight)


class SigmoidBinaryCrossEntropyLoss(Loss):
    """Cross-entropy of independent yes-or-no predictions; labels are probabilities, mostly 0 and 1.

    from_sigmoid: the predictions are probabilities already; otherwise logits, which is exact for large ones.
    `pos_weight`, broadcast to the predictions, multiplies the part of label 1.
    """

    def __init__(
        self, from_sigmoid: bool = False, weight: float | None = None, batch_axis: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._from_sigmoid = from_sigmoid

    def forward(self, pred: Any, label: Any, sample_weight: Any = None, pos_weight: Any = None) -> Any:
        """One value for each sample."""
        label = _reshape_like(label, pred)
        if self._from_sigmoid:
            hit = np.log(pred + _TINY) * label
            if pos_weight is not None:
                hit = hit * pos_weight
            loss = -(hit + np.log(1.0 - pred + _TINY) * (1.0 - label))
        else:
            tail = _softplus_of_minus(pred)
            if pos_weight is not None:
                tail = tail * (1.0 + (pos_weight - 1.0) * label)
            loss = (1.0 - label) * pred + tail
        return self._finish(loss, sample_weight)


SigmoidBCELoss = SigmoidBinaryCrossEntropyLoss


class SoftmaxCrossEntropyLoss(Loss):
    """Cross-entropy of the softmax over `axis`.

    sparse_label: labels are class numbers, of any dtype, with the shape of the predictions less `axis` (an
    axis
        of length 1 may stand there). One outside [0, classes) raises, unless its `sample_weight` is 0: labels
        of padding may be anything. Otherwise labels are distributions, shaped as the predictions.
    from_logits: the predictions are logarithms of probabilities already.

    >>> from mxnp import gluon, np
    >>> loss = gluon.loss.SoftmaxCrossEntropyLoss()
    >>> [round(x, 4) for x in loss(np.array([[2.0, 0.0], [0.0, 0.0]]), np.array([0, 1])).tolist()]
    [0.1269, 0.6931]
    """

    def __init__(
        self,
        axis: int = -1,
        sparse_label: bool = True,
        from_logits: bool = False,
        weight: float | None = None,
        batch_axis: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._axis = axis
        self._sparse_label = sparse_label
        self._from_logits = from_logits

    def forward(self, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """One value for each sample."""
        if not self._from_logits:
            pred = npx.log_softmax(pred, axis=self._axis)
        if self._sparse_label:
            label = self._class_numbers(pred, label, sample_weight)
            loss = npx.pick(pred, label, axis=self._axis, keepdims=True, mode="strict")
        else:
            loss = np.sum(pred * _reshape_like(label, pred), axis=self._axis, keepdims=True)
        return self._finish(loss, sample_weight, factor=-1.0)

    def _class_numbers(self, pred: Any, label: Any, sample_weight: Any) -> Any:
        """The labels in the predictions' shape with length 1 along `axis`; those without weight become 0."""
        axis = self._axis % pred.ndim
        label = _reshape_label(label, (*pred.shape[:axis], 1, *pred.shape[axis + 1 :]))
        if sample_weight is not None:
            label = np.where(_fitting(sample_weight, label) != 0, label, np.zeros_like(label))
        if label.dtype.kind != "f":
            return label
        # As indices, -0.5 and NaN would be 0: they are no class.
        return np.where(label >= 0, label, np.where(label <= -1, label, -1))


SoftmaxCELoss = SoftmaxCrossEntropyLoss


class KLDivLoss(Loss):
    """Divergence of the predictions from the distributions `label`: label * (log(label) - pred).

    from_logits: the predictions are logarithms of probabilities; otherwise log_softmax over `axis` makes
    them.
    """

    def __init__(
        self,
        from_logits: bool = True,
        axis: int = -1,
        weight: float | None = None,
        batch_axis: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._from_logits = from_logits
        self._axis = axis

    def forward(self, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """One value for each sample."""
        if not self._from_logits:
            pred = npx.log_softmax(pred, axis=self._axis)
        return self._finish(label * (np.log(label + _TINY) - pred), sample_weight)


class HingeLoss(Loss):
    """max(0, margin - pred * label), for labels -1 and 1."""

    def __init__(
        self, margin: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def forward(self, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """One value for each sample."""
        return self._finish(npx.relu(self._margin - pred * _reshape_like(label, pred)), sample_weight)


class SquaredHingeLoss(HingeLoss):
    """max(0, margin - pred * label)^2, for labels -1 and 1."""

    def forward(self, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """One value for each sample."""
        gap = npx.relu(self._margin - pred * _reshape_like(label, pred))
        return self._finish(np.square(gap), sample_weight)


class LogisticLoss(Loss):
    """log(1 + exp(-pred * label)) for labels -1 and 1 ('signed'), or the same for 0 and 1 ('binary')."""

    def __init__(
        self,
        weight: float | None = None,
        batch_axis: int = 0,
        label_format: str = "signed",
        **kwargs: Any,
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        if label_format not in ("signed", "binary"):
            raise MXNetValueError(
                f"LogisticLoss: label_format must be 'signed' or 'binary', got {label_format!r}"
            )
        self._label_format = label_format

    def forward(self, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """One value for each sample."""
        label = _reshape_like(label, pred)
        if self._label_format == "signed":
            label = (label + 1.0) * 0.5
        return self._finish((1.0 - label) * pred + _softplus_of_minus(pred), sample_weight)


class TripletLoss(Loss):
    """max(0, |pred - positive|^2 - |pred - negative|^2 + margin), the squares summed over each sample."""

    def __init__(
        self, margin: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def forward(self, pred: Any, positive: Any, negative: Any, sample_weight: Any = None) -> Any:
        """One value for each sample."""
        near, far = (np.square(_reshape_like(other, pred) - pred) for other in (positive, negative))
        kept = self._batch_axis % pred.ndim
        others = tuple(axis for axis in range(pred.ndim) if axis != kept)
        loss = npx.relu(np.sum(near - far, axis=others) + self._margin)
        return self._finish(loss, sample_weight)


class PoissonNLLLoss(Loss):
    """Negative log-likelihood of counts `target` under Poisson distributions.

    from_logits: the predictions are logarithms of the rates: exp(pred) - target * pred; otherwise the rates:
        pred - target * log(pred + epsilon).
    compute_full: add Stirling's approximation of log(target!) for targets above 1.
    """

    def __init__(
        self,
        weight: float | None = None,
        from_logits: bool = True,
        batch_axis: int = 0,
        compute_full: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._from_logits = from_logits
        self._compute_full = compute_full

    def forward(self, pred: Any, target: Any, sample_weight: Any = None, epsilon: float = 1e-8) -> Any:
        """One value for each sample."""
        target = _reshape_like(target, pred)
        if self._from_logits:
            loss = np.exp(pred) - target * pred
        else:
            loss = pred - target * np.log(pred + epsilon)
        if self._compute_full:
            above = np.maximum(target, 1.0)
            stirling = above * np.log(above) - above + 0.5 * np.log(2.0 * math.pi * above)
            loss = loss + np.where(target > 1, stirling, np.zeros_like(stirling))
        return self._finish(loss, sample_weight)


class CosineEmbeddingLoss(Loss):
    """1 - cos(input1, input2) where the label is 1, max(0, cos(input1, input2) - margin) where it is -1.

    The cosine is that of the last axes of two arrays of the same shape (samples, ...).
    """

    def __init__(
        self, weight: float | None = None, batch_axis: int = 0, margin: float = 0, **kwargs: Any
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def forward(self, input1: Any, input2: Any, label: Any, sample_weight: Any = None) -> Any:
        """One value for each sample."""
        input1 = _reshape_like(input1, input2)
        squares = np.sum(np.square(input1), axis=-1) * np.sum(np.square(input2), axis=-1)
        norms = np.sqrt(np.maximum(squares, _TINY**2))  # inside the root, whose slope at 0 is infinite
        cosine = np.sum(input1 * input2, axis=-1) / norms
        label = _reshape_like(label, cosine)
        loss = np.where(label == 1, 1.0 - cosine, npx.relu(cosine - self._margin))
        return self._finish(loss, sample_weight)


class SDMLLoss(Loss):
    """Smoothed deep metric learning (Bonadiman et al., 2019): paired rows of x1 and x2 are near, others far.

    Each row of x1 is classified among the rows of x2 by the softmax of negative squared distances; the
    label is the pair, smoothed by `smoothing_parameter`, and the loss the divergence from it.
    """

    def __init__(
        self,
        smoothing_parameter: float = 0.3,
        weight: float | None = 1.0,
        batch_axis: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._smoothing = smoothing_parameter

    def forward(self, x1: Any, x2: Any) -> Any:
        """One value for each row of x1."""
        rows = x1.shape[0]
        if rows < 2 or x1.shape != x2.shape:
            raise MXNetValueError(
                f"SDMLLoss: expected two arrays of one shape with at least 2 rows, got {x1.shape} and {x2.shape}"
            )
        distances = np.sum(np.square(np.expand_dims(x1, 1) - np.expand_dims(x2, 0)), axis=2)
        off = self._smoothing / (rows - 1)
        label = np.eye(rows, dtype=x1.dtype, device=x1.device) * (1.0 - self._smoothing - off) + off
        pred = npx.log_softmax(-distances, axis=1)
        return self._finish(label * (np.log(label + _TINY) - pred), None)


__getattr__ = _refuse(__name__)
