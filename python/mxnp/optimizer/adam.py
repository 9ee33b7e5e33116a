"""Adam and the optimizers built on its two moments: AdamW, Adamax, Nadam, AdaBelief, LAMB, LANS.

In each formula t counts the updates of the weight from 1, and g is the gradient rescaled, clipped and, unless
said otherwise, with wd * weight added.
"""

from __future__ import annotations

import math
from typing import Any

from mxnp import np
from mxnp._ops.optim import adam_update
from mxnp.error import MXNetValueError

from .optimizer import Optimizer, by_kind, register
from .sgd import norm

__all__ = ["LAMB", "LANS", "AdaBelief", "Adam", "AdamW", "Adamax", "Nadam"]


class _TwoMoments(Optimizer):
    """Keeps m, the running mean of g, and v, one of its square or of something like it."""

    default_learning_rate = 0.001

    def __init__(
        self,
        learning_rate: float | None = None,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        use_fused_step: bool = True,
        **kwargs: Any,
    ) -> None:
        """Parameters
        ----------
        learning_rate : the rate; by default the class's.
        beta1, beta2 : the kept fractions of m and v, each in [0, 1).
        epsilon : keeps the division finite.
        use_fused_step, aggregate_num : accepted for MXNet's sake.
        The rest are Optimizer's.
        """
        super().__init__(learning_rate=learning_rate, use_fused_step=use_fused_step, **kwargs)
        for name, beta in (("beta1", beta1), ("beta2", beta2)):
            _require_fraction(self, name, beta)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon

    def create_state(self, index: Any, weight: Any) -> Any:
        """(m, v), zeros like the weight."""
        return (np.zeros_like(weight), np.zeros_like(weight))

    def _count(self, index: int) -> int:
        return self._index_update_count[index]

    def _corrected(self, index: int, lr: float) -> float:
        """lr * sqrt(1 - beta2^t) / (1 - beta1^t), which makes up for moments that start at zero."""
        t = self._count(index)
        return lr * math.sqrt(1.0 - self.beta2**t) / (1.0 - self.beta1**t)

    def _average(self, mean: Any, value: Any, beta: float) -> None:
        mean *= beta
        mean += (1.0 - beta) * value


def _require_fraction(owner: object, name: str, value: float) -> None:
    if not 0.0 <= value < 1.0:
        raise MXNetValueError(f"{type(owner).__name__}: {name} must be in [0, 1), got {value!r}")


@register
class Adam(_TwoMoments):
    """Adam (Kingma and Ba, 2014): weight -= lr_t * m / (sqrt(v) + epsilon), with lr_t the bias-corrected
    rate.

    Weight decay is the L2 kind, part of g; AdamW decouples it. `lazy_update` is accepted.

    >>> from mxnp import np, optimizer
    >>> adam, w = optimizer.create("adam", learning_rate=0.5), np.array([1.0, 2.0])
    >>> adam.update(0, w, np.array([3.0, -1.0]), adam.create_state(0, w))
    >>> [round(x, 4) for x in w.tolist()]
    [0.5, 2.5]
    """

    def __init__(
        self,
        learning_rate: float | None = None,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        lazy_update: bool = False,
        use_fused_step: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate, beta1, beta2, epsilon, use_fused_step, **kwargs)
        self.lazy_update = lazy_update

    def fused_step(self, indices: list[int], weights: list, grads: list, states: list) -> None:
        """`step` in one call for all weights of a dtype."""
        if type(self)._apply is not Adam._apply:
            return self.step(indices, weights, grads, states)
        self._update_count(indices)
        rates = [self._corrected(i, lr) for i, lr in zip(indices, self._get_lrs(indices), strict=True)]
        means, variances = [mean for mean, _ in states], [variance for _, variance in states]
        constants = (self.beta1, self.beta2, self.epsilon, self.rescale_grad, self._clip_limit())
        decays, kinds = self._get_wds(indices), [None] * len(weights)
        for _, columns in by_kind(weights, kinds, weights, grads, means, variances, rates, decays):
            chosen, their_grads, their_means, their_variances, lrs, wds = columns
            adam_update(chosen, their_grads, their_means, their_variances, lrs, wds, *constants)
        return None

    def _apply(self, index: int, weight: Any, grad: Any, state: Any, lr: float, wd: float) -> None:
        mean, variance = state
        grad = self._decayed(grad, weight, wd)
        self._average(mean, grad, self.beta1)
        self._average(variance, np.square(grad), self.beta2)
        weight -= self._corrected(index, lr) * mean / (np.sqrt(variance) + self.epsilon)


class _Correctable(_TwoMoments):
    """Leaves the bias of the moments uncorrected where `correct_bias` is False."""

    def __init__(
        self,
        learning_rate: float | None = None,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-6,
        correct_bias: bool = True,
        use_fused_step: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate, beta1, beta2, epsilon, use_fused_step, **kwargs)
        self.correct_bias = correct_bias

    def _rate(self, index: int, lr: float) -> float:
        return self._corrected(index, lr) if self.correct_bias else lr


@register
class AdamW(_Correctable):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019).

    weight -= lr_t * (m / (sqrt(v) + epsilon) + wd * weight), g without decay. As in MXNet lr_t is the
    bias-corrected rate in both terms; `correct_bias=False` uses lr.

    >>> opt, w = mx.optimizer.AdamW(learning_rate=0.1, wd=0.01), np.array([1.0, -2.0])
    >>> opt.update(0, w, np.array([0.5, 1.0]), opt.create_state(0, w))
    >>> w.round(4)
    array([ 0.8997, -2.0994])
    """

    def _apply(self, index: int, weight: Any, grad: Any, state: Any, lr: float, wd: float) -> None:
        mean, variance = state
        grad = self._clipped(grad)
        self._average(mean, grad, self.beta1)
        self._average(variance, np.square(grad), self.beta2)
        lr = self._rate(index, lr)
        direction = mean / (np.sqrt(variance) + self.epsilon)
        weight -= lr * (direction + wd * weight) if wd else lr * direction


@register
class AdaBelief(_Correctable):
    """AdaBelief (Zhuang et al., 2020): Adam whose v is the running mean of (g - m)^2 + epsilon.

    `correct_bias=False` leaves the rate as it is. Here wd * weight is added to the gradient before clipping.

    >>> opt, w = mx.optimizer.AdaBelief(learning_rate=0.1), np.array([1.0, -2.0])
    >>> opt.update(0, w, np.array([0.5, 1.0]), opt.create_state(0, w))
    >>> w.round(4)
    array([ 0.8892, -2.111 ])
    """

    def _apply(self, index: int, weight: Any, grad: Any, state: Any, lr: float, wd: float) -> None:
        mean, variance = state
        grad = self._clip(self._rescaled(grad) + wd * weight)
        self._average(mean, grad, self.beta1)
        self._average(variance, np.square(grad - mean), self.beta2)
        variance += self.epsilon
        lr = self._rate(index, lr)
        weight -= lr * mean / (np.sqrt(variance) + self.epsilon)


@register
class Adamax(_TwoMoments):
    """Adam with the infinity norm (Kingma and Ba, 2014).

    v = max(beta2 * v, |g|), weight -= lr / (1 - beta1^t) * m / (v + epsilon).

    >>> opt, w = mx.optimizer.Adamax(learning_rate=0.1), np.array([1.0, -2.0])
    >>> opt.update(0, w, np.array([0.5, 1.0]), opt.create_state(0, w))
    >>> w.round(4)
    array([ 0.9, -2.1])
    """

    default_learning_rate = 0.002

    def __init__(
        self,
        learning_rate: float | None = None,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        use_fused_step: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate, beta1, beta2, epsilon, use_fused_step, **kwargs)

    def _apply(self, index: int, weight: Any, grad: Any, state: Any, lr: float, wd: float) -> None:
        mean, largest = state
        grad = self._decayed(grad, weight, wd)
        self._average(mean, grad, self.beta1)
        largest[...] = np.maximum(self.beta2 * largest, np.abs(grad))
        weight -= lr / (1.0 - self.beta1 ** self._count(index)) * mean / (largest + self.epsilon)


@register
class Nadam(_TwoMoments):
    """Adam with Nesterov momentum (Dozat, 2016), its momentum warmed up by `schedule_decay`.

    >>> opt, w = mx.optimizer.Nadam(learning_rate=0.1), np.array([1.0, -2.0])
    >>> opt.update(0, w, np.array([0.5, 1.0]), opt.create_state(0, w))
    >>> w.round(4)
    array([ 0.8944, -2.1056])
    """

    def __init__(
        self,
        learning_rate: float | None = None,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        schedule_decay: float = 0.004,
        use_fused_step: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate, beta1, beta2, epsilon, use_fused_step, **kwargs)
        self.schedule_decay = schedule_decay

    def _momentum(self, t: int) -> float:
        return self.beta1 * (1.0 - 0.5 * 0.96 ** (t * self.schedule_decay))

    def _apply(self, index: int, weight: Any, grad: Any, state: Any, lr: float, wd: float) -> None:
        mean, variance = state
        t = self._count(index)
        now, after = self._momentum(t), self._momentum(t + 1)
        product = math.prod(self._momentum(k) for k in range(1, t + 1))
        grad = self._decayed(grad, weight, wd)
        self._average(mean, grad, self.beta1)
        self._average(variance, np.square(grad), self.beta2)
        ahead = (1.0 - now) / (1.0 - product) * grad + after / (1.0 - product * after) * mean
        weight -= lr * ahead / (np.sqrt(variance / (1.0 - self.beta2**t)) + self.epsilon)


@register
class LAMB(_TwoMoments):
    """Adam's step, scaled for each weight to the weight's norm (You et al., 2020).

    u = m' / (sqrt(v') + epsilon) + wd * weight, with m' and v' bias-corrected unless `bias_correction=False`;
    weight -= lr * |weight| / |u| * u. |weight| is kept within `lower_bound` and `upper_bound`; where a norm
    is 0 the ratio is 1.

    >>> opt, w = mx.optimizer.LAMB(learning_rate=0.1), np.array([1.0, -2.0])
    >>> opt.update(0, w, np.array([0.5, 1.0]), opt.create_state(0, w))
    >>> w.round(4)
    array([ 0.8419, -2.1581])
    """

    def __init__(
        self,
        learning_rate: float | None = None,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-6,
        lower_bound: float | None = None,
        upper_bound: float | None = None,
        bias_correction: bool = True,
        aggregate_num: int = 4,
        use_fused_step: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            learning_rate, beta1, beta2, epsilon, use_fused_step, aggregate_num=aggregate_num, **kwargs
        )
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound
        self.bias_correction = bias_correction

    def _apply(self, index: int, weight: Any, grad: Any, state: Any, lr: float, wd: float) -> None:
        mean, variance = state
        grad = self._clipped(grad)
        self._average(mean, grad, self.beta1)
        self._average(variance, np.square(grad), self.beta2)
        if self.bias_correction:
            t = self._count(index)
            mean, variance = mean / (1.0 - self.beta1**t), variance / (1.0 - self.beta2**t)
        direction = mean / (np.sqrt(variance) + self.epsilon) + wd * weight
        w_norm = _bounded(norm(weight), self.lower_bound, self.upper_bound)
        weight -= lr * _scaled_to(w_norm, direction)


@register
class LANS(_TwoMoments):
    """LAMB with the gradient scaled to norm 1 and a Nesterov-like step (Zheng et al., 2020).

    u and w are LAMB's directions with m' and with g in the numerator, each scaled to the weight's norm;
    weight -= lr * (beta1 * u + (1 - beta1) * w). The weight's norm is kept within `lower_bound` and `upper_bound`.

    >>> opt, w = mx.optimizer.LANS(learning_rate=0.1), np.array([1.0, -2.0])
    >>> opt.update(0, w, np.array([0.5, 1.0]), opt.create_state(0, w))
    >>> w.round(4)
    array([ 0.8419, -2.1581])
    """

    def __init__(
        self,
        learning_rate: float | None = None,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-6,
        lower_bound: float | None = None,
        upper_bound: float | None = None,
        aggregate_num: int = 4,
        use_fused_step: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            learning_rate, beta1, beta2, epsilon, use_fused_step, aggregate_num=aggregate_num, **kwargs
        )
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound

    def _apply(self, index: int, weight: Any, grad: Any, state: Any, lr: float, wd: float) -> None:
        mean, variance = state
        grad = self._rescaled(grad)
        size = norm(grad)
        grad = self._clip(grad / np.where(size > 0, size, 1.0).astype(grad.dtype))
        self._average(mean, grad, self.beta1)
        self._average(variance, np.square(grad), self.beta2)
        t = self._count(index)
        root = np.sqrt(variance / (1.0 - self.beta2**t)) + self.epsilon
        w_norm = _bounded(norm(weight), self.lower_bound, self.upper_bound)
        ahead = _scaled_to(w_norm, grad / root + wd * weight)
        weight -= lr * (
            self.beta1 * _scaled_to(w_norm, mean / (1.0 - self.beta1**t) / root + wd * weight)
            + (1.0 - self.beta1) * ahead
        )


def _bounded(size: Any, lower: float | None, upper: float | None) -> Any:
    size = size if lower is None else np.maximum(size, lower)
    return size if upper is None else np.minimum(size, upper)


def _scaled_to(size: Any, direction: Any) -> Any:
    """The direction with the norm `size`, or as it is where either norm is 0."""
    own = norm(direction)
    return np.where(size * own > 0, size / own, 1.0).astype(direction.dtype) * direction
