"""Losses of predicted classes and distributions."""

from __future__ import annotations

from typing import Any

from mxnp import np, npx
from mxnp.error import MXNetValueError

from .base import TINY, Loss, fitting, reshape_label, reshape_like, softplus_of_minus


class SigmoidBinaryCrossEntropyLoss(Loss):
    """Cross-entropy of independent yes-or-no predictions; labels are probabilities, mostly 0 and 1.

    from_sigmoid: the predictions are probabilities already; otherwise logits, which is exact for large ones.
    `pos_weight`, broadcast to the predictions, multiplies the part of label 1.

    Predictions and labels have one shape (N, ...); the loss has shape (N,).

    >>> loss = gluon.loss.SigmoidBCELoss()
    >>> loss(np.array([[0.0], [3.0]]), np.array([[1.0], [1.0]])).round(4)
    array([0.6931, 0.0486])
    """

    def __init__(
        self, from_sigmoid: bool = False, weight: float | None = None, batch_axis: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._from_sigmoid = from_sigmoid

    def forward(self, pred: Any, label: Any, sample_weight: Any = None, pos_weight: Any = None) -> Any:
        """One value for each sample."""
        label = reshape_like(label, pred)
        if self._from_sigmoid:
            hit = np.log(pred + TINY) * label
            if pos_weight is not None:
                hit = hit * pos_weight
            loss = -(hit + np.log(1.0 - pred + TINY) * (1.0 - label))
        else:
            tail = softplus_of_minus(pred)
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
            loss = np.sum(pred * reshape_like(label, pred), axis=self._axis, keepdims=True)
        return self._finish(loss, sample_weight, factor=-1.0)

    def _class_numbers(self, pred: Any, label: Any, sample_weight: Any) -> Any:
        """The labels in the predictions' shape with length 1 along `axis`; those without weight become 0."""
        axis = self._axis % pred.ndim
        label = reshape_label(label, (*pred.shape[:axis], 1, *pred.shape[axis + 1 :]))
        if sample_weight is not None:
            label = np.where(fitting(sample_weight, label) != 0, label, np.zeros_like(label))
        if label.dtype.kind != "f":
            return label
        # As indices, -0.5 and NaN would be 0: they are no class.
        return np.where(label >= 0, label, np.where(label <= -1, label, -1))


SoftmaxCELoss = SoftmaxCrossEntropyLoss


class KLDivLoss(Loss):
    """Divergence of the predictions from the distributions `label`: label * (log(label) - pred).

    from_logits: the predictions are logarithms of probabilities; otherwise log_softmax over `axis` makes
    them.

    Predictions and labels have one shape (N, ...); the loss has shape (N,). By default that is the mean
    over the classes, not their sum.

    >>> p = np.array([[0.5, 0.5]])
    >>> gluon.loss.KLDivLoss(from_logits=False)(np.array([[1.0, 0.0]]), p).round(4)
    array([0.0601])
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
        return self._finish(label * (np.log(label + TINY) - pred), sample_weight)


class HingeLoss(Loss):
    """max(0, margin - pred * label), for labels -1 and 1.

    Predictions and labels have one shape (N, ...); the loss has shape (N,).

    >>> gluon.loss.HingeLoss()(np.array([[0.5], [2.0]]), np.array([[1.0], [-1.0]]))
    array([0.5, 3. ])
    """

    def __init__(
        self, margin: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def forward(self, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """One value for each sample."""
        return self._finish(npx.relu(self._margin - pred * reshape_like(label, pred)), sample_weight)


class SquaredHingeLoss(HingeLoss):
    """max(0, margin - pred * label)^2, for labels -1 and 1.

    Predictions and labels have one shape (N, ...); the loss has shape (N,).

    >>> gluon.loss.SquaredHingeLoss()(np.array([[0.5], [2.0]]), np.array([[1.0], [-1.0]]))
    array([0.25, 9.  ])
    """

    def forward(self, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """One value for each sample."""
        gap = npx.relu(self._margin - pred * reshape_like(label, pred))
        return self._finish(np.square(gap), sample_weight)


class LogisticLoss(Loss):
    """log(1 + exp(-pred * label)) for labels -1 and 1, or the same for labels 0 and 1.

    label_format : 'signed' for the former, 'binary' for the latter.

    Predictions and labels have one shape (N, ...); the loss has shape (N,).

    >>> gluon.loss.LogisticLoss()(np.array([0.0, 2.0]), np.array([1.0, -1.0])).round(4)
    array([0.6931, 2.1269])
    """

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
        label = reshape_like(label, pred)
        if self._label_format == "signed":
            label = (label + 1.0) * 0.5
        return self._finish((1.0 - label) * pred + softplus_of_minus(pred), sample_weight)
