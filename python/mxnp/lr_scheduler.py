"""Learning-rate schedules: functions from the number of updates done to a learning rate.

Every schedule here is a pure function of `num_update` and its arguments, so it can be plotted, restarted or
shared without remembering where it was. This module must not import anything of mxnp that knows arrays.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from numbers import Integral, Real
from typing import Any

from ._repr import call_of
from .error import MXNetNotImplementedError, MXNetTypeError, MXNetValueError

__all__ = ["CosineScheduler", "FactorScheduler", "LRScheduler", "MultiFactorScheduler", "PolyScheduler"]


def _require_number(owner: object, name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise MXNetTypeError(f"{type(owner).__name__}: {name} must be a number, got {value!r}")
    return value  # type: ignore[return-value] # any Real works, and keeps its type


def _require_count(owner: object, name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise MXNetTypeError(f"{type(owner).__name__}: {name} must be an integer, got {value!r}")
    if value < least:
        raise MXNetValueError(f"{type(owner).__name__}: {name} must be at least {least}, got {value}")
    return int(value)


class LRScheduler:
    """Base of the schedules; a subclass defines `__call__(num_update) -> float`.

    >>> class Halving(LRScheduler):
    ...     def __call__(self, num_update):
    ...         return self.base_lr / 2 ** (num_update // 10)
    >>> Halving(base_lr=1.0)(25)
    0.25
    """

    def __init__(
        self,
        base_lr: float = 0.01,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ) -> None:
        """Parameters
        ----------
        base_lr : the rate after warm-up. It may be assigned later; an optimizer assigns it when it is given a
            `learning_rate` of its own beside the schedule.
        warmup_steps : updates over which the rate rises from `warmup_begin_lr` to `base_lr`.
        warmup_mode : 'linear', or 'constant' to stay at `warmup_begin_lr` for all of the warm-up.
        """
        self.base_lr = _require_number(self, "base_lr", base_lr)
        self.warmup_steps = _require_count(self, "warmup_steps", warmup_steps, 0)
        self.warmup_begin_lr = _require_number(self, "warmup_begin_lr", warmup_begin_lr)
        self.warmup_mode = warmup_mode
        if warmup_begin_lr > base_lr:
            raise MXNetValueError(
                f"{type(self).__name__}: warmup_begin_lr {warmup_begin_lr} is above base_lr {base_lr}"
            )
        if warmup_mode not in ("linear", "constant"):
            raise MXNetValueError(
                f"{type(self).__name__}: warmup_mode must be 'linear' or 'constant', got {warmup_mode!r}"
            )

    def __repr__(self) -> str:
        return call_of(self)

    @property
    def warmup_final_lr(self) -> float:
        """The rate at which the warm-up ends: `base_lr`."""
        return self.base_lr

    def get_warmup_lr(self, num_update: int) -> float:
        """The rate at `num_update`, which must be below `warmup_steps`."""
        if not num_update < self.warmup_steps:
            raise MXNetValueError(
                f"{type(self).__name__}: update {num_update} is not in the warm-up of {self.warmup_steps}"
            )
        if self.warmup_mode == "constant":
            return self.warmup_begin_lr
        rise = (self.base_lr - self.warmup_begin_lr) * float(num_update) / float(self.warmup_steps)
        return self.warmup_begin_lr + rise

    def __call__(self, num_update: int) -> float:
        """The rate at update `num_update`, counted from 1 by optimizers."""
        raise MXNetNotImplementedError(f"{type(self).__name__} does not define __call__(num_update)")


class FactorScheduler(LRScheduler):
    """Multiplies the rate by `factor` after every `step` updates, never going below `stop_factor_lr`.

    >>> schedule = FactorScheduler(step=3, factor=0.5, base_lr=1.0)
    >>> [schedule(n) for n in (1, 3, 4, 7)]
    [1.0, 1.0, 0.5, 0.25]
    """

    def __init__(
        self,
        step: int,
        factor: float = 1,
        stop_factor_lr: float = 1e-8,
        base_lr: float = 0.01,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ) -> None:
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        self.step = _require_count(self, "step", step, 1)
        self.factor = _require_factor(self, factor)
        self.stop_factor_lr = _require_number(self, "stop_factor_lr", stop_factor_lr)

    def __call__(self, num_update: int) -> float:
        """The rate at update `num_update`, counted from 1 by optimizers."""
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        drops = max(0, math.ceil(num_update / self.step) - 1)
        if drops == 0:
            return self.base_lr
        return max(self.base_lr * self.factor**drops, self.stop_factor_lr)


class MultiFactorScheduler(LRScheduler):
    """Multiplies the rate by `factor` once after each of the updates listed in `step`.

    >>> schedule = MultiFactorScheduler(step=[3, 7], factor=0.5, base_lr=1.0)
    >>> [schedule(n) for n in (3, 4, 7, 8)]
    [1.0, 0.5, 0.5, 0.25]
    """

    def __init__(
        self,
        step: list[int],
        factor: float = 1,
        base_lr: float = 0.01,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ) -> None:
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        if not isinstance(step, (list, tuple)) or len(step) == 0:
            raise MXNetTypeError(f"MultiFactorScheduler: step must list at least one update, got {step!r}")
        self.step = [_require_count(self, "step", each, 1) for each in step]
        if any(later <= earlier for earlier, later in zip(self.step, self.step[1:], strict=False)):
            raise MXNetValueError(f"MultiFactorScheduler: the updates in step must increase, got {self.step}")
        self.factor = _require_factor(self, factor)

    def __call__(self, num_update: int) -> float:
        """The rate at update `num_update`, counted from 1 by optimizers."""
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        return self.base_lr * self.factor ** bisect_left(self.step, num_update)


class _AnnealingScheduler(LRScheduler):
    """Goes from `base_lr` to `final_lr` between the end of the warm-up and `max_update`, then stays there."""

    def __init__(
        self,
        max_update: int,
        base_lr: float,
        final_lr: float,
        warmup_steps: int,
        warmup_begin_lr: float,
        warmup_mode: str,
    ) -> None:
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        self.max_update = _require_count(self, "max_update", max_update, 1)
        self.final_lr = _require_number(self, "final_lr", final_lr)

    @property
    def max_steps(self) -> int:
        """The number of updates after the warm-up."""
        return self.max_update - self.warmup_steps

    def _remaining(self, progress: float) -> float:
        """The part of the way still to go, 1 at progress 0 and 0 at progress 1."""
        raise NotImplementedError

    def __call__(self, num_update: int) -> float:
        """The rate at update `num_update`, counted from 1 by optimizers."""
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        if num_update >= self.max_update:
            return self.final_lr if self.max_steps > 0 else self.base_lr
        progress = float(num_update - self.warmup_steps) / float(self.max_steps)
        return self.final_lr + (self.base_lr - self.final_lr) * self._remaining(progress)


class PolyScheduler(_AnnealingScheduler):
    """Goes from `base_lr` to `final_lr` as a power `pwr` of the updates left until `max_update`.

    >>> schedule = PolyScheduler(max_update=8, base_lr=1.0, pwr=2)
    >>> [schedule(n) for n in (0, 4, 8, 9)]
    [1.0, 0.25, 0, 0]
    """

    def __init__(
        self,
        max_update: int,
        base_lr: float = 0.01,
        pwr: float = 2,
        final_lr: float = 0,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ) -> None:
        super().__init__(max_update, base_lr, final_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        self.power = _require_number(self, "pwr", pwr)

    def __repr__(self) -> str:
        return call_of(self, pwr=self.power)

    def _remaining(self, progress: float) -> float:
        return (1.0 - progress) ** self.power


class CosineScheduler(_AnnealingScheduler):
    """Goes from `base_lr` to `final_lr` along half a cosine until `max_update` (Loshchilov and Hutter, 2017).

    >>> schedule = CosineScheduler(max_update=8, base_lr=1.0)
    >>> [round(schedule(n), 4) for n in (0, 2, 4, 8)]
    [1.0, 0.8536, 0.5, 0]
    """

    def __init__(
        self,
        max_update: int,
        base_lr: float = 0.01,
        final_lr: float = 0,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ) -> None:
        super().__init__(max_update, base_lr, final_lr, warmup_steps, warmup_begin_lr, warmup_mode)

    def _remaining(self, progress: float) -> float:
        return (1.0 + math.cos(math.pi * progress)) / 2.0


def _require_factor(owner: object, factor: float) -> float:
    _require_number(owner, "factor", factor)
    if factor > 1:
        raise MXNetValueError(f"{type(owner).__name__}: factor must be at most 1, got {factor}")
    return factor
