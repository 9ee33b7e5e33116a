"""`mx.sym.contrib`: 1.x's contrib operators, and loops and branches of symbols."""

from __future__ import annotations

from typing import Any as _Any

from ._control import cond, foreach, while_loop
from ._namespace import function as _function

__all__ = ["cond", "foreach", "while_loop"]


def __getattr__(name: str) -> _Any:
    """The operator `_contrib_` + `name`."""
    return _function(__name__, "_contrib_", name)
