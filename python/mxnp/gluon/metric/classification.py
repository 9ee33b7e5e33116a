"""Metrics of predicted classes: accuracies and correlation coefficients of confusion matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as onp

from mxnp.error import MXNetValueError

from .base import EvalMetric, alias, pairs, register

__all__ = ["MCC", "PCC", "Accuracy", "BinaryAccuracy", "TopKAccuracy"]


def predicted_classes(pred: onp.ndarray, label: onp.ndarray, axis: int, owner: str) -> onp.ndarray:
    """Class numbers: `pred` itself where it has the shape of the labels, else the largest along `axis`."""
    if pred.shape == label.shape:
        return pred.astype("int64").ravel()
    if not -pred.ndim <= axis < pred.ndim:
        raise MXNetValueError(f"{owner}: axis {axis} is out of range for predictions of shape {pred.shape}")
    if pred.shape[axis] == 1:
        raise MXNetValueError(
            f"{owner}: predictions of shape {pred.shape} have one class along axis {axis}\n"
            "hint: for probabilities of yes or no use BinaryAccuracy"
        )
    classes = pred.argmax(axis=axis).ravel()
    if classes.size != label.size:
        raise MXNetValueError(
            f"{owner}: shape of labels {label.shape} does not match shape of predictions {pred.shape}"
        )
    return classes


@alias("acc")
@register
class Accuracy(EvalMetric):
    """The part of samples whose most likely class along `axis` is the label.

    Predictions that have the labels' shape are class numbers already.

    >>> from mxnp import gluon, np
    >>> accuracy = gluon.metric.Accuracy()
    >>> accuracy.update(np.array([0, 1]), np.array([[0.9, 0.1], [0.7, 0.3]]))
    >>> accuracy.get()
    ('accuracy', 0.5)
    """

    def __init__(
        self,
        axis: int = 1,
        name: str = "accuracy",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(name, output_names, label_names, axis=axis)
        self.axis = axis

    def update(self, labels: Any, preds: Any) -> None:
        """Count the samples and those predicted right."""
        for label, pred in pairs(labels, preds):
            classes = predicted_classes(pred, label, self.axis, type(self).__name__)
            self.sum_metric += int((classes == label.astype("int64").ravel()).sum())
            self.num_inst += classes.size


@alias("top_k_accuracy", "top_k_acc")
@register
class TopKAccuracy(EvalMetric):
    """The part of samples whose label is among the `top_k` most likely classes; of equals the first counts.

    labels: (samples,); predictions: (samples, classes).

    >>> metric = gluon.metric.TopKAccuracy(top_k=2)
    >>> metric.update(np.array([2, 0]), np.array([[0.1, 0.6, 0.3], [0.2, 0.5, 0.3]]))
    >>> metric.get()
    ('top_k_accuracy_2', 0.5)
    """

    def __init__(
        self,
        top_k: int = 1,
        name: str = "top_k_accuracy",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        if top_k < 1:
            raise MXNetValueError(f"TopKAccuracy: top_k must be at least 1, got {top_k}")
        super().__init__(f"{name}_{top_k}", output_names, label_names, top_k=top_k)
        self.top_k = top_k

    def update(self, labels: Any, preds: Any) -> None:
        """Count the samples and those whose label is among the first."""
        for label, pred in pairs(labels, preds):
            if pred.ndim < 2 or label.size != pred.size // pred.shape[-1]:
                raise MXNetValueError(
                    f"TopKAccuracy: labels of shape {label.shape} need predictions of shape (samples, classes), "
                    f"got {pred.shape}"
                )
            scores = pred.reshape(-1, pred.shape[-1])
            classes = label.astype("int64").reshape(-1, 1)
            known = ((classes >= 0) & (classes < scores.shape[1])).ravel()
            own = onp.take_along_axis(scores, onp.where(known[:, None], classes, 0), axis=1)
            before = onp.arange(scores.shape[1]) < classes
            rank = ((scores > own) | ((scores == own) & before)).sum(axis=1)
            self.sum_metric += int((known & (rank < self.top_k)).sum())
            self.num_inst += label.size


@register
class BinaryAccuracy(EvalMetric):
    """The part of probabilities that lie on the label's side of `threshold`; labels are 0 and 1.

    >>> metric = gluon.metric.BinaryAccuracy(threshold=0.6)
    >>> metric.update(np.array([0, 1, 1]), np.array([0.5, 0.7, 0.55]))
    >>> round(metric.get()[1], 4)
    0.6667
    """

    def __init__(
        self,
        name: str = "binary_accuracy",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
        threshold: float = 0.5,
    ) -> None:
        super().__init__(name, output_names, label_names, threshold=threshold)
        self.threshold = threshold

    def update(self, labels: Any, preds: Any) -> None:
        """Count the elements and those predicted right."""
        for label, pred in pairs(labels, preds):
            if label.size != pred.size:
                raise MXNetValueError(
                    f"BinaryAccuracy: shape of labels {label.shape} does not match shape of predictions "
                    f"{pred.shape}"
                )
            self.sum_metric += int(((pred.ravel() > self.threshold) == (label.ravel() != 0)).sum())
            self.num_inst += label.size


class _Confusion(EvalMetric):
    """Keeps the confusion matrix of all updates: rows are labels, columns predicted classes."""

    def reset(self) -> None:
        """Forget all updates."""
        super().reset()
        self.confusion = onp.zeros((0, 0), "int64")

    def update(self, labels: Any, preds: Any) -> None:
        """Add the batch to the confusion matrix."""
        for label, pred in pairs(labels, preds):
            classes = predicted_classes(pred, label, pred.ndim - 1, type(self).__name__)
            truth = label.astype("int64").ravel()
            if truth.size and min(truth.min(), classes.min()) < 0:
                raise MXNetValueError(f"{type(self).__name__}: classes must not be negative")
            self._grow(1 + int(max(truth.max(initial=0), classes.max(initial=0))))
            onp.add.at(self.confusion, (truth, classes), 1)
            self.num_inst += truth.size

    def _grow(self, classes: int) -> None:
        more = classes - len(self.confusion)
        if more > 0:
            self.confusion = onp.pad(self.confusion, (0, more))

    def get(self) -> tuple[str, float]:
        """(name, correlation of labels and predictions over all updates)."""
        return self.name, self._correlation() if self.num_inst else float("nan")

    def _correlation(self) -> float:
        """Gorodkin's R_K, which for two classes is Matthews' coefficient; 0 where either never varies."""
        matrix = self.confusion.astype("float64")
        total, right = matrix.sum(), onp.trace(matrix)
        truth, predicted = matrix.sum(axis=1), matrix.sum(axis=0)
        spread = (total**2 - (truth**2).sum()) * (total**2 - (predicted**2).sum())
        return float((total * right - (truth * predicted).sum()) / math.sqrt(spread)) if spread > 0 else 0.0


@register
class MCC(_Confusion):
    """Matthews' correlation coefficient of two classes, over all samples so far.

    Predictions: (samples, 2) scores, or classes in the labels' shape.

    >>> metric = gluon.metric.MCC()
    >>> metric.update(np.array([0, 1, 1, 0]), np.array([0, 1, 0, 0]))
    >>> round(metric.get()[1], 4)
    0.5774
    """

    def __init__(
        self,
        name: str = "mcc",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(name, output_names, label_names)

    def _grow(self, classes: int) -> None:
        if classes > 2:
            raise MXNetValueError(f"MCC: expected classes 0 and 1, got {classes - 1}\nhint: PCC takes more")
        super()._grow(2)


@register
class PCC(_Confusion):
    """The discrete Pearson correlation of labels and predicted classes (Gorodkin, 2004), over all samples.

    >>> metric = gluon.metric.PCC()
    >>> metric.update(np.array([0, 1, 2]), np.array([[0.9, 0, 0], [0, 0.8, 0.1], [0, 0.6, 0.3]]))
    >>> round(metric.get()[1], 4)
    0.6124
    """

    def __init__(
        self,
        name: str = "pcc",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(name, output_names, label_names)
