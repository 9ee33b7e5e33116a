"""`mx.sym.contrib`: 1.x's contrib operators."""

from __future__ import annotations

from typing import Any as _Any

from ._namespace import function as _function


def __getattr__(name: str) -> _Any:
    """The operator `_contrib_` + `name`."""
    return _function(__name__, "_contrib_", name)
