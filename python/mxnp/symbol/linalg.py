"""`mx.sym.linalg`: 1.x's operators of linear algebra."""

from __future__ import annotations

from typing import Any as _Any

from ._namespace import function as _function


def __getattr__(name: str) -> _Any:
    """The operator `_linalg_` + `name`."""
    return _function(__name__, "_linalg_", name)
