"""From a traced graph of the core's operations to a Symbol of MXNet's operators, and the arrays of its variables.

The graph comes as plain data (`_core.Graph.nodes`). A second one, traced with another batch size, tells which sizes
follow the batch: a reshape leaves those open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy

from mxnp import _core, name, np
from mxnp.error import MXNetError

from . import _spec, _values
from . import _trace_shapes as shapes
from ._node import Entry, Node, ordered, variable
from ._operators import apply
from ._trace_control import held, written
from ._trace_rules import PAIRS, PLAIN
from .symbol import Symbol

Traced = dict[str, Any]
Operand = Any  # a Symbol, or a number


@dataclass
class Exported:
    """A graph ready for a file: its heads, and the arrays of its variables by name."""

    heads: list[Entry]
    arguments: dict[str, Any] = field(default_factory=dict)
    states: dict[str, Any] = field(default_factory=dict)


def convert(
    nodes: list[Traced],
    heads: list[tuple[int, int]],
    other: list[Traced] | None,
    attrs: Mapping[str, dict[str, str]],
    variables: str = "data",
) -> Exported:
    """The Symbol of a traced graph. `attrs`: attributes of parameters by name; `variables`: what arguments are called.

    Raises MXNetError for an operation that MXNet's files have no operator for.
    """
    with name.NameManager():
        return _Converter(nodes, other, attrs, variables).run(heads)


class _Converter:
    """One conversion."""

    def __init__(
        self,
        nodes: list[Traced],
        other: list[Traced] | None,
        attrs: Mapping[str, dict[str, str]],
        variables: str,
    ) -> None:
        self.nodes = nodes
        same = other is not None and [n["name"] for n in other] == [n["name"] for n in nodes]
        self.other = other if other is not None and same else nodes
        self.attrs = attrs
        self.entries: dict[tuple[int, int], Entry] = {}
        self.fixed: dict[int, Any] = {}  # the arrays of constants and of what is computed from them alone
        self.found = Exported([])
        self.outer: _Converter | None = None
        single = sum(node["kind"] == "argument" for node in nodes) == 1
        self.argument = "data" if single and variables == "data" else variables + "{}"

    def run(self, heads: list[tuple[int, int]]) -> Exported:
        """Convert every node. What only an argument came from that no branch or loop uses is left out."""
        self.found.heads = self.convert(heads)
        used = {node.name for node in ordered(self.found.heads)}
        for arrays in (self.found.arguments, self.found.states):
            for unused in [text for text in arrays if text not in used]:
                del arrays[unused]
        return self.found

    def within(self, nodes: list[Traced], other: list[Traced]) -> _Converter:
        """A conversion of a graph that a node of this one holds; its constants are variables of this one."""
        inner = _Converter(nodes, other, self.attrs, self.argument)
        inner.found, inner.outer = self.found, self
        return inner

    def convert(self, heads: list[tuple[int, int]]) -> list[Entry]:
        """Convert the nodes, but those that have an entry already; the heads' entries."""
        states = {key[0] for node in self.nodes if node["kind"] == "call" for key in written(node)}
        for index, node in enumerate(self.nodes):
            kind = node["kind"]
            if (index, 0) in self.entries:
                continue
            if kind == "argument":
                text = self.argument.format(node["name"].removeprefix("data"))
                self.add_variable(index, text, {}, None, False)
            elif kind == "parameter":
                own = self.attrs.get(node["name"], {})
                self.add_variable(index, node["name"], own, node["value"], index in states)
            elif kind != "call":
                self.fixed[index] = node["value"]
            elif node["name"] == "held":
                for output, made in enumerate(held(self, index, node)):
                    self.entries[index, output] = made._entries[0]
            else:
                self.call(index, node)
        return [self.entry(head) for head in heads]

    def add_variable(self, index: int, text: str, attrs: dict[str, str], value: Any, is_state: bool) -> None:
        """A variable for an argument, parameter or constant."""
        if value is not None:
            attrs = {
                "__shape__": _values.write(tuple(value.shape)),
                "__dtype__": _values.dtype_flag(value.dtype.name),
                **attrs,
            }
            (self.found.states if is_state else self.found.arguments)[text] = value
        self.entries[index, 0] = (variable(text, attrs), 0)

    def entry(self, key: tuple[int, int]) -> Entry:
        """The output of a converted node; a constant becomes a variable when it is first used."""
        if key not in self.entries and key[0] in self.fixed:
            # Trainers of those who import the file must leave it alone.
            frozen = {"__lr_mult__": "0.0", "__wd_mult__": "0.0"}
            number = sum(text.startswith("constant") for text in self.found.arguments)
            self.add_variable(key[0], f"constant{number}", frozen, self.fixed[key[0]], False)
        return self.entries[key]

    def operand(self, value: Any) -> Operand:
        """An input as a symbol, or the number it is."""
        return Symbol([self.entry(value)]) if isinstance(value, tuple) else value

    def call(self, index: int, node: Traced) -> None:
        """Convert a call."""
        if self.fold(index, node):
            return
        for _, dtype in node["outputs"]:
            if dtype.kind == "c":
                raise MXNetError(
                    f"export: MXNet's files have no dtype {dtype.name}, which '{node['name']}' gives\n"
                    "hint: save_parameters and the Python class bring the network back"
                )
        rule = _SPECIAL.get(node["name"])
        if rule is not None:
            made = rule(self, index, node)
        elif node["name"] in PAIRS:
            made = _pair(self, node)
        elif node["name"] in PLAIN:
            made = self.plain(node, PLAIN[node["name"]])
        else:
            raise MXNetError(
                f"export: MXNet's files have no operator for mxnp's '{node['name']}'\n"
                "hint: save_parameters and the Python class bring the network back"
            )
        made = self.stored(index, node, made)
        for output, (found, _) in enumerate(made._entries):
            self.entries[index, output] = (found, made._entries[output][1])

    def stored(self, index: int, node: Traced, made: Symbol) -> Symbol:
        """What a write to a whole array leaves there: the result in that array's dtype and shape."""
        if not _core.op(node["name"]).is_elementwise or node["name"] == "full":
            return made
        shape, dtype = tuple(node["outputs"][0][0]), node["outputs"][0][1]
        metas = [self.nodes[i[0]]["outputs"][i[1]] if isinstance(i, tuple) else i for i in node["inputs"]]
        arrays = [np.zeros((0,), dtype=m[1]) if isinstance(m, tuple) else m for m in metas]
        if _core.call(node["name"], arrays, **node["attrs"]).dtype != dtype:
            made = self.made("Cast", node, made, dtype=dtype.name)
        source, source2 = (
            numpy.broadcast_shapes(*(self.shape(i, again) for i in node["inputs"] if isinstance(i, tuple)))
            for again in (False, True)
        )
        if source != shape:
            made = shapes.spread(self, node, made, (source, source2), self.results(index))
        return made

    def fold(self, index: int, node: Traced) -> bool:
        """Compute what depends on constants alone, such as a range; a filled array has an operator of its own."""
        inputs = node["inputs"]
        known = all(not isinstance(i, tuple) or i[0] in self.fixed for i in inputs)
        op = _core.op(node["name"])
        if not known or op.is_random or node["name"] == "full" or node.get("writes"):
            return False
        if (inputs or node["name"] == "arange") and shapes.follows(self, index):
            return False
        values = [self.fixed[i[0]] if isinstance(i, tuple) else i for i in inputs]
        if node["name"] == "slice":
            result: Any = values[0][_index(node["attrs"]["index"])]
        else:
            result = _core.call(node["name"], values, **node["attrs"])
        if not isinstance(result, np.ndarray):
            return False
        shape, dtype = node["outputs"][0][0], node["outputs"][0][1]
        self.fixed[index] = np.broadcast_to(result.astype(dtype, copy=False), tuple(shape))  # as `stored`
        return True

    def results(self, index: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The shape of a node's first result, in both traces."""
        first, second = (tuple(nodes[index]["outputs"][0][0]) for nodes in (self.nodes, self.other))
        return first, second

    def place_of(self, sizes: tuple[int, int]) -> tuple[Symbol, int] | None:
        """An array from outside, and an axis of it, that has these sizes in the two traces."""
        for index, (one, two) in enumerate(zip(self.nodes, self.other, strict=True)):
            if one["kind"] in ("argument", "captured"):
                pairs = list(zip(one["outputs"][0][0], two["outputs"][0][0], strict=True))
                if sizes in pairs:
                    return Symbol([self.entry((index, 0))]), pairs.index(sizes)
        return None if self.outer is None else self.outer.place_of(sizes)

    def plain(self, node: Traced, rule: str) -> Symbol:
        """Convert by a rule of PLAIN."""
        op, _, rest = rule.partition(" | ")
        options = {}
        for item in rest.split():
            if item.startswith("="):
                theirs, _, text = item[1:].partition(":")
            else:
                ours, _, theirs = item.partition(":")
                theirs, text = theirs or ours, node["attrs"].get(ours, "None")
            if text != "None":
                options[theirs] = text
        return self.made(op.removesuffix(" |"), node, *(self.operand(i) for i in node["inputs"]), **options)

    def made(self, op: str, node: Traced, *inputs: Operand, **options: Any) -> Symbol:
        """A symbol of `op`, named after the operation."""
        return apply(op, node["name"], *inputs, **options)

    def shape(self, key: Any, second: bool = False) -> tuple[int, ...]:
        """The shape of an input, in the first or second trace."""
        node, output = key
        return tuple((self.other if second else self.nodes)[node]["outputs"][output][0])

    def sizes(self, index: int, attr: str = "shape") -> tuple[tuple[int, ...], tuple[int, ...]]:
        """A shape among the attributes of a node, in both traces."""
        first, second = (
            _values.known_shape(nodes[index]["attrs"][attr]) for nodes in (self.nodes, self.other)
        )
        return first, second


def _pair(self: _Converter, node: Traced) -> Symbol:
    """An operation of two operands; a number among them becomes an attribute."""
    stem = PAIRS[node["name"]]
    left, right = (self.operand(i) for i in node["inputs"])
    if isinstance(left, Symbol) and isinstance(right, Symbol):
        return self.made(f"_npi_{stem}", node, left, right)
    from .numpy import _broadcast

    if _spec.find(f"_npi_{stem}_scalar") is None:
        left, right = (_as_symbol(self, node, operand) for operand in (left, right))
        return self.made(f"_npi_{stem}", node, left, right)
    made = _broadcast(stem, left, right)
    return made.as_nd_ndarray()


def _as_symbol(self: _Converter, node: Traced, operand: Operand) -> Symbol:
    """A number as an array of the result's dtype."""
    if isinstance(operand, Symbol):
        return operand
    return self.made("_full", node, shape=(), value=float(operand), dtype=node["outputs"][0][1].name)


def _clip(self: _Converter, index: int, node: Traced) -> Symbol:
    x, low, high = (self.operand(i) for i in node["inputs"])
    if not isinstance(low, Symbol) and not isinstance(high, Symbol):
        x = _converted(self, node, node["inputs"][0], x)
        return self.made("clip", node, x, a_min=float(low), a_max=float(high))
    from .numpy import _broadcast

    return _broadcast("minimum", _broadcast("maximum", x, low), high).as_nd_ndarray()


def _where(self: _Converter, index: int, node: Traced) -> Symbol:
    from .numpy import where

    condition, *rest = (self.operand(i) for i in node["inputs"])
    if not all(isinstance(operand, Symbol) for operand in rest):
        # The operators with a number keep the array's dtype.
        rest = [_converted(self, node, i, x) for i, x in zip(node["inputs"][1:], rest, strict=True)]
    return where(condition, *rest).as_nd_ndarray()


def _converted(self: _Converter, node: Traced, key: Any, operand: Operand) -> Operand:
    """An array operand in the dtype of the result."""
    dtype = node["outputs"][0][1]
    if not isinstance(operand, Symbol) or self.nodes[key[0]]["outputs"][key[1]][1] == dtype:
        return operand
    return self.made("Cast", node, operand, dtype=dtype.name)


def _expand_dims(self: _Converter, index: int, node: Traced) -> Symbol:
    x = self.operand(node["inputs"][0])
    rank = len(self.shape(node["inputs"][0]))
    axes = _values.known_shape(node["attrs"]["axis"])
    for axis in sorted(a % (rank + len(axes)) for a in axes):
        x = self.made("expand_dims", node, x, axis=axis)
    return x


def _index(text: str) -> tuple[Any, ...]:
    """The index that `[start:step:len, number, None]` stands for."""
    found: list[Any] = []
    for item in filter(None, text.strip("[]").split(",")):
        if item == "None":
            found.append(None)
        elif ":" in item:
            start, stride, length = (int(part) for part in item.split(":"))
            end = start + stride * length
            found.append(slice(start, end if end >= 0 else None, stride))
        else:
            found.append(int(item))
    return tuple(found)


def _pad(self: _Converter, index: int, node: Traced) -> Symbol:
    x, value = (self.operand(i) for i in node["inputs"])
    widths = _values.known_shape(node["attrs"]["pad_width"])
    pairs = tuple(zip(widths[::2], widths[1::2], strict=True))
    return self.made("_npi_pad", node, x, pad_width=pairs, mode="constant", constant_values=float(value))


def _take(self: _Converter, index: int, node: Traced) -> Symbol:
    x, indices = (self.operand(i) for i in node["inputs"])
    axis, mode = node["attrs"]["axis"], node["attrs"]["mode"]
    if axis == "None":
        x, axis = self.made("_npx_reshape", node, x, newshape=(-1,)), "0"
    return self.made("take", node, x, indices, axis=axis, mode="raise" if mode == "strict" else mode)


def _pick(self: _Converter, index: int, node: Traced) -> Symbol:
    data, chosen = (self.operand(i) for i in node["inputs"])
    attrs = node["attrs"]
    mode = "wrap" if attrs["mode"] == "wrap" else "clip"
    return self.made("pick", node, data, chosen, axis=attrs["axis"], keepdims=attrs["keepdims"], mode=mode)


def _cumsum(self: _Converter, index: int, node: Traced) -> Symbol:
    x, attrs = self.operand(node["inputs"][0]), node["attrs"]
    turns = attrs.get("reverse", "0") != "0"
    if turns:
        x = self.made("_npi_flip", node, x, axis=(int(attrs["axis"]),))
    options = {"dtype": attrs["dtype"]} if attrs["dtype"] != "None" else {}
    x = self.made("_npi_cumsum", node, x, axis=attrs["axis"], **options)
    return self.made("_npi_flip", node, x, axis=(int(attrs["axis"]),)) if turns else x


def _silu(self: _Converter, index: int, node: Traced) -> Symbol:
    x = self.operand(node["inputs"][0])
    return self.made("_npi_multiply", node, x, self.made("_npx_sigmoid", node, x))


def _exp2(self: _Converter, index: int, node: Traced) -> Symbol:
    x = self.operand(node["inputs"][0])
    return self.made("_npi_rpower_scalar", node, x, scalar=2.0, is_int=False)


def _same(self: _Converter, index: int, node: Traced) -> Symbol:
    """Of real numbers, no more than a conversion."""
    x = self.operand(node["inputs"][0])
    made = _converted(self, node, node["inputs"][0], x)
    return self.made("_copy", node, x) if made is x else made


def _astype(self: _Converter, index: int, node: Traced) -> Symbol:
    """A conversion, or what writing a number to an array leaves there."""
    x = self.operand(node["inputs"][0])
    return self.plain(node, "Cast | dtype") if isinstance(x, Symbol) else _as_symbol(self, node, x)


def _fabs(self: _Converter, index: int, node: Traced) -> Symbol:
    x = self.operand(node["inputs"][0])
    return self.made("_npi_absolute", node, _converted(self, node, node["inputs"][0], x))


def _gather(self: _Converter, index: int, node: Traced) -> Symbol:
    if node["attrs"].get("axis", "0") != "0":
        raise MXNetError(
            "export: MXNet's files have no operator for an index of arrays behind the first axes"
        )
    x, *rows = (self.operand(i) for i in node["inputs"])
    return self.made("gather_nd", node, x, self.made("stack", node, *rows, axis=0))


def _roll(self: _Converter, index: int, node: Traced) -> Symbol:
    attrs = {key: text for key, text in node["attrs"].items() if text != "None"}
    return self.made("_npi_roll", node, self.operand(node["inputs"][0]), **attrs)


def _drawn(op: str, first: str, second: str) -> Callable[[_Converter, int, Traced], Symbol]:
    def rule(self: _Converter, index: int, node: Traced) -> Symbol:
        operands = dict(zip((first, second), (self.operand(i) for i in node["inputs"]), strict=True))
        if shapes.follows(self, index):
            operands[first] = shapes.as_result(self, index, node, node["inputs"][0])
        symbols = [value for value in operands.values() if isinstance(value, Symbol)]
        numbers = {k: "None" if isinstance(v, Symbol) else float(v) for k, v in operands.items()}
        size = None if shapes.follows(self, index) else tuple(node["outputs"][0][0])
        return self.made(op, node, *symbols, size=size, dtype=node["outputs"][0][1].name, **numbers)

    return rule


def _embedding(self: _Converter, index: int, node: Traced) -> Symbol:
    data, weight = (self.operand(i) for i in node["inputs"])
    rows, columns = self.shape(node["inputs"][1])
    dtype = node["outputs"][0][1].name
    return self.made("Embedding", node, data, weight, input_dim=rows, output_dim=columns, dtype=dtype)


_SPECIAL: dict[str, Callable[[_Converter, int, Traced], Symbol]] = {
    "arange": shapes.arange,
    "astype": _astype,
    "broadcast_to": shapes.broadcast_to,
    "clip": _clip,
    "conjugate": _same,
    "cumsum": _cumsum,
    "embedding": _embedding,
    "exp2": _exp2,
    "expand_dims": _expand_dims,
    "fabs": _fabs,
    "full": shapes.full,
    "index_get": _gather,
    "normal": _drawn("_npi_normal", "loc", "scale"),
    "pad": _pad,
    "pick": _pick,
    "positive": _same,
    "reshape": shapes.reshape,
    "roll": _roll,
    "silu": _silu,
    "slice": shapes.basic_slice,
    "take": _take,
    "uniform": _drawn("_npi_uniform", "low", "high"),
    "where": _where,
}

__all__ = ["Exported", "Node", "convert"]
