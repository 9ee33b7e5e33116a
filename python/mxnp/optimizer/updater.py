"""Updater: an optimizer together with the states of the weights it has seen, as a callable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mxnp import autograd, np

from . import _legacy_states, _states
from .optimizer import Optimizer

__all__ = ["Updater", "get_updater"]


class Updater:
    """Calls the optimizer for weights by index, making each state when the weight first comes.

    >>> from mxnp import np, optimizer
    >>> updater = optimizer.get_updater(optimizer.create("sgd", learning_rate=0.5))
    >>> w = np.array([1.0])
    >>> updater(0, np.array([1.0]), w)
    >>> w.tolist()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        self.states: dict[int | str, Any] = {}
        self.states_synced: dict[int | str, bool] = {}

    def __repr__(self) -> str:
        return f"Updater({self.optimizer!r}) of {len(self.states)} states"

    def __call__(self, index: Any, grad: Any, weight: Any) -> None:
        """Update `weight` in place; all three may be lists of the same length."""
        if not isinstance(index, (list, tuple)):
            index, grad, weight = [index], [grad], [weight]
        states = [self._state(i, w) for i, w in zip(index, weight, strict=True)]
        self.optimizer.update_multi_precision(list(index), list(weight), list(grad), states)

    def _state(self, index: int | str, weight: Any) -> Any:
        if index not in self.states:
            with autograd.pause():
                self.states[index] = self.optimizer.create_state_multi_precision(index, weight)
            self.states_synced[index] = True
        elif not self.states_synced.get(index, False):
            self.states[index] = self.sync_state_context(self.states[index], weight)
            self.states_synced[index] = True
        return self.states[index]

    def sync_state_context(self, state: Any, context: Any) -> Any:
        """The loaded `state` as arrays on the device of `context` (a weight, or a device)."""
        weight = context if hasattr(context, "device") else _OnDevice(context)
        return _states.to_device(state, weight, np.array)

    def get_states(self, dump_optimizer: bool = False) -> bytes:
        """All states as bytes; with `dump_optimizer` also hyperparameters and update counts."""
        return _states.dump(self.states, self.optimizer if dump_optimizer else None)

    def set_states(
        self,
        states: bytes,
        name: str = "set_states",
        check: Callable[[dict[int | str, Any], str], None] | None = None,
    ) -> None:
        """Take the states, and where they are there the hyperparameters and counts, from `get_states`.

        MXNet's own pickled states are read too, through an unpickler that can make nothing but arrays,
        containers and plain values. Bad bytes raise MXNetValueError, named by `name`, and change nothing;
        `check(states, name)` may refuse them too.
        """
        data = bytes(states)
        reader = _legacy_states.load if _legacy_states.looks_like(data) else _states.load
        loaded, described = reader(data, name)
        if check is not None:
            check(loaded, name)
        if described is not None:
            _states.restore(self.optimizer, described, name)
        self.states = loaded
        self.states_synced = dict.fromkeys(loaded, False)


class _OnDevice:
    def __init__(self, device: Any) -> None:
        self.device = device


def get_updater(optimizer: Optimizer) -> Updater:
    """An Updater for `optimizer`.

    >>> update, w = get_updater(mx.optimizer.SGD(learning_rate=1.0)), np.array([2.0])
    >>> update(0, np.array([0.5]), w)
    >>> w
    array([1.5])
    """
    return Updater(optimizer)
