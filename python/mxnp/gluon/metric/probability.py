"""Metrics of predicted probabilities and of losses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as onp

from mxnp.error import MXNetIndexError, MXNetValueError

from .base import EvalMetric, alias, as_arrays, pairs, register, to_numpy

__all__ = ["CrossEntropy", "Loss", "NegativeLogLikelihood", "Perplexity", "Torch"]


@alias("ce")
@register
class CrossEntropy(EvalMetric):
    """The mean of -log(probability of the label + eps); labels are class numbers.

    labels: (samples,); predictions: (samples, classes), or with the classes along `axis`.

    >>> metric = gluon.metric.CrossEntropy()
    >>> metric.update(np.array([0, 1]), np.array([[0.5, 0.5], [0.5, 0.5]]))
    >>> round(metric.get()[1], 4)
    0.6931
    """

    def __init__(
        self,
        eps: float = 1e-12,
        ignore_label: int | None = None,
        axis: int = -1,
        from_logits: bool = False,
        name: str = "cross-entropy",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        """Parameters
        ----------
        eps : added to probabilities before the logarithm.
        ignore_label : samples of this label do not count.
        axis : the axis of the classes.
        from_logits : the predictions are logits, of which the softmax is taken.
        name : what `get` calls the metric.
        output_names, label_names : the entries that `update_dict` takes, all by default.
        """
        super().__init__(
            name,
            output_names,
            label_names,
            eps=eps,
            ignore_label=ignore_label,
            axis=axis,
            from_logits=from_logits,
        )
        self.eps = eps
        self.ignore_label = ignore_label
        self.axis = axis
        self.from_logits = from_logits

    def update(self, labels: Any, preds: Any) -> None:
        """Add the cross-entropies; a label outside the classes raises IndexError unless it is ignored."""
        for label, pred in pairs(labels, preds):
            pred = onp.moveaxis(pred, self.axis, -1)
            if label.size * pred.shape[-1] != pred.size:
                raise MXNetValueError(
                    f"{type(self).__name__}: labels of shape {label.shape} do not fit predictions whose shape "
                    f"but the classes is {pred.shape[:-1]}"
                )
            classes, scores = label.astype("int64").ravel(), pred.reshape(-1, pred.shape[-1])
            if self.ignore_label is not None:
                kept = classes != self.ignore_label
                classes, scores = classes[kept], scores[kept]
            if classes.size and (classes.min() < 0 or classes.max() >= scores.shape[1]):
                raise MXNetIndexError(
                    f"{type(self).__name__}: labels must be in [0, {scores.shape[1]}), got {classes.min()} to "
                    f"{classes.max()}"
                )
            self.sum_metric += float(self._entropies(classes, scores).sum())
            self.num_inst += classes.size

    def _entropies(self, classes: onp.ndarray, scores: onp.ndarray) -> onp.ndarray:
        own = onp.take_along_axis(scores, classes[:, None], axis=1)[:, 0].astype("float64")
        if not self.from_logits:
            return -onp.log(own + self.eps)
        top = scores.max(axis=1, initial=-onp.inf, keepdims=True)
        return onp.log(onp.exp(scores - top).sum(axis=1, dtype="float64")) + top[:, 0] - own


@alias("nll_loss", "nllloss")
@register
class NegativeLogLikelihood(CrossEntropy):
    """1.x's name of `CrossEntropy`.

    >>> gluon.metric.create("nll_loss").get()
    ('nll-loss', nan)
    """

    def __init__(
        self,
        eps: float = 1e-12,
        name: str = "nll-loss",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(eps, name=name, output_names=output_names, label_names=label_names)


@register
class Perplexity(CrossEntropy):
    """exp of the mean cross-entropy over all samples so far.

    >>> metric = gluon.metric.Perplexity()
    >>> metric.update(np.array([0, 1]), np.array([[0.5, 0.5], [0.5, 0.5]]))
    >>> round(metric.get()[1], 4)
    2.0
    """

    def __init__(
        self,
        eps: float = 1e-12,
        ignore_label: int | None = None,
        axis: int = -1,
        from_logits: bool = False,
        name: str = "perplexity",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(eps, ignore_label, axis, from_logits, name, output_names, label_names)

    def get(self) -> tuple[str, float]:
        """(name, perplexity)."""
        name, value = super().get()
        return name, math.exp(value) if value < 700 else value * math.inf


@register
class Loss(EvalMetric):
    """The mean of the predictions, which are losses; labels are not looked at.

    >>> from mxnp import gluon, np
    >>> loss = gluon.metric.Loss()
    >>> loss.update(None, np.array([1.0, 2.0]))
    >>> loss.get()
    ('loss', 1.5)
    """

    def __init__(
        self,
        name: str = "loss",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(name, output_names, label_names)

    def update(self, labels: Any, preds: Any) -> None:
        """Add every element."""
        for pred in as_arrays(preds):
            values = to_numpy(pred)
            self.sum_metric += float(values.sum(dtype="float64"))
            self.num_inst += values.size


@register
class Torch(Loss):
    """`Loss` under another name, kept for MXNet's sake.

    >>> metric = gluon.metric.Torch()
    >>> metric.update(None, np.array([1.0, 2.0]))
    >>> metric.get()
    ('torch', 1.5)
    """

    def __init__(
        self,
        name: str = "torch",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(name, output_names, label_names)
