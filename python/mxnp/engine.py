"""MXNet's control of how many ops run as one task. mxnp decides that itself; 0 and 1 turn it off."""

from __future__ import annotations

import os

from . import _core
from .error import MXNetValueError

__all__ = ["bulk", "set_bulk_size"]

_DEFAULT = 15  # MXNet's
_size = _DEFAULT


def set_bulk_size(size: int) -> int:
    """Sets the size and gives the former one; 0 or 1 stops mxnp from making one pass of several ops.

    >>> before = mx.engine.set_bulk_size(10)
    >>> mx.engine.set_bulk_size(before)
    10
    """
    global _size
    if size < 0:
        raise MXNetValueError(f"set_bulk_size: expected a size of at least 0, got {size}")
    before, _size = _size, int(size)
    _core.set_fusion(size > 1)
    return before


class _Bulk:
    """See `bulk`."""

    def __init__(self, size: int) -> None:
        self._size, self._before = size, 0

    def __enter__(self) -> None:
        self._before = set_bulk_size(self._size)

    def __exit__(self, *error: object) -> None:
        set_bulk_size(self._before)


def bulk(size: int) -> _Bulk:
    """A with-block with another bulk size.

    >>> with mx.engine.bulk(1):
    ...     y = np.ones(2) + 1
    """
    return _Bulk(size)


def _follow_environment() -> None:
    """MXNet's variables that make every op a task of its own."""
    off = [os.environ.get("MXNET_USE_FUSION"), os.environ.get("MXNET_EXEC_BULK_EXEC_TRAIN")]
    size = os.environ.get("MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN")
    if "0" in off or size in ("0", "1"):
        _core.set_fusion(False)


_follow_environment()
