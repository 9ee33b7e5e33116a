"""The engine as programs see it: what it ran for a function, whether it fuses and folds, MXNet's control of bulks."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import _core
from .error import MXNetValueError

if TYPE_CHECKING:
    from ._explain import Explanation

__all__ = ["bulk", "explain", "set_bulk_size", "set_folding", "set_fusion"]

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


def set_fusion(on: bool) -> bool:
    """Set whether runs of elementwise calls become one pass over memory; gives what was set before.

    Results are the same bits either way.

    >>> before = mx.engine.set_fusion(False)
    >>> mx.engine.set_fusion(before)
    False
    """
    return _core.set_fusion(bool(on))


def set_folding(on: bool) -> bool:
    """Whether compiled blocks fold in prediction; gives the former state. Graphs made so far are made anew.

    Folded are batch normalisations with running statistics into the convolution or dense layer before (results differ
    from eager ones in the last places), and what is made of parameters alone (exactly). Both are computed once and
    again when a parameter was written. `MXNP_FOLDING=0` turns it off from the start.

    >>> before = mx.engine.set_folding(False)
    >>> mx.engine.set_folding(before)
    False
    """
    return _core.set_folding(bool(on))


def explain(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Explanation:
    """Call `fn(*args, **kwargs)`, wait for what it computes, and show what ran: fused groups, bytes, buffers, times.

    What is printed is a table; `records`, `groups`, `flushes`, `totals` and `to_dict()` are the same as data, and
    `result` is what `fn` gave. The work of all threads in that time is in it. What was pending before is finished first
    and is not. A first call makes plans that later ones find (`cached`), so a second one shows the usual times. An
    error of `fn`, or of an array it gives, is raised.

    >>> x = np.ones((100, 100))
    >>> shown = mx.engine.explain(lambda: np.exp(x * 2 + 1).sum())
    >>> [op for record in shown.records for op in record["ops"]]
    ['multiply', 'add', 'exp', 'sum']
    >>> shown.totals["calls"], shown.totals["bytes_unfused"]  # passes is 1, and some 40 kB move
    (4, 280004)
    """
    from ._explain import run

    return run(fn, args, kwargs)


def _follow_environment() -> None:
    """MXNP_FUSION, and MXNet's variables that make every op a task of its own."""
    off = [
        os.environ.get("MXNP_FUSION"),
        os.environ.get("MXNET_USE_FUSION"),
        os.environ.get("MXNET_EXEC_BULK_EXEC_TRAIN"),
    ]
    size = os.environ.get("MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN")
    if "0" in off or size in ("0", "1"):
        _core.set_fusion(False)
    if os.environ.get("MXNP_FOLDING") == "0":
        _core.set_folding(False)


_follow_environment()
