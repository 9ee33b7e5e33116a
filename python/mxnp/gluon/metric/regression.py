"""Metrics of predicted numbers and vectors: errors, distances and correlations."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as onp

from mxnp.error import MXNetValueError

from .base import EvalMetric, alias, pairs, register

__all__ = ["MAE", "MSE", "RMSE", "MeanCosineSimilarity", "MeanPairwiseDistance", "PearsonCorrelation"]


class _OfNumbers(EvalMetric):
    """Metrics with no arguments of their own, over float64 labels and predictions of one shape."""

    _name = ""

    def __init__(
        self,
        name: str | None = None,
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name or self._name, output_names, label_names, **kwargs)

    def _aligned(self, labels: Any, preds: Any) -> Iterator[tuple[onp.ndarray, onp.ndarray]]:
        """Labels in the predictions' shape; axes of length 1 may differ."""
        for label, pred in pairs(labels, preds):
            mine, its = ([n for n in each.shape if n != 1] for each in (label, pred))
            if mine != its:
                raise MXNetValueError(
                    f"{type(self).__name__}: shape of labels {label.shape} does not match shape of predictions "
                    f"{pred.shape}"
                )
            yield label.reshape(pred.shape).astype("float64"), pred.astype("float64")


class _MeanError(_OfNumbers):
    """The mean of `_error` over all elements so far, each batch by its number of samples."""

    def update(self, labels: Any, preds: Any) -> None:
        """Add the errors of a batch."""
        for label, pred in self._aligned(labels, preds):
            if label.size:
                samples = len(pred) if pred.ndim else 1
                self.sum_metric += float(self._error(label - pred).mean()) * samples
                self.num_inst += samples

    def _error(self, difference: onp.ndarray) -> onp.ndarray:
        raise NotImplementedError


@register
class MAE(_MeanError):
    """The mean absolute error.

    Labels and predictions have one shape, but for axes of length 1.

    >>> metric = gluon.metric.MAE()
    >>> metric.update(np.array([1.0, 2.0, 4.0]), np.array([1.0, 3.0, 3.0]))
    >>> round(metric.get()[1], 4)
    0.6667
    """

    _name = "mae"

    def _error(self, difference: onp.ndarray) -> onp.ndarray:
        return onp.abs(difference)


@register
class MSE(_MeanError):
    """The mean squared error.

    >>> metric = gluon.metric.MSE()
    >>> metric.update(np.array([1.0, 2.0, 4.0]), np.array([1.0, 3.0, 3.0]))
    >>> round(metric.get()[1], 4)
    0.6667
    """

    _name = "mse"

    def _error(self, difference: onp.ndarray) -> onp.ndarray:
        return onp.square(difference)


@register
class RMSE(MSE):
    """The root of the mean squared error over all samples so far.

    >>> metric = gluon.metric.RMSE()
    >>> metric.update(np.array([1.0, 2.0, 4.0]), np.array([1.0, 3.0, 3.0]))
    >>> round(metric.get()[1], 4)
    0.8165
    """

    _name = "rmse"

    def get(self) -> tuple[str, float]:
        """(name, root of the mean)."""
        name, value = super().get()
        return name, math.sqrt(value)


@register
class MeanPairwiseDistance(_OfNumbers):
    """The mean over samples of the p-norm of the difference along the last axis.

    >>> metric = gluon.metric.MeanPairwiseDistance()
    >>> metric.update(np.array([[1.0, 0.0]]), np.array([[3.0, 4.0]]))
    >>> round(metric.get()[1], 4)
    4.4721
    """

    _name = "mpd"

    def __init__(
        self,
        name: str = "mpd",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
        p: float = 2,
    ) -> None:
        super().__init__(name, output_names, label_names, p=p)
        self.p = p

    def update(self, labels: Any, preds: Any) -> None:
        """Add the distances of a batch."""
        for label, pred in self._aligned(labels, preds):
            difference = onp.abs(label - pred).reshape(-1, pred.shape[-1])
            distances = (difference**self.p).sum(axis=1) ** (1.0 / self.p)
            self.sum_metric += float(distances.sum())
            self.num_inst += distances.size


@register
class MeanCosineSimilarity(_OfNumbers):
    """The mean over samples of the cosine of labels and predictions along the last axis.

    eps : norms are at least this.

    >>> metric = gluon.metric.MeanCosineSimilarity()
    >>> metric.update(np.array([[1.0, 0.0]]), np.array([[3.0, 4.0]]))
    >>> round(metric.get()[1], 4)
    0.6
    """

    _name = "cos_sim"

    def __init__(
        self,
        name: str = "cos_sim",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
        eps: float = 1e-8,
    ) -> None:
        super().__init__(name, output_names, label_names, eps=eps)
        self.eps = eps

    def update(self, labels: Any, preds: Any) -> None:
        """Add the cosines of a batch."""
        for label, pred in self._aligned(labels, preds):
            norms = onp.linalg.norm(label, axis=-1) * onp.linalg.norm(pred, axis=-1)
            cosines = (label * pred).sum(axis=-1) / onp.maximum(norms, self.eps)
            self.sum_metric += float(cosines.sum())
            self.num_inst += cosines.size


@alias("pearsonr")
@register
class PearsonCorrelation(_OfNumbers):
    """Pearson's correlation of all labels and predictions so far, from running means and products.

    >>> metric = gluon.metric.PearsonCorrelation()
    >>> metric.update(np.array([1.0, 2.0, 4.0]), np.array([1.0, 3.0, 3.0]))
    >>> round(metric.get()[1], 4)
    0.7559
    """

    _name = "pearsonr"

    def reset(self) -> None:
        """Forget all updates."""
        super().reset()
        self._means = onp.zeros(2)
        self._products = onp.zeros((2, 2))

    def update(self, labels: Any, preds: Any) -> None:
        """Merge a batch into the means and products (Chan, Golub and LeVeque, 1983)."""
        for label, pred in self._aligned(labels, preds):
            if label.size == 0:
                continue
            both = onp.stack([label.ravel(), pred.ravel()])
            means = both.mean(axis=1)
            centred = both - means[:, None]
            shift = means - self._means
            count, total = both.shape[1], self.num_inst + both.shape[1]
            self._products += centred @ centred.T + onp.outer(shift, shift) * self.num_inst * count / total
            self._means += shift * count / total
            self.num_inst = total

    def get(self) -> tuple[str, float]:
        """(name, correlation); nan where either does not vary."""
        spread = self._products[0, 0] * self._products[1, 1]
        value = float(self._products[0, 1] / math.sqrt(spread)) if spread > 0 else float("nan")
        return self.name, value
