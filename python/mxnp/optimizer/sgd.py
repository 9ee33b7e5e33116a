"""Gradient descent and its relatives: SGD, NAG, Signum, SGLD, DCASGD, LARS. No state but momentum."""

from __future__ import annotations

import math
from typing import Any

from mxnp import np
from mxnp._ops.optim import sgd_mom_update, sgd_update

from .optimizer import Optimizer, by_kind, register

__all__ = ["DCASGD", "LARS", "NAG", "SGD", "SGLD", "Signum", "Test"]


class _Momentum(Optimizer):
    """Keeps one array beside a weight, its momentum, unless `momentum` is 0."""

    momentum: float

    def create_state(self, index: Any, weight: Any) -> Any:
        """The momentum, where there is one."""
        return np.zeros_like(weight) if self.momentum != 0.0 else None


@register
class SGD(_Momentum):
    """Stochastic gradient descent with momentum.

    g = clip(rescale_grad * grad) + wd * weight; momentum: m = momentum * m - lr * g, weight += m;
    without momentum: weight -= lr * g. `lazy_update` is accepted: there are no sparse gradients.

    >>> from mxnp import np, optimizer
    >>> sgd, w = optimizer.create("sgd", learning_rate=0.5), np.array([1.0, 2.0])
    >>> sgd.update(0, w, np.array([1.0, -1.0]), sgd.create_state(0, w))
    >>> w.tolist()
    [0.5, 2.5]
    """

    default_learning_rate = 0.1

    def __init__(
        self,
        learning_rate: float | None = None,
        momentum: float = 0.0,
        lazy_update: bool = False,
        multi_precision: bool = False,
        use_fused_step: bool = True,
        aggregate_num: int = 1,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            learning_rate=learning_rate,
            multi_precision=multi_precision,
            use_fused_step=use_fused_step,
            aggregate_num=aggregate_num,
            **kwargs,
        )
        self.momentum = momentum
        self.lazy_update = lazy_update

    def fused_step(self, indices: list[int], weights: list, grads: list, states: list) -> None:
        """`step` in one call for all weights of a dtype."""
        if type(self)._apply is not SGD._apply:  # LARS and others that step otherwise
            return self.step(indices, weights, grads, states)
        self._update_count(indices)
        rates, decays = self._get_lrs(indices), self._get_wds(indices)
        scale, limit = self.rescale_grad, self._clip_limit()
        with_momentum = [state is not None for state in states]
        rows = by_kind(weights, with_momentum, weights, grads, states, rates, decays)
        for has_momentum, (chosen, their_grads, moms, lrs, wds) in rows:
            if has_momentum:
                sgd_mom_update(chosen, their_grads, moms, lrs, wds, self.momentum, scale, limit)
            else:
                sgd_update(chosen, their_grads, lrs, wds, scale, limit)
        return None

    def _apply(self, index: int, weight: Any, grad: Any, state: Any, lr: float, wd: float) -> None:
        self._descend(weight, self._decayed(grad, weight, wd), state, lr)

    def _descend(self, weight: Any, grad: Any, momentum: Any, lr: float) -> None:
        if momentum is None:
            weight -= lr * grad
            return
        momentum *= self.momentum
        momentum -= lr * grad
        weight += momentum


Optimizer.opt_registry["ccsgd"] = SGD  # 1.x's other name of it


@register
class NAG(_Momentum):
    """Nesterov's accelerated gradient: SGD's momentum m, then weight += momentum * m - lr * g.

    Nesterov (1983), in the form of Sutskever et al. (2013).

    >>> opt, w = mx.optimizer.NAG(learning_rate=0.1), np.array([1.0, -2.0])
    >>> opt.update(0, w, np.array([0.5, 1.0]), opt.create_state(0, w))
    >>> w.round(4)
    array([ 0.905, -2.19 ])
    """

    default_learning_rate = 0.1

    def __init__(
        self,
        learning_rate: float | None = None,
        momentum: float = 0.9,
        multi_precision: bool = False,
        use_fused_step: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            learning_rate=learning_rate,
            multi_precision=multi_precision,
            use_fused_step=use_fused_step,
            **kwargs,
        )
        self.momentum = momentum

    def _apply(self, index: int, weight: Any, grad: Any, state: Any, lr: float, wd: float) -> None:
        step = lr * self._decayed(grad, weight, wd)
        if state is not None:
            state *= self.momentum
            state -= step
            weight += self.momentum * state
        weight -= step


@register
class Signum(_Momentum):
    """SGD that follows only the sign of the momentum (Bernstein et al., 2018).

    m = momentum * m - (1 - momentum) * g, weight = (1 - lr * wd_lh) * weight + lr * sign(m), where g includes
    `wd`; without momentum the sign of the gradient alone decides, and `wd` plays no part in it.

    >>> opt, w = mx.optimizer.Signum(learning_rate=0.1), np.array([1.0, -2.0])
    >>> opt.update(0, w, np.array([0.5, 1.0]), opt.create_state(0, w))
    >>> w.round(4)
    array([ 0.9, -2.1])
    """

    default_learning_rate = 0.01

    def __init__(
        self,
        learning_rate: float | None = None,
        momentum: float = 0.9,
        wd_lh: float = 0.0,
        use_fused_step: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, use_fused_step=use_fused_step, **kwargs)
        self.momentum = momentum
        self.wd_lh = wd_lh

    def _apply(self, index: int, weight: Any, grad: Any, state: Any, lr: float, wd: float) -> None:
        if state is None:
            direction = np.sign(self._clipped(grad))
            decay = lr * (wd + self.wd_lh)
        else:
            state *= self.momentum
            state -= (1.0 - self.momentum) * self._decayed(grad, weight, wd)
            direction = -np.sign(state)
            decay = lr * self.wd_lh
        if decay:
            weight *= 1.0 - decay
        weight -= lr * direction


@register
class SGLD(Optimizer):
    """Stochastic gradient Langevin dynamics (Welling and Teh, 2011): half a step, noise of variance lr.

    weight += noise - lr / 2 * g. The noise comes from mxnp's random numbers.

    >>> opt, w = mx.optimizer.SGLD(learning_rate=0.01), np.zeros(1000)
    >>> opt.update(0, w, np.zeros(1000), opt.create_state(0, w))
    >>> 0.09 < float(w.std()) < 0.11
    True
    """

    default_learning_rate = 0.1

    def __init__(
        self, learning_rate: float | None = None, use_fused_step: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(learning_rate=learning_rate, use_fused_step=use_fused_step, **kwargs)

    def _apply(self, index: int, weight: Any, grad: Any, state: Any, lr: float, wd: float) -> None:
        noise = np.random.normal(0.0, math.sqrt(lr), size=weight.shape, device=weight.device)
        weight -= (lr / 2.0) * self._decayed(grad, weight, wd)
        weight += noise.astype(weight.dtype)


@register
class DCASGD(_Momentum):
    """SGD for delayed gradients: g is corrected by lamda * g^2 * (weight - weight at the last update).

    `momentum` is SGD's.

    Zheng et al. (2017).

    >>> opt, w = mx.optimizer.DCASGD(learning_rate=0.1), np.array([1.0, -2.0])
    >>> opt.update(0, w, np.array([0.5, 1.0]), opt.create_state(0, w))
    >>> w.round(4)
    array([ 0.95, -2.1 ])
    """

    default_learning_rate = 0.1

    def __init__(
        self,
        learning_rate: float | None = None,
        momentum: float = 0.0,
        lamda: float = 0.04,
        use_fused_step: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, use_fused_step=use_fused_step, **kwargs)
        self.momentum = momentum
        self.lamda = lamda

    def create_state(self, index: Any, weight: Any) -> Any:
        """(momentum or None, the weight at the last update)."""
        return (super().create_state(index, weight), weight.copy())

    def _apply(self, index: int, weight: Any, grad: Any, state: Any, lr: float, wd: float) -> None:
        momentum, previous = state
        grad = self._decayed(grad, weight, wd)
        step = -lr * (grad + self.lamda * grad * grad * (weight - previous))
        if momentum is not None:
            momentum *= self.momentum
            momentum += step
            step = momentum
        previous[...] = weight
        weight += step


@register
class Test(Optimizer):
    """MXNet's optimizer for tests of what calls optimizers: weight -= lr * (rescale_grad * grad + wd * weight).

    Gradients are not clipped. The state, zeros like the weight, is left as it is.

    >>> opt, w = mx.optimizer.Test(learning_rate=0.5), np.array([1.0, 2.0])
    >>> opt.update(0, w, np.array([1.0, -1.0]), opt.create_state(0, w))
    >>> w
    array([0.5, 2.5])
    """

    __test__ = False  # not a test case, whatever its name

    def create_state(self, index: Any, weight: Any) -> Any:
        """Zeros like the weight."""
        return np.zeros_like(weight)

    def _apply(self, index: int, weight: Any, grad: Any, state: Any, lr: float, wd: float) -> None:
        grad = self._rescaled(grad)
        weight -= lr * (grad + wd * weight if wd else grad)


@register
class LARS(SGD):
    """SGD whose rate is scaled for each weight by eta * |w| / (|g| + wd * |w| + epsilon) (You et al., 2017).

    Biases, gammas and betas (by the parameter's name) keep the plain rate, and so does a weight or gradient
    of norm 0. |g| is the norm after rescaling, before clipping. Nothing waits for the norms.
    `momentum` is SGD's; `lazy_update`, and 1.x's `eps` for `epsilon`, are accepted.

    >>> opt, w = mx.optimizer.LARS(learning_rate=1.0, eta=0.1), np.array([1.0, -2.0])
    >>> opt.update(0, w, np.array([0.5, 1.0]), opt.create_state(0, w))
    >>> w.round(4)
    array([ 0.9, -2.2])
    """

    def __init__(
        self,
        learning_rate: float | None = None,
        momentum: float = 0.0,
        eta: float = 0.001,
        epsilon: float = 1e-8,
        lazy_update: bool = False,
        use_fused_step: bool = True,
        aggregate_num: int = 1,
        **kwargs: Any,
    ) -> None:
        epsilon = kwargs.pop("eps", epsilon)
        super().__init__(
            learning_rate=learning_rate,
            momentum=momentum,
            lazy_update=lazy_update,
            use_fused_step=use_fused_step,
            aggregate_num=aggregate_num,
            **kwargs,
        )
        self.eta = eta
        self.epsilon = epsilon

    def _apply(self, index: int, weight: Any, grad: Any, state: Any, lr: float, wd: float) -> None:
        grad = self._rescaled(grad)
        g_norm = norm(grad)
        grad = self._clip(grad)
        name = getattr(self.param_dict.get(index), "name", self.idx2name.get(index, str(index)))
        if name.endswith(("gamma", "beta", "bias")):
            ratio = 1.0
        else:
            w_norm = norm(weight)
            ratio = self.eta * w_norm / (g_norm + wd * w_norm + self.epsilon)
            ratio = np.where(w_norm * g_norm > 0, ratio, 1.0).astype(weight.dtype)
        self._descend(weight, ratio * (grad + wd * weight), state, lr)


def norm(x: Any) -> Any:
    """The Euclidean norm of all elements, a 0-d array, summed in float32 at least."""
    x = x.astype("float32") if str(x.dtype) in ("float16", "bfloat16") else x
    return np.sqrt(np.sum(np.square(x)))
