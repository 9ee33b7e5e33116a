"""The base of the optimizers: hyperparameters, update counts, multipliers, master weights and the registry.

Knows nothing of Gluon: a parameter is an array, an index and, through `param_dict`, an object with
`lr_mult` and `wd_mult`. Updates write in place and are never recorded.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

from mxnp import autograd, np
from mxnp._repr import call_of
from mxnp.error import MXNetNotImplementedError, MXNetTypeError, MXNetValueError

__all__ = ["Optimizer", "create", "register"]

_HALF = ("float16", "bfloat16")


class Optimizer:
    """Base of all optimizers.

    A subclass defines `create_state(index, weight)` and either `_apply` (this package), `step` (lists of
    indices, weights, gradients and states, as MXNet 2) or `update` (one of each, as MXNet 1).

    >>> class Plain(mx.optimizer.Optimizer):
    ...     def step(self, indices, weights, grads, states):
    ...         for index, weight, grad in zip(indices, weights, grads):
    ...             weight -= self._get_lr(index) * self.rescale_grad * grad
    >>> opt, w = Plain(learning_rate=0.5), np.array([1.0])
    >>> opt.update(0, w, np.array([1.0]), opt.create_state(0, w))
    >>> w
    array([0.5])
    """

    opt_registry: ClassVar[dict[str, type[Optimizer]]] = {}
    default_learning_rate: ClassVar[float] = 0.01

    def __init__(
        self,
        rescale_grad: float = 1.0,
        param_idx2name: dict[int, str] | None = None,
        wd: float = 0.0,
        clip_gradient: float | None = None,
        learning_rate: float | None = None,
        lr_scheduler: Callable[[int], float] | None = None,
        sym: Any = None,
        begin_num_update: int = 0,
        multi_precision: bool = False,
        param_dict: dict[int, Any] | None = None,
        aggregate_num: int | None = None,
        use_fused_step: bool | None = None,
        **kwargs: Any,
    ) -> None:
        """Parameters
        ----------
        rescale_grad : every gradient is multiplied by it first; the Trainer sets it to 1 / batch size.
        clip_gradient : then elements are clipped to [-clip_gradient, clip_gradient]; None for no clipping.
        wd : then `wd * weight` is added, in every optimizer that does not document another weight decay.
        learning_rate : default `default_learning_rate` of the class, or the `base_lr` of `lr_scheduler`.
        lr_scheduler : a callable from the number of updates (1, 2, ...) to the learning rate. A `learning_rate`
            given beside it is assigned to its `base_lr`.
        param_idx2name : names by index, for `set_lr_mult` and `set_wd_mult` by name.
        param_dict : by index, the objects whose `lr_mult` and `wd_mult` scale the rate and the decay.
        begin_num_update : the count of updates to start from.
        multi_precision : keep a float32 copy of each float16 or bfloat16 weight, and update that.
        sym, aggregate_num, use_fused_step : accepted for MXNet's sake.
        """
        if kwargs:
            raise MXNetTypeError(
                f"{type(self).__name__}: unknown argument {', '.join(map(repr, sorted(kwargs)))}"
            )
        if lr_scheduler is not None and not callable(lr_scheduler):
            raise MXNetTypeError(
                f"{type(self).__name__}: lr_scheduler must be callable, got {lr_scheduler!r}"
            )
        if param_idx2name is not None and not isinstance(param_idx2name, dict):
            raise MXNetTypeError(
                f"{type(self).__name__}: param_idx2name must be a dict of names, got {param_idx2name!r}"
            )
        self.rescale_grad = rescale_grad
        self.lr_scheduler = lr_scheduler
        self.lr = self._initial_rate(learning_rate)
        self.wd = wd
        self.lr_mult: dict[int | str, float] = {}
        self.wd_mult: dict[int | str, float] = {}
        self.begin_num_update = begin_num_update
        self.num_update = begin_num_update
        self._all_index_update_counts: dict[int, dict[int, int]] = {0: {}}
        self._index_update_count = self._all_index_update_counts[0]
        self.clip_gradient = clip_gradient
        self.multi_precision = multi_precision
        self.aggregate_num = aggregate_num or 0
        self.use_fused_step = bool(use_fused_step)
        self.idx2name = dict(param_idx2name or {})
        self.param_dict = param_dict if param_dict is not None else {}

    def _initial_rate(self, learning_rate: float | None) -> float:
        scheduler: Any = self.lr_scheduler
        scheduled = getattr(scheduler, "base_lr", None)
        if learning_rate is None:
            return self.default_learning_rate if scheduled is None else scheduled
        if scheduled is not None:
            scheduler.base_lr = learning_rate
        return learning_rate

    def __repr__(self) -> str:
        return call_of(self, learning_rate=self.lr)

    # Registry

    @staticmethod
    def register(klass: type[Optimizer]) -> type[Optimizer]:
        """Class decorator: make `create(name)` find the class under its lower-cased name.

        >>> @mx.optimizer.register
        ... class Still(mx.optimizer.Optimizer):
        ...     def update(self, index, weight, grad, state):
        ...         pass
        >>> type(mx.optimizer.create("still")).__name__
        'Still'
        """
        name = klass.__name__.lower()
        known = Optimizer.opt_registry.get(name)
        if known is not None and (known.__module__, known.__qualname__) != (
            klass.__module__,
            klass.__qualname__,
        ):
            warnings.warn(f"optimizer {name!r}: {klass} replaces {known}", stacklevel=2)
        Optimizer.opt_registry[name] = klass
        return klass

    @staticmethod
    def create_optimizer(name: str | Optimizer, **kwargs: Any) -> Optimizer:
        """The optimizer registered as `name` (any case), made with `kwargs`, or an Optimizer unchanged.

        >>> mx.optimizer.create("adam", learning_rate=0.1).learning_rate
        0.1
        """
        if isinstance(name, Optimizer):
            if kwargs:
                raise MXNetValueError(
                    f"optimizer.create: arguments {sorted(kwargs)} cannot be applied to a finished {name!r}"
                )
            return name
        if not isinstance(name, str):
            raise MXNetTypeError(f"optimizer.create: expected a name or an Optimizer, got {name!r}")
        try:
            klass = Optimizer.opt_registry[name.lower()]
        except KeyError:
            raise MXNetValueError(
                f"optimizer.create: no optimizer is called {name!r}\n"
                f"hint: there are {', '.join(sorted(Optimizer.opt_registry))}"
            ) from None
        return klass(**kwargs)

    # States

    def create_state(self, index: Any, weight: Any) -> Any:
        """The state kept for one weight: None, an array, or a tuple of these."""
        return None

    def create_state_multi_precision(self, index: Any, weight: Any) -> Any:
        """`create_state`; for a half-precision weight under `multi_precision`, (float32 copy, its state)."""
        if self._keeps_master(weight):
            master = weight.astype("float32")
            return (master, self.create_state(index, master))
        if not self.multi_precision and weight.dtype == "float16":
            warnings.warn(
                f"{type(self).__name__}: float16 weights lose small updates; "
                "multi_precision=True keeps float32 copies of them",
                stacklevel=2,
            )
        return self.create_state(index, weight)

    def _keeps_master(self, weight: Any) -> bool:
        return self.multi_precision and str(weight.dtype) in _HALF

    # Updates

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Update `weight` and `state` in place from `grad`; all four may be lists of the same length."""
        indices, weights, grads, states = _as_lists(index, weight, grad, state)
        with autograd.pause():
            if self.use_fused_step:
                self.fused_step(indices, weights, grads, states)
            else:
                self.step(indices, weights, grads, states)

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """`update` with states from `create_state_multi_precision`."""
        indices, weights, grads, states = _as_lists(index, weight, grad, state)
        targets, masters = list(weights), []
        grads, states = list(grads), list(states)
        with autograd.pause():
            for i, each in enumerate(weights):
                if self._keeps_master(each):
                    targets[i], states[i] = states[i]
                    grads[i] = grads[i].astype("float32")
                    masters.append((each, targets[i]))
            if self._update_takes_lists():
                self.update(indices, targets, grads, states)
            else:
                for row in zip(indices, targets, grads, states, strict=True):
                    self.update(*row)
            for each, master in masters:
                each[...] = master.astype(each.dtype)

    def _update_takes_lists(self) -> bool:
        """Whether `update` is the base's or MXNet 2's; MXNet 1's takes one weight at a time."""
        if type(self).update is Optimizer.update:
            return True
        return next(iter(inspect.signature(self.update).parameters), "") in ("indices", "args")

    def step(self, indices: list[int], weights: list, grads: list, states: list) -> None:
        """Update each weight in place."""
        self._update_count(indices)
        rates, decays = self._get_lrs(indices), self._get_wds(indices)
        for row in zip(indices, weights, grads, states, rates, decays, strict=True):
            self._apply(*row)

    def fused_step(self, indices: list[int], weights: list, grads: list, states: list) -> None:
        """`step`: the array library fuses its operations by itself."""
        self.step(indices, weights, grads, states)

    def _clip_limit(self) -> float | None:
        """The bound of a gradient's elements; None for no bound."""
        limit = self.clip_gradient
        return None if limit is None or limit < 0 else float(limit)

    def _apply(self, index: int, weight: Any, grad: Any, state: Any, lr: float, wd: float) -> None:
        """Update one weight and its state in place; `lr` and `wd` have the multipliers applied."""
        raise MXNetNotImplementedError(f"{type(self).__name__} defines neither `update` nor `step`")

    def _clipped(self, grad: Any) -> Any:
        """The gradient, rescaled and clipped."""
        return self._clip(self._rescaled(grad))

    def _rescaled(self, grad: Any) -> Any:
        return grad if self.rescale_grad == 1.0 else grad * self.rescale_grad

    def _clip(self, grad: Any) -> Any:
        limit = self._clip_limit()
        return grad if limit is None else np.clip(grad, -limit, limit)

    def _decayed(self, grad: Any, weight: Any, wd: float) -> Any:
        """The gradient, rescaled, clipped and with L2 weight decay added."""
        grad = self._clipped(grad)
        return grad + wd * weight if wd else grad

    # Learning rate, multipliers and counts

    @property
    def learning_rate(self) -> float:
        """The current learning rate, before multipliers."""
        return self.lr if self.lr_scheduler is None else self.lr_scheduler(self.num_update)

    def set_learning_rate(self, lr: float) -> None:
        """Set the learning rate; raises UserWarning where a schedule decides it."""
        if self.lr_scheduler is not None:
            raise UserWarning(
                "set_learning_rate: the optimizer has an lr_scheduler, which decides the learning rate\n"
                "hint: assign to optimizer.lr_scheduler.base_lr, or make the optimizer without lr_scheduler"
            )
        self.lr = lr

    def set_lr_mult(self, args_lr_mult: dict[int | str, float]) -> None:
        """Multiply the rate of the weights with these indices or names."""
        self.lr_mult = dict(args_lr_mult)

    def set_wd_mult(self, args_wd_mult: dict[int | str, float]) -> None:
        """Multiply the weight decay of the weights with these indices or names."""
        self.wd_mult = dict(args_wd_mult)

    def _set_current_device(self, device_id: int) -> None:
        """Count updates for this replica from now on; each replica of a weight has its own count."""
        self._index_update_count = self._all_index_update_counts.setdefault(device_id, {})

    _set_current_context = _set_current_device

    def _update_count(self, index: int | list[int]) -> None:
        for each in index if isinstance(index, (list, tuple)) else [index]:
            count = self._index_update_count.get(each, self.begin_num_update) + 1
            self._index_update_count[each] = count
            self.num_update = max(self.num_update, count)

    def _get_lrs(self, indices: list[int]) -> list[float]:
        # Plain floats: NumPy's float64, which schedules return easily, would widen what it multiplies.
        lr = float(self.learning_rate)
        return [lr * self._multiplier(index, "lr_mult") for index in indices]

    def _get_lr(self, index: int) -> float:
        return self._get_lrs([index])[0]

    def _get_wds(self, indices: list[int]) -> list[float]:
        wd = float(self.wd)
        return [wd * self._multiplier(index, "wd_mult") for index in indices]

    def _get_wd(self, index: int) -> float:
        return self._get_wds([index])[0]

    def _multiplier(self, index: int, kind: str) -> float:
        if index in self.param_dict:
            return getattr(self.param_dict[index], kind)
        table = getattr(self, kind)
        if index in table:
            return table[index]
        return table.get(self.idx2name.get(index), 1.0)

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state["param_dict"] = {}  # the parameters hold arrays and devices, which belong to the trainer
        return state


def _as_lists(index: Any, *rest: Any) -> tuple[Any, ...]:
    if isinstance(index, (list, tuple)):
        return (index, *rest)
    return ([index], *([each] for each in rest))


def by_kind(
    weights: Sequence[Any], kinds: Sequence[Any], *columns: Sequence[Any]
) -> Iterator[tuple[Any, Sequence[Sequence[Any]]]]:
    """Each kind with its rows of the columns, those of weights of one dtype and device: what one call can update."""
    keys = [(weight.dtype, weight.device, kind) for weight, kind in zip(weights, kinds, strict=True)]
    for key in dict.fromkeys(keys):
        rows = [i for i, each in enumerate(keys) if each == key]
        chosen = columns if len(rows) == len(keys) else [[column[i] for i in rows] for column in columns]
        yield key[-1], chosen


register = Optimizer.register
create = Optimizer.create_optimizer
