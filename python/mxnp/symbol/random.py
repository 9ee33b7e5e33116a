"""`mx.sym.random`: 1.x's draws."""

from __future__ import annotations

from typing import Any as _Any

from ._namespace import function as _function


def __getattr__(name: str) -> _Any:
    """The operator `_random_` + `name`."""
    return _function(__name__, "_random_", name)
