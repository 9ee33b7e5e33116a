"""Computing a graph: a plan made once, then run on arrays, each value dropped after its last use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mxnp.error import MXNetError

from ._node import Entry, Held, Node, ordered


class Plan:
    """The calls of a graph in order, over numbered slots. Safe to run from several threads."""

    def __init__(self, heads: Sequence[Entry]) -> None:
        nodes = ordered(heads)
        self.variables: dict[str, int] = {}
        self._calls: list[tuple[Node, dict[str, Any], list[int], int, int, list[int]]] = []
        self._size = 0
        slots: dict[int, int] = {}
        last: dict[int, int] = {}
        for node in nodes:
            slots[id(node)] = self._size
            count = len(node.outputs())
            self._size += count
            if node.spec is None:
                self._add_variable(node.name, slots[id(node)])
                continue
            taken = [slots[id(child)] + output for child, output in node.inputs]
            for slot in taken:
                last[slot] = len(self._calls)
            attrs = options(node)
            self._calls.append((node, attrs, taken, slots[id(node)], count, []))
        self.heads = [slots[id(node)] + output for node, output in heads]
        for slot, call in last.items():
            if slot not in self.heads:
                self._calls[call][5].append(slot)

    def _add_variable(self, name: str, slot: int) -> None:
        if name in self.variables:
            raise MXNetError(f"two variables of the graph are called '{name}'\nhint: name them differently")
        self.variables[name] = slot

    def run(self, values: Mapping[str, Any], watch: Any = None) -> list[Any]:
        """The heads' arrays for the variables' arrays by name. `watch(name, array)` sees every node's outputs."""
        slots: list[Any] = [None] * self._size
        for name, slot in self.variables.items():
            slots[slot] = values[name]
        for node, attrs, taken, first, count, done in self._calls:
            outputs = compute(node, [slots[slot] for slot in taken], attrs)
            slots[first : first + count] = outputs
            if watch is not None:
                for name, array in zip(node.outputs(), outputs, strict=True):
                    watch(name, array)
            for slot in done:
                slots[slot] = None
        return [slots[slot] for slot in self.heads]


def options(node: Node) -> dict[str, Any]:
    """The keywords of the operator's function: its attributes, and what else its row asks for."""
    spec = node.spec
    assert spec is not None
    found = node.values
    if spec.legacy:
        found = {**found, "legacy": node.legacy}
    if spec.graphs:
        found = {**found, "graphs": [_function(held) for held in node.graphs]}
    return found


def _function(held: Held) -> Callable[..., list[Any]]:
    """A held graph as a function of the arrays of its variables."""
    plan, names = Plan(held.heads), [node.name for node in held.variables]

    def run(*arrays: Any) -> list[Any]:
        if len(arrays) != len(names):
            raise MXNetError(f"the graph that it holds takes {len(names)} arrays, got {len(arrays)}")
        given = dict(zip(names, arrays, strict=True))
        return plan.run({name: given[name] for name in plan.variables})

    return run


def compute(node: Node, inputs: Sequence[Any], attrs: dict[str, Any]) -> Sequence[Any]:
    """The outputs of one node. Errors get the node's name."""
    assert node.spec is not None
    try:
        result = node.spec.run(*inputs, **attrs)
    except MXNetError as error:
        error.args = (f"node '{node.name}' ({node.op}): {error}",)
        raise
    except (ValueError, IndexError, TypeError, ZeroDivisionError) as error:
        shapes = ", ".join(str(getattr(x, "shape", None)) for x in inputs)
        raise MXNetError(f"node '{node.name}' ({node.op}) of inputs {shapes}: {error}") from error
    outputs = result if isinstance(result, (tuple, list)) else (result,)
    wanted = len(node.outputs())
    if len(outputs) != wanted:
        raise MXNetError(f"node '{node.name}' ({node.op}): expected {wanted} outputs, got {len(outputs)}")
    return outputs
