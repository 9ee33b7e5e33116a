"""Handles of the hooks that programs put on blocks."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from mxnp import _core

Hooks = dict[int, Callable[..., Any]]
_fresh_key = count()


class HookHandle:
    """Stands for one attached hook; `detach()`, or leaving a `with` block, takes the hook off.

    >>> layer = nn.Dense(2)
    >>> handle = layer.register_forward_hook(lambda block, inputs, outputs: print(outputs.shape))
    >>> handle
    HookHandle(attached)
    >>> handle.detach()
    >>> handle
    HookHandle(detached)
    """

    def __init__(self) -> None:
        self._hooks: Hooks | None = None
        self._key = next(_fresh_key)

    def attach(self, hooks: Hooks, hook: Callable[..., Any]) -> None:
        """Put `hook` into `hooks`. A handle holds one hook: a second attach raises AssertionError."""
        if self._hooks is not None:
            raise AssertionError("this handle has a hook already")
        self._hooks = hooks
        hooks[self._key] = hook
        _core.drop_graphs()  # graphs without the hook

    def __repr__(self) -> str:
        return f"HookHandle({'detached' if self._hooks is None else 'attached'})"

    def detach(self) -> None:
        """Take the hook off; nothing when it is off already."""
        if self._hooks is not None:
            self._hooks.pop(self._key, None)
            _core.drop_graphs()
            self._hooks = None

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.detach()
