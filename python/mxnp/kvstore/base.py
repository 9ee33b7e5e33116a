"""What the Trainer asks of a key-value store, and the registry of stores by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from mxnp.error import MXNetNotImplementedError, MXNetTypeError, MXNetValueError

__all__ = ["KVStoreBase", "create"]

_Class = TypeVar("_Class", bound="Callable[[], KVStoreBase]")
_ELSEWHERE = ("dist", "horovod", "byteps", "p3")


class KVStoreBase:
    """Interface of a store; a subclass made known with `KVStoreBase.register` is found by `create`.

    Values are one array, or a list with one array for each device.

    >>> @mx.kvstore.KVStoreBase.register
    ... class Forgetful(mx.kvstore.KVStoreBase):
    ...     pass
    >>> mx.kvstore.create("forgetful")
    Forgetful('forgetful')
    """

    OPTIMIZER = "optimizer"
    kv_registry: ClassVar[dict[str, Callable[[], KVStoreBase]]] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.type!r})"

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """Make `value` the value of the new key, and copy it to every array of `out`."""
        raise MXNetNotImplementedError(f"{type(self).__name__} does not define broadcast")

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """Sum `value` over devices and processes into every array of `out` (of `value` when not given)."""
        raise MXNetNotImplementedError(f"{type(self).__name__} does not define pushpull")

    @staticmethod
    def is_capable(capability: str) -> bool:
        """Whether the store has the capability; `KVStoreBase.OPTIMIZER` is running an optimizer inside."""
        return False

    def set_optimizer(self, optimizer: Any) -> None:
        """Let pushes update the stored values with `optimizer`."""
        raise MXNetNotImplementedError(f"{type(self).__name__} cannot run an optimizer")

    def save_optimizer_states(self, fname: Any, dump_optimizer: bool = False) -> None:
        """Write the states of the store's optimizer."""
        raise MXNetNotImplementedError(f"{type(self).__name__} keeps no optimizer states")

    def load_optimizer_states(self, fname: Any) -> None:
        """Read the states of the store's optimizer."""
        raise MXNetNotImplementedError(f"{type(self).__name__} keeps no optimizer states")

    @property
    def type(self) -> str:
        """The name the store is registered under."""
        return type(self).__name__.lower()

    @property
    def rank(self) -> int:
        """The number of this process."""
        return 0

    @property
    def num_workers(self) -> int:
        """The number of processes."""
        return 1

    @staticmethod
    def register(klass: _Class) -> _Class:
        """Class decorator: make `create(name)` find the class under its lower-cased name."""
        KVStoreBase.kv_registry[getattr(klass, "__name__", "").lower()] = klass
        return klass


def is_of_one_process(name: str) -> bool:
    """Whether `name` is one of MXNet's names for a store of one process, which are all the same here."""
    return name.lower().startswith(("local", "device", "nccl"))


def create(name: str = "local") -> KVStoreBase:
    """The store called `name`: 'local', 'device' or 'nccl' within one process, or a registered class.

    >>> from mxnp import kvstore
    >>> kvstore.create("device").num_workers
    1
    """
    from .kvstore import KVStore

    if not isinstance(name, str):
        raise MXNetTypeError(f"kvstore.create: expected a name, got {name!r}")
    lower = name.lower()
    if lower in KVStoreBase.kv_registry:
        return KVStoreBase.kv_registry[lower]()
    if is_of_one_process(lower):
        return KVStore(lower)
    if lower.startswith(_ELSEWHERE):
        raise MXNetNotImplementedError(
            f"kvstore.create: {name!r} spans processes, which this version does not\n"
            "hint: 'device' covers the devices of one process"
        )
    raise MXNetValueError(
        f"kvstore.create: no store is called {name!r}\n"
        f"hint: there are {', '.join(['device', 'local', *sorted(KVStoreBase.kv_registry)])}"
    )
