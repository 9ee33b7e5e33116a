"""The store of one process: sums the values of several devices in order, and keeps one for each key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mxnp import autograd
from mxnp._files.atomic import atomic_write
from mxnp.error import MXNetNotImplementedError, MXNetTypeError, MXNetValueError
from mxnp.optimizer import Optimizer, Updater, get_updater

from .base import KVStoreBase

__all__ = ["KVStore"]

Key = int | str


class KVStore(KVStoreBase):
    """Keeps arrays by key, summing what several devices push.

    `name` is the kind that `create` was asked for. Keys are ints or strings; every method takes one key, or a
    list of keys with a list of values.

    >>> from mxnp import kvstore, np
    >>> kv, out = kvstore.create("local"), np.zeros(2)
    >>> kv.init("w", np.ones(2))
    >>> kv.push("w", [np.ones(2), np.ones(2)])
    >>> kv.pull("w", out=out)
    >>> out.tolist()
    [2.0, 2.0]
    """

    def __init__(self, name: str = "local") -> None:
        self._type = name
        self._stored: dict[Key, Any] = {}
        self._updater: Callable[[Key, Any, Any], None] | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._type!r}) of {len(self._stored)} keys"

    def init(self, key: Any, value: Any) -> None:
        """Make a copy of `value` (of its first array, given a list) the value of the new `key`."""
        for each, arrays in _pairs("init", key, value):
            if each in self._stored:
                raise MXNetValueError(f"KVStore.init: key {each!r} is already there")
            with autograd.pause():
                self._stored[each] = arrays[0].copy()

    def push(self, key: Any, value: Any, priority: int = 0) -> None:
        """Sum `value` over its devices; give the sum to the optimizer, or without one store it."""
        for each, arrays in _pairs("push", key, value):
            self._take(each, arrays)

    def pull(self, key: Any, out: Any = None, priority: int = 0, ignore_sparse: bool = True) -> None:
        """Copy the stored value to every array of `out`."""
        for each, arrays in _pairs("pull", key, out):
            self._give(each, arrays)

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """`push`, then `pull` to `out`, or to `value` when `out` is not given."""
        self.push(key, value, priority)
        self.pull(key, value if out is None else out, priority)

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """`init`, then `pull` to `out`."""
        self.init(key, value)
        self.pull(key, out, priority)

    def row_sparse_pull(self, key: Any, out: Any = None, priority: int = 0, row_ids: Any = None) -> None:
        """Refused: there are no sparse arrays."""
        raise MXNetNotImplementedError("KVStore.row_sparse_pull: there are no sparse arrays\nhint: use pull")

    def set_gradient_compression(self, compression_params: dict[str, Any]) -> None:
        """Refused: between the devices of one process there is nothing to gain from it."""
        raise MXNetNotImplementedError("KVStore: gradients are not compressed within one process")

    # Optimizer

    @staticmethod
    def is_capable(capability: str) -> bool:
        """True for 'optimizer'."""
        return capability.lower() == KVStoreBase.OPTIMIZER

    def set_optimizer(self, optimizer: Optimizer) -> None:
        """Let pushes update the stored values with `optimizer`."""
        if not isinstance(optimizer, Optimizer):
            raise MXNetTypeError(f"KVStore.set_optimizer: expected an Optimizer, got {optimizer!r}")
        self._set_updater(get_updater(optimizer))

    def _set_updater(self, updater: Callable[[Key, Any, Any], None]) -> None:
        """Call `updater(key, sum, stored)` at every push; it changes `stored` in place."""
        self._updater = updater

    def _states_of(self, action: str) -> Updater:
        if not isinstance(self._updater, Updater):
            raise MXNetValueError(f"KVStore.{action}: there is no optimizer\nhint: call set_optimizer first")
        return self._updater

    def save_optimizer_states(self, fname: Any, dump_optimizer: bool = False) -> None:
        """Write the optimizer's states to a file, atomically."""
        states = self._states_of("save_optimizer_states").get_states(dump_optimizer)
        with atomic_write(fname) as stream:
            stream.write(states)

    def load_optimizer_states(self, fname: Any) -> None:
        """Read states that `save_optimizer_states`, or MXNet, wrote; a bad file changes nothing."""
        updater = self._states_of("load_optimizer_states")
        updater.set_states(Path(fname).read_bytes(), str(fname))

    # Processes

    @property
    def type(self) -> str:
        """The name the store was created under."""
        return self._type

    def _barrier(self) -> None:
        """Wait for the other processes: there are none."""

    # Between store and devices

    def _adopt(self, key: Key, value: Any) -> None:
        """Use `value` itself as the stored value, so that updates by the optimizer write to it."""
        self._stored[key] = value

    def _take(self, key: Key, arrays: list) -> None:
        stored = self._find("push", key)
        _check_shapes("push", key, stored, arrays)
        with autograd.pause():
            total = arrays[0].to_device(stored.device)
            for each in arrays[1:]:
                total = total + each.to_device(stored.device)
            if self._updater is not None:
                self._updater(key, total, stored)
            else:
                stored[...] = total

    def _give(self, key: Key, arrays: list) -> None:
        stored = self._find("pull", key)
        _check_shapes("pull", key, stored, arrays)
        with autograd.pause():
            for each in arrays:
                if each is not stored:
                    each[...] = stored.to_device(each.device)

    def _find(self, action: str, key: Key) -> Any:
        try:
            return self._stored[key]
        except KeyError:
            raise MXNetValueError(
                f"KVStore.{action}: there is no key {key!r}\nhint: call init({key!r}, value) first"
            ) from None


def _check_shapes(action: str, key: Key, stored: Any, arrays: list) -> None:
    for each in arrays:
        if each.shape != stored.shape:
            raise MXNetValueError(
                f"KVStore.{action}: the value of key {key!r} has shape {stored.shape}, got {each.shape}"
            )


def _pairs(action: str, key: Any, value: Any) -> Iterator[tuple[Key, list]]:
    """Each key with the list of its arrays."""
    if not isinstance(key, (list, tuple)):
        key, value = [key], [value]
    elif not isinstance(value, (list, tuple)) or len(value) != len(key):
        raise MXNetValueError(f"KVStore.{action}: {len(key)} keys need a list of {len(key)} values")
    for each, arrays in zip(key, value, strict=True):
        if isinstance(each, bool) or not isinstance(each, (int, str)):
            raise MXNetTypeError(f"KVStore.{action}: keys are ints or strings, got {each!r}")
        arrays = list(arrays) if isinstance(arrays, (list, tuple)) else [arrays]
        if not arrays or not all(hasattr(one, "to_device") for one in arrays):
            raise MXNetTypeError(f"KVStore.{action}: key {each!r} needs an array or a list of arrays")
        yield each, arrays
