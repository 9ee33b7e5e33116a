"""Losses of predicted numbers and counts."""

from __future__ import annotations

import math
from typing import Any

from mxnp import np
from mxnp.error import MXNetValueError

from .base import Loss, reshape_like


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
        loss = np.square(reshape_like(label, pred) - pred)
        return self._finish(loss, sample_weight, factor=0.5)


class L1Loss(Loss):
    """The absolute difference: |label - pred|.

    Predictions and labels have one shape (N, ...); the loss has shape (N,).

    >>> gluon.loss.L1Loss()(np.array([[1.0, 2.0], [3.0, 4.0]]), np.zeros((2, 2)))
    array([1.5, 3.5])
    """

    def __init__(self, weight: float | None = None, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)

    def forward(self, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """One value for each sample."""
        return self._finish(np.abs(reshape_like(label, pred) - pred), sample_weight)


class HuberLoss(Loss):
    """Quadratic for differences d up to `rho`, linear beyond: d^2 / (2 rho), and |d| - rho / 2.

    Huber (1964), divided by `rho`. Predictions and labels have one shape (N, ...); the loss has shape
    (N,).

    >>> gluon.loss.HuberLoss(rho=1)(np.array([0.5, 3.0]), np.zeros(2))
    array([0.125, 2.5  ])
    """

    def __init__(
        self, rho: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        if not rho > 0:
            raise MXNetValueError(f"HuberLoss: rho must be positive, got {rho!r}")
        self._rho = rho

    def forward(self, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """One value for each sample."""
        distance = np.abs(reshape_like(label, pred) - pred)
        quadratic = (0.5 / self._rho) * np.square(distance)
        loss = np.where(distance > self._rho, distance - 0.5 * self._rho, quadratic)
        return self._finish(loss, sample_weight)


class PoissonNLLLoss(Loss):
    """Negative log-likelihood of counts `target` under Poisson distributions.

    from_logits: the predictions are logarithms of the rates: exp(pred) - target * pred; otherwise the rates:
        pred - target * log(pred + epsilon).
    compute_full: add Stirling's approximation of log(target!) for targets above 1.

    Predictions and labels have one shape (N, ...); the loss has shape (N,).

    >>> gluon.loss.PoissonNLLLoss()(np.array([[0.0], [1.0]]), np.array([[2.0], [1.0]])).round(4)
    array([1.    , 1.7183])
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
        target = reshape_like(target, pred)
        if self._from_logits:
            loss = np.exp(pred) - target * pred
        else:
            loss = pred - target * np.log(pred + epsilon)
        if self._compute_full:
            above = np.maximum(target, 1.0)
            stirling = above * np.log(above) - above + 0.5 * np.log(2.0 * math.pi * above)
            loss = loss + np.where(target > 1, stirling, np.zeros_like(stirling))
        return self._finish(loss, sample_weight)
