"""MXNet's `-symbol.json`, in the forms of 0.x, 1.x and 2: read as a checked list of nodes, and written.

Knows no operator: what a node's operator and attributes mean is not looked at here. The input is hostile until every
index and type has been checked.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from .source import FormatError

# The largest file of MXNet's model zoos has half a megabyte.
MAX_BYTES = 64 << 20
MAX_NAME = 1 << 12
# How deep graphs may lie within the nodes of others.
MAX_DEPTH = 16
# The keys under which files of different ages keep a node's attributes; later ones count more.
_ATTRIBUTE_KEYS = ("param", "attr", "attrs")


@dataclass(frozen=True)
class GraphNode:
    """A node of a file: `op` is `null` for a variable, inputs are (node, output) with node < the node's own number.

    `graphs` are the graphs that an operator of control flow holds: the body of a loop, the sides of a branch.
    """

    op: str
    name: str
    attrs: dict[str, str]
    inputs: list[tuple[int, int]]
    graphs: tuple[Graph, ...] = ()
    # How many outputs it has, hidden ones too: written, not read.
    count: int = 1


@dataclass(frozen=True)
class Graph:
    """The nodes of a file, the outputs (node, output), and what the file says of its origin.

    `np_shape`: shapes are NumPy's (-1 is unknown); else 1.x's (0 is unknown). `version` is MXNet's, as 10901, 0 where
    the file has none.
    """

    nodes: list[GraphNode]
    heads: list[tuple[int, int]]
    np_shape: bool
    version: int


def read_graph(text: str | bytes, source: str) -> Graph:
    """The graph in `text`; `source` names the file in errors. Raises FormatError for anything that is no such graph."""
    reader = _Reader(source)
    whole = reader.parse(text)
    return reader.graph(whole)


def read_graph_file(file: str | os.PathLike[str]) -> Graph:
    """The graph in a file. Raises FormatError with file and place, OSError where there is no such file."""
    path = os.fspath(file)
    with open(path, "rb") as stream:
        data = stream.read(MAX_BYTES + 1)
    return read_graph(data, str(path))


class _Reader:
    """Checks with the file's name for messages."""

    def __init__(self, source: str) -> None:
        self.source = source

    def fail(self, problem: str, hint: str = "") -> NoReturn:
        raise FormatError(f"{self.source}: {problem}" + (f"\nhint: {hint}" if hint else ""))

    def parse(self, text: str | bytes) -> dict[str, Any]:
        """The JSON object of the text."""
        if len(text) > MAX_BYTES:
            self.fail(f"more than {MAX_BYTES} bytes: no graph of MXNet is so large")
        try:
            whole = json.loads(text, parse_constant=_no_constant)
        except json.JSONDecodeError as error:
            self.fail(
                f"line {error.lineno}, column {error.colno}: {error.msg}", "is this a -symbol.json file?"
            )
        except UnicodeDecodeError as error:
            self.fail(f"at byte {error.start}: not UTF-8", "is this a -symbol.json file?")
        except RecursionError:
            self.fail("brackets are nested too deep")
        except ValueError as error:
            self.fail(f"not a value of JSON: {error}")
        if not isinstance(whole, dict) or "nodes" not in whole:
            self.fail("expected an object with 'nodes'", "is this a -symbol.json file?")
        return whole

    def graph(self, whole: dict[str, Any]) -> Graph:
        """The checked graph of the parsed file."""
        flags = whole.get("attrs")
        flags = flags if isinstance(flags, dict) else {}
        np_shape, version = self.flag(flags, "is_np_shape") != 0, self.flag(flags, "mxnet_version")
        return self.part(whole, np_shape, version, 0)

    def part(self, whole: dict[str, Any], np_shape: bool, version: int, depth: int) -> Graph:
        """A graph of the file: the whole, or one that a node holds."""
        raw = whole["nodes"]
        if not isinstance(raw, list):
            self.fail(f"'nodes' must be a list, got {_kind(raw)}")
        nodes = []
        for i, each in enumerate(raw):
            node = self.node(i, each)
            held = self.graphs(each.get("subgraphs"), f"node {i} ('{node.name}')", np_shape, version, depth)
            nodes.append(replace(node, graphs=held) if held else node)
        heads = self.entries(whole.get("heads"), len(nodes), "heads")
        if not heads:
            self.fail("'heads' names no output")
        return Graph(nodes, heads, np_shape, version)

    def graphs(self, raw: Any, where: str, np_shape: bool, version: int, depth: int) -> tuple[Graph, ...]:
        """The graphs that a node holds."""
        if raw is None:
            return ()
        if not isinstance(raw, list) or not all(isinstance(g, dict) and "nodes" in g for g in raw):
            self.fail(f"{where}: 'subgraphs' must be a list of objects with 'nodes'")
        if depth >= MAX_DEPTH:
            self.fail(f"{where}: more than {MAX_DEPTH} graphs within each other")
        return tuple(self.part(each, np_shape, version, depth + 1) for each in raw)

    def flag(self, flags: dict[str, Any], name: str) -> int:
        """A number of the graph's own attributes, kept as ['int', number]."""
        value = flags.get(name, 0)
        value = value[-1] if isinstance(value, list) and value else value
        if not isinstance(value, int):
            self.fail(f"attribute '{name}' of the graph must be an integer, got {_kind(value)}")
        return value

    def node(self, index: int, raw: Any) -> GraphNode:
        """Node `index`, whose inputs must come before it."""
        where = f"node {index}"
        if not isinstance(raw, dict):
            self.fail(f"{where} must be an object, got {_kind(raw)}")
        op, name = raw.get("op"), raw.get("name")
        if not isinstance(op, str) or not isinstance(name, str):
            self.fail(f"{where} must have texts 'op' and 'name'")
        if len(op) > MAX_NAME or len(name) > MAX_NAME:
            self.fail(f"{where}: 'op' or 'name' has more than {MAX_NAME} characters")
        where = f"node {index} ('{name}')"
        attrs: dict[str, str] = {}
        for key in _ATTRIBUTE_KEYS:
            attrs.update(self.attributes(raw.get(key), where))
        return GraphNode(op, name, attrs, self.entries(raw.get("inputs", []), index, where))

    def attributes(self, raw: Any, where: str) -> dict[str, str]:
        """A node's attributes: texts by name."""
        if raw is None:
            return {}
        if not isinstance(raw, dict):
            self.fail(f"{where}: attributes must be an object, got {_kind(raw)}")
        for key, value in raw.items():
            if not isinstance(value, str):
                self.fail(f"{where}: attribute '{key[:60]}' must be a text, got {_kind(value)}")
        return raw

    def entries(self, raw: Any, limit: int, where: str) -> list[tuple[int, int]]:
        """(node, output) pairs whose node is below `limit`; a third number, MXNet's version, is passed over."""
        if not isinstance(raw, list):
            self.fail(f"{where}: expected a list of [node, output], got {_kind(raw)}")
        found = []
        for each in raw:
            if not isinstance(each, list) or not 2 <= len(each) <= 3 or not all(type(n) is int for n in each):
                self.fail(f"{where}: expected [node, output], got {str(each)[:60]}")
            node, output = each[0], each[1]
            if node >= limit and where != "heads":
                self.fail(f"{where}: input {node} is not a node before it; nodes come after their inputs")
            if not 0 <= node < limit or output < 0:
                self.fail(f"{where}: there is no output {output} of node {node}; there are {limit} nodes")
            found.append((node, output))
        return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no value here")


def _kind(value: Any) -> str:
    return "nothing" if value is None else type(value).__name__


def write_graph(graph: Graph) -> str:
    """The text of a graph as MXNet writes it."""
    # The version says which rules of reading hold: 2's where shapes are NumPy's.
    attrs: dict[str, Any] = {"is_np_shape": ["int", 1], "mxnet_version": ["int", 20000]}
    whole = {**_fields(graph), "attrs": attrs if graph.np_shape else {"mxnet_version": ["int", 10901]}}
    return json.dumps(whole, indent=2)


def _fields(graph: Graph) -> dict[str, Any]:
    rows = [0]
    written: list[dict[str, Any]] = []
    for node in graph.nodes:
        rows.append(rows[-1] + node.count)
        fields: dict[str, Any] = {"op": node.op, "name": node.name}
        if node.attrs:
            fields["attrs"] = dict(sorted(node.attrs.items()))
        fields["inputs"] = [[i, output, 0] for i, output in node.inputs]
        if node.graphs:
            fields["subgraphs"] = [_fields(each) for each in node.graphs]
        written.append(fields)
    return {
        "nodes": written,
        "arg_nodes": [i for i, node in enumerate(graph.nodes) if node.op == "null"],
        "node_row_ptr": rows,
        "heads": [[i, output, 0] for i, output in graph.heads],
    }
