"""Between a file's list of nodes and the graph of a Symbol; repairs what files of old versions leave out."""

from __future__ import annotations

from collections.abc import Sequence

from mxnp._files.source import FormatError
from mxnp._files.symbol_json import Graph, GraphNode, write_graph
from mxnp.error import MXNetError

from ._node import Entry, Held, Node, check_operator, ordered, variable
from ._spec import is_hidden


def build(graph: Graph, source: str) -> list[Entry]:
    """The heads of the graph. Raises FormatError, with file and node, for operators and attributes mxnp cannot run."""
    nodes: list[Node] = []
    for index, raw in enumerate(graph.nodes):
        try:
            nodes.append(_node(raw, nodes, not graph.np_shape))
        except MXNetError as error:
            raise FormatError(f"{source}: node {index}: {error}") from None
    return _heads(graph, nodes, source)


def _heads(graph: Graph, nodes: list[Node], source: str) -> list[Entry]:
    heads = []
    for index, output in graph.heads:
        _check_output(nodes[index], output, source, "heads")
        heads.append((nodes[index], output))
    return heads


def _held(graph: Graph, legacy: bool) -> Held:
    """A graph that a node holds."""
    nodes: list[Node] = []
    for raw in graph.nodes:
        nodes.append(_node(raw, nodes, legacy))
    return Held(_heads(graph, nodes, ""), [node for node in nodes if node.spec is None])


def _node(raw: GraphNode, nodes: list[Node], legacy: bool) -> Node:
    inputs: list[Entry] = [(nodes[i], output) for i, output in raw.inputs]
    if raw.op == "null":
        if inputs:
            raise MXNetError(f"variable '{raw.name}' has inputs")
        return variable(raw.name, raw.attrs, legacy)
    spec = check_operator(raw.op, raw.name)
    attrs = raw.attrs
    if legacy:
        # Before 1.0, files kept some attributes of a node's variables with the node itself.
        attrs = {k: v for k, v in attrs.items() if k in spec.attributes or k == "num_args" or _kept(k)}
    node = Node(spec, raw.name, attrs, inputs, legacy)
    if len(raw.graphs) != spec.graphs:
        raise MXNetError(
            f"node '{raw.name}': {raw.op} holds {spec.graphs} graphs of its own, got {len(raw.graphs)}"
        )
    node.graphs = tuple(_held(each, legacy) for each in raw.graphs)
    try:
        node.outputs()
    except MXNetError as error:
        raise MXNetError(f"node '{raw.name}' ({raw.op}): {error}") from None
    for child, output in inputs:
        _check_output(child, output, "", f"node '{raw.name}'")
    _complete(node)
    return node


def _kept(key: str) -> bool:
    """Whether an attribute stays: all but those that 1.x passes over, so that an unknown one is still refused."""
    return not is_hidden(key) or key.startswith("__")


def _check_output(node: Node, output: int, source: str, where: str) -> None:
    count = len(node.outputs())
    if output >= count:
        text = f"{where}: node '{node.name}' ({node.op}) has {count} outputs, there is no output {output}"
        raise FormatError(f"{source}: {text}") if source else MXNetError(text)


def _complete(node: Node) -> None:
    """Checks the number of inputs; adds the auxiliary states that files before 0.9 did not list."""
    spec = node.spec
    assert spec is not None
    names = node.input_names()
    missing = names[len(node.inputs) :]
    if spec.variadic or not missing:
        if len(node.inputs) > len(names):
            raise MXNetError(
                f"node '{node.name}': {spec.name} takes {len(names)} inputs, got {len(node.inputs)}"
            )
        return
    if not all(name in spec.states for name in missing):
        raise MXNetError(
            f"node '{node.name}': {spec.name} takes the inputs {', '.join(names)}, got {len(node.inputs)}"
        )
    for name in missing:
        node.inputs.append((variable(f"{node.name}_{name}", None, node.legacy), 0))


def text_of(heads: list[Entry]) -> str:
    """The graph as MXNet's JSON."""
    legacy = any(node.legacy for node in ordered(heads))
    return write_graph(_raw(heads, (), not legacy))


def _raw(heads: Sequence[Entry], variables: Sequence[Node], np_shape: bool) -> Graph:
    """The graph as a file has it, with these variables in their order, whether the heads need them or not."""
    nodes = ordered(heads)
    found = {id(node) for node in nodes}
    nodes = [*(node for node in variables if id(node) not in found), *nodes]
    number = {id(node): i for i, node in enumerate(nodes)}
    raw = [
        GraphNode(
            node.op,
            node.name,
            node.attrs,
            [(number[id(child)], output) for child, output in node.inputs],
            tuple(_raw(held.heads, held.variables, np_shape) for held in node.graphs),
            len(node.outputs()) + _hidden(node),
        )
        for node in nodes
    ]
    return Graph(raw, [(number[id(node)], output) for node, output in heads], np_shape, 0)


def _hidden(node: Node) -> int:
    """Outputs that only MXNet counts: mean and variance of a BatchNorm that does not show them, and the like."""
    if node.spec is None or (node.values.get("output_mean_var") and node.spec.hidden == 2):
        return 0
    return node.spec.hidden
