"""Names of symbols that are given none: `fullyconnected0`, and prefixes for all symbols of a with-block."""

from __future__ import annotations

import threading
from typing import Any, Self

__all__ = ["NameManager", "Prefix"]


class _Current(threading.local):
    manager: NameManager | None = None


_current = _Current()


class NameManager:
    """Numbers symbols by their operator; as a with-block, its own counters are used inside.

    >>> with mx.name.NameManager():
    ...     mx.sym.relu(mx.sym.var("x")).name
    'relu0'
    """

    def __init__(self) -> None:
        self._counter: dict[str, int] = {}
        self._before: list[NameManager | None] = []

    def get(self, name: str | None, hint: str) -> str:
        """`name` where there is one, else `hint` with the next number."""
        if name:
            return name
        number = self._counter.get(hint, 0)
        self._counter[hint] = number + 1
        return f"{hint}{number}"

    def __enter__(self) -> Self:
        self._before.append(_current.manager)
        _current.manager = self
        return self

    def __exit__(self, *error: Any) -> None:
        _current.manager = self._before.pop()


class Prefix(NameManager):
    """Names with `prefix` before them.

    >>> with mx.name.Prefix("stage1_"):
    ...     mx.sym.relu(mx.sym.var("x"), name="act").name
    'stage1_act'
    """

    def __init__(self, prefix: str) -> None:
        super().__init__()
        self._prefix = prefix

    def get(self, name: str | None, hint: str) -> str:
        """The name that NameManager gives, with the prefix."""
        return self._prefix + super().get(name, hint)


def current() -> NameManager:
    """The innermost with-block's manager, or the thread's own."""
    if _current.manager is None:
        _current.manager = NameManager()
    return _current.manager
