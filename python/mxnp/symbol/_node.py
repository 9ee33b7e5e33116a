"""The graph of a Symbol: nodes, the order in which they are computed, and what may stand where.

Knows operators only through their Spec.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from mxnp.error import MXNetError

from . import _spec
from ._spec import Attrs, Spec

# A node's output: the node and the number of the output.
Entry = tuple["Node", int]


class Node:
    """A variable (`spec` is None) or one use of an operator. Nodes are not changed once they are in a graph.

    `attrs` are the strings of the file, `values` what they mean; `legacy` says that 1.x's shapes hold: 0 is an unknown
    dimension, and a full reduction leaves one axis. `graphs` are those that control flow holds.
    """

    __slots__ = ("attrs", "graphs", "inputs", "legacy", "name", "spec", "values")

    def __init__(
        self, spec: Spec | None, name: str, attrs: dict[str, str], inputs: list[Entry], legacy: bool
    ) -> None:
        self.spec = spec
        self.name = name
        self.attrs = attrs
        self.inputs = inputs
        self.legacy = legacy
        self.graphs: tuple[Held, ...] = ()
        self.values: Attrs = {} if spec is None else spec.read(attrs, f"node '{name}'")

    @property
    def op(self) -> str:
        """The operator's name in files; `null` for a variable."""
        return "null" if self.spec is None else self.spec.name

    def outputs(self) -> tuple[str, ...]:
        """The visible outputs' names: the node's own for a variable, `name_output` and the like for others."""
        if self.spec is None:
            return (self.name,)
        return tuple(f"{self.name}_{each}" for each in self.spec.outputs(self.values, len(self.inputs)))

    def input_names(self) -> tuple[str, ...]:
        """What the operator calls its inputs."""
        return () if self.spec is None else self.spec.input_names(self.values, len(self.inputs))

    def own_attrs(self) -> dict[str, str]:
        """The attributes as `list_attr` shows them: those that belong to the node also without underscores."""
        from mxnp.attribute import NODE_KEYS

        shown = dict(self.attrs)
        for key, text in self.attrs.items():
            bare = key.removeprefix("__").removesuffix("__")
            if bare != key and bare in NODE_KEYS:
                shown[bare] = text
        return shown

    def replaced(self, inputs: list[Entry]) -> Node:
        """The same with other inputs."""
        node = Node.__new__(Node)
        node.spec, node.name, node.attrs, node.values = self.spec, self.name, self.attrs, self.values
        node.legacy, node.graphs = self.legacy, self.graphs
        node.inputs = inputs
        return node


@dataclass(frozen=True)
class Held:
    """A graph that a node of control flow holds: its outputs, and its variables in the order of its arguments."""

    heads: list[Entry]
    variables: list[Node]


def variable(name: str, attrs: dict[str, str] | None = None, legacy: bool = False) -> Node:
    """A node without operator."""
    return Node(None, name, attrs or {}, [], legacy)


def check_operator(op: str, node: str) -> Spec:
    """The operator's row. Raises MXNetError, naming operator and node, where mxnp has none."""
    spec = _spec.find(op)
    if spec is None:
        like = _spec.suggestions(op)
        hint = f"\nhint: similar operators: {', '.join(like)}" if like else ""
        raise MXNetError(f"node '{node}': mxnp has no operator {op!r}{hint}")
    return spec


def ordered(heads: Iterable[Entry]) -> list[Node]:
    """All nodes the heads need, inputs before what uses them, first inputs first (MXNet's order). Iterative."""
    found: list[Node] = []
    seen: set[int] = set()
    for head, _ in heads:
        if id(head) in seen:
            continue
        seen.add(id(head))
        stack: list[tuple[Node, Iterator[Entry]]] = [(head, iter(head.inputs))]
        while stack:
            node, rest = stack[-1]
            for child, _ in rest:
                if id(child) not in seen:
                    seen.add(id(child))
                    stack.append((child, iter(child.inputs)))
                    break
            else:
                stack.pop()
                found.append(node)
    return found


def state_variables(nodes: Iterable[Node]) -> set[int]:
    """The ids of the variables that are auxiliary states of some operator, also of one in a held graph."""
    states: set[int] = set()
    for node in nodes:
        if node.graphs:
            inside = _held_states(node)
            states.update(
                id(child) for child, _ in node.inputs if child.spec is None and child.name in inside
            )
        if node.spec is not None and node.spec.states:
            names = node.input_names()
            states.update(
                id(child)
                for (child, _), name in zip(node.inputs, names, strict=False)
                if name in node.spec.states and child.spec is None
            )
    return states


def _held_states(node: Node) -> set[str]:
    """The names of the auxiliary states in the graphs that a node holds: what comes from outside keeps its name."""
    names: set[str] = set()
    for held in node.graphs:
        inside = ordered(held.heads)
        found = state_variables(inside)
        names.update(each.name for each in inside if id(each) in found)
    return names


def rebuilt(heads: Iterable[Entry], replacement: dict[int, Any]) -> list[Entry]:
    """The heads of the same graph with the nodes of `replacement` (by id) standing for others, as entries.

    Nodes that need no change are shared.
    """
    heads = list(heads)
    made: dict[int, Node] = {}

    def entry(each: Entry) -> Entry:
        node, index = each
        if id(node) in replacement:
            other: Entry = replacement[id(node)]
            return other
        return made.get(id(node), node), index

    for node in ordered(heads):
        if id(node) not in replacement and node.inputs:
            inputs = [entry(each) for each in node.inputs]
            if any(a is not c for (a, _), (c, _) in zip(inputs, node.inputs, strict=True)):
                made[id(node)] = node.replaced(inputs)
    return [entry(each) for each in heads]
