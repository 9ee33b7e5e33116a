"""Compiled calls of hybrid blocks: the first call with arguments of a kind is traced, later ones replay its graph.

What a graph is and how it is replayed is the core's; here stands what a block must tell it, and when its graphs are
stale.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mxnp import _core

from ._export import template


def traced(
    block: Any,
    forward: Callable[[tuple[Any, ...], dict[str, Any]], Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Call `forward(args, kwargs)` and keep its graph in `block._compiled`, or why there is none."""
    # What `export` traces again, when it is asked to.
    block.__dict__["_called_with"] = template((args, kwargs))
    tracing, args, kwargs = block._compiled.begin(args, kwargs)
    try:
        result = forward(args, kwargs)
        names, arrays = [], []
        for name, parameter in block._collect_params_with_prefix().items():
            for array in parameter._arrays.values():
                names.append(name)
                arrays.append(array)
        if _core.is_tracing():
            _mark(block)
        return tracing.finish(result, names, arrays)
    finally:
        tracing.abandon()  # nothing, once it is finished


def _mark(block: Any) -> None:
    """Note that a graph depends on the block and on all below it."""
    block.__dict__["_in_graph"] = True
    for _, child in block._children.blocks():
        _mark(child)


def changed(block: Any) -> None:
    """Drop the graphs that a block may be part of: a change of it would not be seen by them."""
    if block.__dict__.get("_in_graph") and not _core.is_tracing():
        block.__dict__["_in_graph"] = False
        _core.drop_graphs()


class untraced:  # noqa: N801 - reads as a statement
    """A with-block whose calls are part of no graph: those that initialise parameters."""

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        self._before = _core.set_trace_paused(True)

    def __exit__(self, *error: object) -> None:
        _core.set_trace_paused(self._before)
