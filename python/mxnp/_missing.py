"""What a namespace says of names that MXNet or NumPy has and mxnp does not have yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .error import MXNetNotImplementedError


class NotArrivedAttributeError(MXNetNotImplementedError, AttributeError):
    """A name that has not arrived was asked for; an AttributeError, so `hasattr` answers False."""


def refuse(module: str, names: str) -> Callable[[str], Any]:
    """A module's `__getattr__` that says of `names` that they have not arrived."""
    known = frozenset(names.split())

    def __getattr__(name: str) -> Any:  # noqa: N807 it becomes a module's
        if name in known:
            raise NotArrivedAttributeError(
                f"{module}.{name} has not arrived in mxnp yet\n"
                "hint: the migration page of the documentation lists what has"
            )
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return __getattr__
