"""F scores: harmonic means of precision and recall."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as onp

from mxnp.error import MXNetValueError

from .base import EvalMetric, pairs, register
from .classification import predicted_classes

__all__ = ["F1", "Fbeta"]


@register
class Fbeta(EvalMetric):
    """(1 + beta^2) * precision * recall / (beta^2 * precision + recall), over all samples so far.

    Where nothing is predicted and nothing is there the score is 0.

    >>> metric = gluon.metric.Fbeta(beta=2)
    >>> metric.update(np.array([1, 0, 1, 1]), np.array([0.9, 0.4, 0.3, 0.8]))
    >>> round(metric.get()[1], 4)
    0.7143
    """

    def __init__(
        self,
        name: str = "fbeta",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
        class_type: str = "binary",
        beta: float = 1,
        threshold: float = 0.5,
        average: str | None = "micro",
    ) -> None:
        """Parameters
        ----------
        name : what `get` calls the metric.
        output_names, label_names : the entries that `update_dict` takes, all by default.
        class_type : 'binary' takes (samples, 2) scores, or probabilities above `threshold`; 'multiclass' scores of
            (samples, classes); 'multilabel' probabilities and 0-1 labels of (samples, classes).
        beta : how many times as much as precision recall counts.
        threshold : probabilities above it say yes.
        average : 'micro' adds the counts of all classes, 'macro' averages the classes' scores, None gives them all.
        """
        owner = type(self).__name__
        if class_type not in ("binary", "multiclass", "multilabel"):
            raise MXNetValueError(
                f"{owner}: class_type must be 'binary', 'multiclass' or 'multilabel', got {class_type!r}"
            )
        if average not in ("micro", "macro", None):
            raise MXNetValueError(f"{owner}: average must be 'micro', 'macro' or None, got {average!r}")
        super().__init__(
            name,
            output_names,
            label_names,
            class_type=class_type,
            beta=beta,
            threshold=threshold,
            average=average,
        )
        self.class_type = class_type
        self.beta = beta
        self.threshold = threshold
        self.average = average

    def reset(self) -> None:
        """Forget all updates."""
        super().reset()
        self._counts = onp.zeros((3, 0), "int64")

    def update(self, labels: Any, preds: Any) -> None:
        """Add the true positives, false positives and false negatives of each class."""
        for label, pred in pairs(labels, preds):
            truth, positive = self._memberships(label, pred)
            counts = onp.stack(
                [
                    (truth & positive).sum(axis=0),
                    (~truth & positive).sum(axis=0),
                    (truth & ~positive).sum(axis=0),
                ]
            )
            width = max(counts.shape[1], self._counts.shape[1])
            grown, added = (
                onp.pad(each, ((0, 0), (0, width - each.shape[1]))) for each in (self._counts, counts)
            )
            self._counts = grown + added
            self.num_inst += len(truth)

    def _memberships(self, label: onp.ndarray, pred: onp.ndarray) -> tuple[onp.ndarray, onp.ndarray]:
        """For each sample and class: whether the label, and whether the prediction, says yes."""
        owner = type(self).__name__
        if self.class_type == "multilabel" or (self.class_type == "binary" and pred.size == label.size):
            if pred.size != label.size:
                raise MXNetValueError(
                    f"{owner}: shape of labels {label.shape} does not match shape of predictions {pred.shape}"
                )
            width = 1 if self.class_type == "binary" else label.shape[-1]
            return label.reshape(-1, width) != 0, pred.reshape(-1, width) > self.threshold
        classes = predicted_classes(pred, label, pred.ndim - 1, owner)
        truth = label.astype("int64").ravel()
        count = pred.shape[-1]
        if truth.size and (truth.min() < 0 or truth.max() >= count):
            raise MXNetValueError(
                f"{owner}: labels must be in [0, {count}), got {truth.min()} to {truth.max()}"
            )
        if self.class_type == "binary":
            return truth[:, None] == 1, classes[:, None] == 1
        return truth[:, None] == onp.arange(count), classes[:, None] == onp.arange(count)

    def get(self) -> tuple[str, Any]:
        """(name, score); with average=None an array of the classes' scores."""
        if not self.num_inst:
            return self.name, float("nan")
        counts = self._counts.sum(axis=1, keepdims=True) if self.average == "micro" else self._counts
        hits, false_positives, misses = counts.astype("float64")
        square = self.beta**2
        whole = (1 + square) * hits + square * misses + false_positives
        scores = (1 + square) * hits / onp.where(whole > 0, whole, 1.0)
        return self.name, scores if self.average is None else float(scores.mean())


@register
class F1(Fbeta):
    """`Fbeta` with beta 1: the harmonic mean of precision and recall.

    >>> from mxnp import gluon, np
    >>> f1 = gluon.metric.F1()
    >>> f1.update(np.array([1, 0, 1, 1]), np.array([0.9, 0.4, 0.3, 0.8]))
    >>> f1.get()
    ('f1', 0.8)
    """

    def __init__(
        self,
        name: str = "f1",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
        class_type: str = "binary",
        threshold: float = 0.5,
        average: str | None = "micro",
    ) -> None:
        super().__init__(name, output_names, label_names, class_type, 1, threshold, average)
