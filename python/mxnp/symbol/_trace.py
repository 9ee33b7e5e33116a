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
from ._node import Entry, Node, variable
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
        single = sum(node["kind"] == "argument" for node in nodes) == 1
        self.argument = "data" if single and variables == "data" else variables + "{}"

    def run(self, heads: list[tuple[int, int]]) -> Exported:
        """Convert every node the heads need; all that was traced is needed."""
        self.found.heads = self.convert(heads)
        return self.found

    def within(self, nodes: list[Traced], other: list[Traced]) -> _Converter:
        """A conversion of a graph that a node of this one holds; its constants are variables of this one."""
        inner = _Converter(nodes, other, self.attrs, self.argument)
        inner.found = self.found
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
        made = self.stored(node, made)
        for output, (found, _) in enumerate(made._entries):
            self.entries[index, output] = (found, made._entries[output][1])

    def stored(self, node: Traced, made: Symbol) -> Symbol:
        """What a write to a whole array leaves there: the result in that array's dtype and shape."""
        if not _core.op(node["name"]).is_elementwise or node["name"] == "full":
            return made
        shape, dtype = tuple(node["outputs"][0][0]), node["outputs"][0][1]
        metas = [self.nodes[i[0]]["outputs"][i[1]] if isinstance(i, tuple) else i for i in node["inputs"]]
        arrays = [np.zeros((0,), dtype=m[1]) if isinstance(m, tuple) else m for m in metas]
        if _core.call(node["name"], arrays, **node["attrs"]).dtype != dtype:
            made = self.made("Cast", node, made, dtype=dtype.name)
        if numpy.broadcast_shapes(*(m[0] for m in metas if isinstance(m, tuple))) != shape:
            made = self.made("_npi_broadcast_to", node, made, shape=shape)
        return made

    def fold(self, index: int, node: Traced) -> bool:
        """Compute what depends on constants alone, such as a range; a filled array has an operator of its own."""
        inputs = node["inputs"]
        known = all(not isinstance(i, tuple) or i[0] in self.fixed for i in inputs)
        op = _core.op(node["name"])
        if not known or op.is_random or node["name"] == "full" or node.get("writes"):
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


def _reshape(self: _Converter, index: int, node: Traced) -> Symbol:
    first, second = self.sizes(index)
    x = self.operand(node["inputs"][0])
    return self.made("_npx_reshape", node, x, newshape=_open(self, node, first, second))


def _open(self: _Converter, node: Traced, first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    """A target shape in which sizes that follow the batch are copied (-2) or left over (-1)."""
    source, source2 = (self.shape(node["inputs"][0], again) for again in (False, True))
    codes = list(first)
    if first == second and source == source2:
        return first
    leading = True
    for i, size in enumerate(first):
        leading = leading and i < len(source) and source[i] == size and source2[i] == second[i]
        if leading:
            codes[i] = -2
        elif second[i] != size:
            codes[i] = -1
    return tuple(codes) if codes.count(-1) <= 1 and 0 not in first else first


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


def _slice(self: _Converter, index: int, node: Traced) -> Symbol:
    """A basic index: ranges by `slice`, then the axes of integers dropped, then new axes put in."""
    source, x = self.shape(node["inputs"][0]), self.operand(node["inputs"][0])
    items = [item for item in node["attrs"]["index"].strip("[]").split(",") if item]
    begin: list[Any] = []
    end: list[Any] = []
    step: list[Any] = []
    codes: list[int] = []
    fresh: list[int] = []
    at = 0
    for item in items:
        if item == "None":
            fresh.append(at)
            at += 1
            continue
        axis = len(codes)
        first, stride, last = _range(item, source[axis])
        for target, value in zip((begin, end, step), (first, last, stride), strict=True):
            target.append(value)
        codes.append(-2 if ":" in item else -3)
        at += ":" in item
    if any(value is not None for value in begin):
        x = self.made("slice", node, x, begin=begin, end=end, step=step)
    if -3 in codes:
        rest = [-4] if len(codes) < len(source) else []
        x = self.made("_npx_reshape", node, x, newshape=codes + rest)
    for axis in fresh:
        x = self.made("expand_dims", node, x, axis=axis)
    return x if items else self.made("_copy", node, x)


def _range(item: str, size: int) -> tuple[int | None, int | None, int | None]:
    """Begin, step and end of `start:step:len` or a number; all None for a whole axis."""
    parts = [int(part) for part in item.split(":")]
    if len(parts) == 1:
        return parts[0], 1, parts[0] + 1
    start, stride, length = parts
    if (start, stride, length) == (0, 1, size):
        return None, None, None
    end: int | None = start + stride * length
    if end is not None and end < 0:
        end = None
    return start, stride, end


def _pad(self: _Converter, index: int, node: Traced) -> Symbol:
    x, value = (self.operand(i) for i in node["inputs"])
    widths = _values.known_shape(node["attrs"]["pad_width"])
    pairs = tuple(zip(widths[::2], widths[1::2], strict=True))
    return self.made("_npi_pad", node, x, pad_width=pairs, mode="constant", constant_values=float(value))


def _full(self: _Converter, index: int, node: Traced) -> Symbol:
    shape, _ = self.sizes(index)
    value = self.operand(node["inputs"][0])
    if isinstance(value, Symbol):
        return self.made("_npi_broadcast_to", node, value, shape=shape)
    return self.made("_full", node, shape=shape, value=float(value), dtype=node["outputs"][0][1].name)


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
        symbols = [value for value in operands.values() if isinstance(value, Symbol)]
        numbers = {k: "None" if isinstance(v, Symbol) else float(v) for k, v in operands.items()}
        size = node["outputs"][0][0]
        return self.made(op, node, *symbols, size=tuple(size), dtype=node["outputs"][0][1].name, **numbers)

    return rule


def _embedding(self: _Converter, index: int, node: Traced) -> Symbol:
    data, weight = (self.operand(i) for i in node["inputs"])
    rows, columns = self.shape(node["inputs"][1])
    dtype = node["outputs"][0][1].name
    return self.made("Embedding", node, data, weight, input_dim=rows, output_dim=columns, dtype=dtype)


_SPECIAL: dict[str, Callable[[_Converter, int, Traced], Symbol]] = {
    "clip": _clip,
    "conjugate": _same,
    "cumsum": _cumsum,
    "embedding": _embedding,
    "exp2": _exp2,
    "expand_dims": _expand_dims,
    "fabs": _fabs,
    "full": _full,
    "index_get": _gather,
    "normal": _drawn("_npi_normal", "loc", "scale"),
    "pad": _pad,
    "pick": _pick,
    "positive": _same,
    "reshape": _reshape,
    "roll": _roll,
    "silu": _silu,
    "slice": _slice,
    "take": _take,
    "uniform": _drawn("_npi_uniform", "low", "high"),
    "where": _where,
}

__all__ = ["Exported", "Node", "convert"]
