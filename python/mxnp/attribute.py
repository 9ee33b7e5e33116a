"""Attributes that every symbol made in a with-block gets: `mx.AttrScope(ctx_group='dev1')`."""

from __future__ import annotations

import threading
from typing import Any, Self

from .error import MXNetValueError

__all__ = ["AttrScope"]

# Attributes of nodes that are written with underscores around them when they come without.
NODE_KEYS = frozenset(
    ("ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage", "profiler_scope")
)


class _Current(threading.local):
    attrs: dict[str, str] = {}


_current = _Current()


class AttrScope:
    """A with-block whose symbols carry the given attributes, inner blocks' before outer ones'.

    >>> with mx.AttrScope(__stage__="1"):
    ...     mx.sym.var("x").attr("__stage__")
    '1'
    """

    def __init__(self, **kwargs: str) -> None:
        for key, value in kwargs.items():
            if not isinstance(value, str):
                raise MXNetValueError(f"AttrScope: attributes must be strings, got {value!r} for {key}")
        self._attrs = {with_underscores(key): value for key, value in kwargs.items()}
        self._before: list[dict[str, str]] = []

    def get(self, attr: dict[str, str] | None) -> dict[str, str]:
        """The attributes of a new symbol: those of the scope, and `attr` over them."""
        return {**self._attrs, **(attr or {})}

    def __enter__(self) -> Self:
        self._before.append(_current.attrs)
        _current.attrs = {**_current.attrs, **self._attrs}
        return self

    def __exit__(self, *error: Any) -> None:
        _current.attrs = self._before.pop()


def with_underscores(key: str) -> str:
    """`lr_mult` as files write it, `__lr_mult__`; other keys as they are."""
    return f"__{key}__" if key in NODE_KEYS else key


def current() -> dict[str, str]:
    """The attributes that a new symbol gets now."""
    return _current.attrs
