"""Optimizers that scale each element by a history of its squared gradients: AdaGrad, AdaDelta, RMSProp, ...

In each formula g is the gradient rescaled, clipped and, unless said otherwise, with wd * weight added.
"""

from __future__ import annotations

from typing import Any

from mxnp import np
from mxnp.error import MXNetTypeError

from .optimizer import Optimizer, register

__all__ = ["FTML", "AdaDelta", "AdaGrad", "Ftrl", "RMSProp"]


@register
class AdaGrad(Optimizer):
    """AdaGrad (Duchi et al., 2011): h += g^2, weight -= lr * g / (sqrt(h) + epsilon).

    1.x's `eps` is accepted for `epsilon`.

    >>> opt, w = mx.optimizer.AdaGrad(learning_rate=0.1), np.array([1.0, -2.0])
    >>> opt.update(0, w, np.array([0.5, 1.0]), opt.create_state(0, w))
    >>> w.round(4)
    array([ 0.9, -2.1])
    """

    default_learning_rate = 0.01

    def __init__(
        self,
        learning_rate: float | None = None,
        epsilon: float = 1e-6,
        use_fused_step: bool = True,
        **kwargs: Any,
    ) -> None:
        epsilon = kwargs.pop("eps", epsilon)
        super().__init__(learning_rate=learning_rate, use_fused_step=use_fused_step, **kwargs)
        self.epsilon = epsilon

    def create_state(self, index: Any, weight: Any) -> Any:
        """h, zeros like the weight."""
        return np.zeros_like(weight)

    def _apply(self, index: int, weight: Any, grad: Any, state: Any, lr: float, wd: float) -> None:
        grad = self._decayed(grad, weight, wd)
        state += np.square(grad)
        weight -= lr * grad / (np.sqrt(state) + self.epsilon)


@register
class RMSProp(Optimizer):
    """RMSProp (Tieleman and Hinton, 2012): n is the running mean of g^2 with rate `rho`.

    weight -= lr * g / (sqrt(n) + epsilon). With `centered` (Graves, 2013), a is the running mean of g,
    d = momentum * d - lr * g / sqrt(n - a^2 + epsilon), weight += d; `momentum` plays no part otherwise.
    `clip_weights` clips the weight afterwards. 1.x's `gamma1` (rho) and `gamma2` (momentum) are accepted.

    >>> opt, w = mx.optimizer.RMSProp(learning_rate=0.1), np.array([1.0, -2.0])
    >>> opt.update(0, w, np.array([0.5, 1.0]), opt.create_state(0, w))
    >>> w.round(4)
    array([ 0.6838, -2.3162])
    """

    default_learning_rate = 0.001

    def __init__(
        self,
        learning_rate: float | None = None,
        rho: float = 0.9,
        momentum: float = 0.9,
        epsilon: float = 1e-8,
        centered: bool = False,
        clip_weights: float | None = None,
        use_fused_step: bool = True,
        **kwargs: Any,
    ) -> None:
        rho = kwargs.pop("gamma1", rho)
        momentum = kwargs.pop("gamma2", momentum)
        super().__init__(learning_rate=learning_rate, use_fused_step=use_fused_step, **kwargs)
        self.rho = rho
        self.momentum = momentum
        self.epsilon = epsilon
        self.centered = centered
        self.clip_weights = clip_weights

    def create_state(self, index: Any, weight: Any) -> Any:
        """n, or (n, a, d) when centered."""
        if not self.centered:
            return np.zeros_like(weight)
        return tuple(np.zeros_like(weight) for _ in range(3))

    def _apply(self, index: int, weight: Any, grad: Any, state: Any, lr: float, wd: float) -> None:
        grad = self._decayed(grad, weight, wd)
        square = state[0] if self.centered else state
        square *= self.rho
        square += (1.0 - self.rho) * np.square(grad)
        if self.centered:
            _, mean, step = state
            mean *= self.rho
            mean += (1.0 - self.rho) * grad
            step *= self.momentum
            step -= lr * grad / np.sqrt(square - np.square(mean) + self.epsilon)
            weight += step
        else:
            weight -= lr * grad / (np.sqrt(square) + self.epsilon)
        if self.clip_weights is not None and self.clip_weights > 0:
            weight[...] = np.clip(weight, -self.clip_weights, self.clip_weights)


@register
class AdaDelta(Optimizer):
    """AdaDelta (Zeiler, 2012): steps scaled by the running mean of earlier squared steps.

    n and d are the running means, with rate `rho`, of g^2 and of squared steps;
    step = sqrt(d + epsilon) / sqrt(n + epsilon) * g, weight -= lr * step.

    >>> opt, w = mx.optimizer.AdaDelta(learning_rate=1.0), np.array([1.0, -2.0])
    >>> opt.update(0, w, np.array([0.5, 1.0]), opt.create_state(0, w))
    >>> w.round(4)
    array([ 0.9968, -2.0032])
    """

    default_learning_rate = 1.0

    def __init__(
        self,
        learning_rate: float | None = None,
        rho: float = 0.9,
        epsilon: float = 1e-6,
        use_fused_step: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, use_fused_step=use_fused_step, **kwargs)
        self.rho = rho
        self.epsilon = epsilon

    def create_state(self, index: Any, weight: Any) -> Any:
        """(n, d), zeros like the weight."""
        return (np.zeros_like(weight), np.zeros_like(weight))

    def _apply(self, index: int, weight: Any, grad: Any, state: Any, lr: float, wd: float) -> None:
        square, squared_steps = state
        grad = self._decayed(grad, weight, wd)
        square *= self.rho
        square += (1.0 - self.rho) * np.square(grad)
        step = np.sqrt(squared_steps + self.epsilon) / np.sqrt(square + self.epsilon) * grad
        squared_steps *= self.rho
        squared_steps += (1.0 - self.rho) * np.square(step)
        weight -= lr * step


@register
class Ftrl(Optimizer):
    """Follow the regularised leader (McMahan et al., 2013): weights below the L1 penalty `lamda1` become
    zero.

    g without decay; z += g - (sqrt(n + g^2) - sqrt(n)) * weight / lr; n += g^2;
    weight = (sign(z) * lamda1 - z) / ((beta + sqrt(n)) / lr + wd) where |z| > lamda1, else 0.

    >>> opt, w = mx.optimizer.Ftrl(learning_rate=0.1), np.array([1.0, -2.0])
    >>> opt.update(0, w, np.array([0.5, 1.0]), opt.create_state(0, w))
    >>> w.round(4)
    array([ 0.2993, -1.0495])
    """

    default_learning_rate = 0.1

    def __init__(
        self,
        learning_rate: float | None = None,
        lamda1: float = 0.01,
        beta: float = 1.0,
        use_fused_step: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, use_fused_step=use_fused_step, **kwargs)
        self.lamda1 = lamda1
        self.beta = beta

    def create_state(self, index: Any, weight: Any) -> Any:
        """(z, n), zeros like the weight."""
        return (np.zeros_like(weight), np.zeros_like(weight))

    def _apply(self, index: int, weight: Any, grad: Any, state: Any, lr: float, wd: float) -> None:
        z, n = state
        grad = self._clipped(grad)
        root = np.sqrt(n)
        n += np.square(grad)
        z += grad - (np.sqrt(n) - root) * weight / lr
        shrunk = np.maximum(np.abs(z) - self.lamda1, 0.0)
        weight[...] = -np.sign(z) * shrunk / ((self.beta + np.sqrt(n)) / lr + wd)


@register
class FTML(Optimizer):
    """Follow the moving leader (Zheng and Kwok, 2017). 1.x's `clip_grad` is accepted for `clip_gradient`.

    With b = beta1 and c = beta2: v = c v + (1 - c) g^2, d' = (1 - b^t) / lr * (sqrt(v / (1 - c^t)) +
    epsilon), z = b z + (1 - b) g - (d' - b d) * weight, weight = -z / d'.

    >>> opt, w = mx.optimizer.FTML(learning_rate=0.1), np.array([1.0, -2.0])
    >>> opt.update(0, w, np.array([0.5, 1.0]), opt.create_state(0, w))
    >>> w.round(4)
    array([ 0.9, -2.1])
    """

    default_learning_rate = 0.0025

    def __init__(
        self,
        learning_rate: float | None = None,
        beta1: float = 0.6,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        use_fused_step: bool = True,
        **kwargs: Any,
    ) -> None:
        if "clip_grad" in kwargs:
            if "clip_gradient" in kwargs:
                raise MXNetTypeError("FTML: clip_grad and clip_gradient mean the same; give one")
            kwargs["clip_gradient"] = kwargs.pop("clip_grad")
        super().__init__(learning_rate=learning_rate, use_fused_step=use_fused_step, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon

    def create_state(self, index: Any, weight: Any) -> Any:
        """(d, v, z), zeros like the weight."""
        return tuple(np.zeros_like(weight) for _ in range(3))

    def _apply(self, index: int, weight: Any, grad: Any, state: Any, lr: float, wd: float) -> None:
        d, v, z = state
        t = self._index_update_count[index]
        grad = self._decayed(grad, weight, wd)
        v *= self.beta2
        v += (1.0 - self.beta2) * np.square(grad)
        root = np.sqrt(v / (1.0 - self.beta2**t)) + self.epsilon
        new_d = (1.0 - self.beta1**t) / lr * root
        z *= self.beta1
        z += (1.0 - self.beta1) * grad - (new_d - self.beta1 * d) * weight
        d[...] = new_d
        weight[...] = -z / d
