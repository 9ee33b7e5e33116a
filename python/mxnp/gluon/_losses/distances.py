"""Losses of embeddings: how near related samples are, and how far others."""

from __future__ import annotations

from typing import Any

from mxnp import np, npx
from mxnp.error import MXNetValueError

from .base import TINY, Loss, reshape_like


class TripletLoss(Loss):
    """max(0, |pred - positive|^2 - |pred - negative|^2 + margin), the squares summed over each sample.

    Schroff, Kalenichenko and Philbin (2015), with the distances squared. Three arrays of one shape (N,
    ...) give a loss of shape (N,).

    >>> anchor, positive, negative = np.zeros((1, 2)), np.ones((1, 2)), np.full((1, 2), 2.0)
    >>> gluon.loss.TripletLoss(margin=7)(anchor, positive, negative)
    array([1.])
    """

    def __init__(
        self, margin: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def forward(self, pred: Any, positive: Any, negative: Any, sample_weight: Any = None) -> Any:
        """One value for each sample."""
        near, far = (np.square(reshape_like(other, pred) - pred) for other in (positive, negative))
        kept = self._batch_axis % pred.ndim
        others = tuple(axis for axis in range(pred.ndim) if axis != kept)
        loss = npx.relu(np.sum(near - far, axis=others) + self._margin)
        return self._finish(loss, sample_weight)


class CosineEmbeddingLoss(Loss):
    """1 - cos(input1, input2) where the label is 1, max(0, cos(input1, input2) - margin) where it is -1.

    The cosine is that of the last axes of two arrays of the same shape (samples, ...).

    The loss has the shape of `label`, (samples,).

    >>> x, y = np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 2.0]])
    >>> gluon.loss.CosineEmbeddingLoss()(x, y, np.array([1, 1]))
    array([0., 1.])
    """

    def __init__(
        self, weight: float | None = None, batch_axis: int = 0, margin: float = 0, **kwargs: Any
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def forward(self, input1: Any, input2: Any, label: Any, sample_weight: Any = None) -> Any:
        """One value for each sample."""
        input1 = reshape_like(input1, input2)
        squares = np.sum(np.square(input1), axis=-1) * np.sum(np.square(input2), axis=-1)
        norms = np.sqrt(np.maximum(squares, TINY**2))  # inside the root, whose slope at 0 is infinite
        cosine = np.sum(input1 * input2, axis=-1) / norms
        label = reshape_like(label, cosine)
        loss = np.where(label == 1, 1.0 - cosine, npx.relu(cosine - self._margin))
        return self._finish(loss, sample_weight)


class SDMLLoss(Loss):
    """Smoothed deep metric learning (Bonadiman et al., 2019): paired rows of x1 and x2 are near, others far.

    Each row of x1 is classified among the rows of x2 by the softmax of negative squared distances; the
    label is the pair, smoothed by `smoothing_parameter`, and the loss the divergence from it.

    x1 and x2: (N, features); gives (N,).

    >>> x = np.array([[0.0, 0.0], [3.0, 3.0]])
    >>> gluon.loss.SDMLLoss()(x, x).shape
    (2,)
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
        return self._finish(label * (np.log(label + TINY) - pred), None)
