"""`Symbol`: the outputs of a graph of operators that has not been given arrays yet."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from mxnp import attribute
from mxnp._files.atomic import atomic_write
from mxnp._files.symbol_json import read_graph, read_graph_file
from mxnp._symbol_types import SYMBOLS
from mxnp.error import MXNetError, MXNetIndexError, MXNetNotImplementedError, MXNetTypeError, MXNetValueError

from . import _binding, _inference, _json, _values
from ._node import Entry, Node, ordered, rebuilt, state_variables, variable
from ._operators import Operators

__all__ = ["Group", "Symbol", "Variable", "fromjson", "load", "load_json", "var"]


class Symbol(Operators):
    """One or more outputs of a graph. Operators and `mx.sym` functions on symbols make new symbols.

    >>> data = mx.sym.var("data")
    >>> hidden = mx.sym.FullyConnected(data, num_hidden=16, name="fc1")
    >>> out = mx.sym.Activation(hidden, act_type="relu", name="act1")
    >>> out.list_arguments()
    ['data', 'fc1_weight', 'fc1_bias']
    >>> out.infer_shape(data=(2, 8))
    ([(2, 8), (16, 8), (16,)], [(2, 16)], [])
    """

    __slots__ = ("_entries",)
    __array_priority__ = 1000.0
    __array_ufunc__ = None  # NumPy's arrays leave `array + symbol` to the symbol

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries: list[Entry] = list(entries)

    # The graph ------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str | None:
        """The name of the node; None for a group of outputs of several nodes."""
        first = self._entries[0][0]
        return first.name if all(node is first for node, _ in self._entries) else None

    @property
    def num_outputs(self) -> int:
        """How many outputs there are."""
        return len(self._entries)

    def list_arguments(self) -> list[str]:
        """The names of the variables that are no auxiliary states, in the order of the graph."""
        return [node.name for node in self._variables(states=False)]

    def list_auxiliary_states(self) -> list[str]:
        """The names of the auxiliary states, such as running statistics."""
        return [node.name for node in self._variables(states=True)]

    def list_inputs(self) -> list[str]:
        """The names of all variables."""
        return [node.name for node in ordered(self._entries) if node.spec is None]

    def list_outputs(self) -> list[str]:
        """The names of the outputs, `fc1_output` and the like."""
        return [node.outputs()[i] for node, i in self._entries]

    def _variables(self, states: bool) -> list[Node]:
        nodes = ordered(self._entries)
        aux = state_variables(nodes)
        return [node for node in nodes if node.spec is None and (id(node) in aux) == states]

    def get_internals(self) -> Self:
        """All outputs of all nodes, one of which `[name]` picks: an inner layer as a symbol of its own.

        >>> x = mx.sym.var("x")
        >>> y = mx.sym.relu(mx.sym.exp(x, name="e"), name="r")
        >>> y.get_internals()["e_output"].list_outputs()
        ['e_output']
        """
        return self._with([(node, i) for node in ordered(self._entries) for i in range(len(node.outputs()))])

    def get_children(self) -> Self | None:
        """The inputs of the nodes of the outputs; None for a variable."""
        children = [child for node, _ in self._entries for child in node.inputs]
        return self._with(children) if children else None

    def get_inputs(self) -> Self:
        """All variables, as one symbol."""
        return self._with([(node, 0) for node in ordered(self._entries) if node.spec is None])

    def _with(self, entries: Sequence[Entry]) -> Self:
        return type(self)(entries)

    def __getitem__(self, index: Any) -> Any:
        """An output by number or by name."""
        if isinstance(index, str):
            found = [i for i, name in enumerate(self.list_outputs()) if name == index]
            if not found:
                raise MXNetValueError(f'Cannot find output that matches name "{index}"')
            if len(found) > 1:
                raise MXNetValueError(f'There are multiple outputs with name "{index}"')
            return self._with([self._entries[found[0]]])
        if isinstance(index, slice):
            chosen = self._entries[index]
            if not chosen:
                raise MXNetIndexError(f"no output of {len(self._entries)} is in {index}")
            return self._with(chosen)
        if not isinstance(index, int):
            raise MXNetTypeError(f"Symbol: an index is a number, slice or name, got {type(index).__name__}")
        if not -len(self._entries) <= index < len(self._entries):
            raise MXNetIndexError(f"Index: {index} is out of range: there are {len(self._entries)} outputs")
        return self._with([self._entries[index]])

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Any]:
        return (self._with([entry]) for entry in self._entries)

    def __repr__(self) -> str:
        if self.name is not None:
            return f"<{type(self).__name__} {self.name}>"
        return f"<{type(self).__name__} group [{', '.join(node.name for node, _ in self._entries)}]>"

    def __bool__(self) -> bool:
        raise MXNetNotImplementedError("bool(symbol): a symbol has no value before it is bound to arrays")

    def __copy__(self) -> Self:
        return self._with(self._entries)

    def __deepcopy__(self, memo: Any) -> Self:
        return self._with(self._entries)  # nodes never change

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (type(self), self.tojson())

    def __call__(self, *args: Any, **kwargs: Any) -> Self:
        """The same graph with symbols in the place of its variables: in their order, or by name.

        `name=` names the operator that gives the result.
        """
        given_name = kwargs.pop("name", None)
        if args and kwargs:
            raise MXNetTypeError("compose: give symbols in order or by name, not both")
        variables = [node for node in ordered(self._entries) if node.spec is None]
        names = [node.name for node in variables]
        given = dict(zip(names, args, strict=False)) if args else kwargs
        if len(args) > len(names):
            raise MXNetValueError(f"compose: there are {len(names)} variables, got {len(args)} symbols")
        replacement: dict[int, Entry] = {}
        for key, symbol in given.items():
            if key not in names:
                raise MXNetError(f"compose: there is no variable '{key}'; there are {', '.join(names)}")
            if not isinstance(symbol, Symbol) or len(symbol) != 1:
                raise MXNetTypeError(f"compose: '{key}' must be a symbol of one output, got {symbol!r}")
            replacement[id(variables[names.index(key)])] = symbol._entries[0]
        heads = rebuilt(self._entries, replacement)
        if given_name is not None and self.name is not None and heads[0][0].spec is not None:
            head = heads[0][0].replaced(heads[0][0].inputs)
            head.name = given_name
            heads = [(head, output) for _, output in heads]
        return self._with(heads)

    # Attributes -----------------------------------------------------------------------------------------------

    def attr(self, key: str) -> str | None:
        """The node's attribute, None where it has none."""
        if len({id(node) for node, _ in self._entries}) != 1:
            return None
        return self._entries[0][0].own_attrs().get(key)

    def list_attr(self) -> dict[str, str]:
        """The node's attributes."""
        return {} if self.name is None else self._entries[0][0].own_attrs()

    def attr_dict(self) -> dict[str, dict[str, str]]:
        """The attributes of all nodes that have any, by the nodes' names."""
        return {node.name: attrs for node in ordered(self._entries) if (attrs := node.own_attrs())}

    def _set_attr(self, **kwargs: str) -> None:
        """Set attributes of the node itself, such as `__lr_mult__`."""
        if self.name is None:
            raise MXNetValueError("_set_attr: a group has no attributes")
        node = self._entries[0][0]
        for key, value in kwargs.items():
            if not isinstance(value, str):
                raise MXNetValueError(f"_set_attr: attributes must be strings, got {value!r} for {key}")
        attrs = {**node.attrs, **{attribute.with_underscores(k): v for k, v in kwargs.items()}}
        checked = Node(node.spec, node.name, attrs, node.inputs, node.legacy)
        node.attrs, node.values = checked.attrs, checked.values

    # Shapes and dtypes ----------------------------------------------------------------------------------------

    def infer_shape(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, Any]:
        """Shapes of arguments, outputs and auxiliary states from those given, in order or by name.

        (None, None, None), and a warning with the arguments, where they do not decide all. Raises MXNetError where
        they contradict, naming the node.
        """
        return _inference.shapes(self, args, kwargs, partial=False)

    def infer_shape_partial(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, Any]:
        """The same as far as it goes: -1 (0 in 1.x's mode) for unknown dimensions, None (()) for unknown shapes."""
        return _inference.shapes(self, args, kwargs, partial=True)

    def infer_type(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, Any]:
        """Dtypes of arguments, outputs and auxiliary states from those given, in order or by name."""
        return _inference.types(self, args, kwargs, partial=False)

    def infer_type_partial(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, Any]:
        """The same as far as it goes, None for what is unknown."""
        return _inference.types(self, args, kwargs, partial=True)

    # Files ----------------------------------------------------------------------------------------------------

    def tojson(self, remove_amp_cast: bool = True) -> str:
        """The graph as MXNet's JSON; `remove_amp_cast` leaves out the casts of automatic mixed precision."""
        return _json.text_of(_without_casts(self._entries) if remove_amp_cast else self._entries)

    def save(self, fname: str | os.PathLike[str], remove_amp_cast: bool = True) -> None:
        """Write the graph to a file that `load` and MXNet read; the old contents stay until all is written."""
        with atomic_write(fname) as stream:
            stream.write(self.tojson(remove_amp_cast).encode())

    def debug_str(self) -> str:
        """The nodes in words."""
        lines = ["Symbol Outputs:"]
        lines += [f"\toutput[{k}]={node.name}({i})" for k, (node, i) in enumerate(self._entries)]
        for node in ordered(self._entries):
            if node.spec is None:
                lines.append(f"Variable:{node.name}")
                continue
            lines += ["--------------------", f"Op:{node.op}, Name={node.name}", "Inputs:"]
            lines += [f"\targ[{k}]={child.name}({i})" for k, (child, i) in enumerate(node.inputs)]
            if node.attrs:
                lines += ["Attrs:", *(f"\t{key}={text}" for key, text in sorted(node.attrs.items()))]
        return "\n".join(lines) + "\n"

    # Running --------------------------------------------------------------------------------------------------

    def bind(
        self,
        ctx: Any = None,
        args: Any = None,
        args_grad: Any = None,
        grad_req: Any = "write",
        aux_states: Any = None,
        **ignored: Any,
    ) -> Any:
        """An Executor over the arrays in `args` (list or dict) and `aux_states`; gradients go into `args_grad`.

        `grad_req`: 'write', 'add', 'null', for all arguments or each. `group2ctx` and `shared_exec` are accepted.
        """
        return _binding.bind(self, ctx, args, args_grad, grad_req, aux_states)

    _bind = bind

    def simple_bind(
        self,
        ctx: Any = None,
        grad_req: Any = "write",
        type_dict: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """An Executor over new arrays of zeros, their shapes inferred from those given by name."""
        return _binding.simple_bind(self, ctx, grad_req, type_dict, kwargs)

    _simple_bind = simple_bind

    def eval(self, ctx: Any = None, **kwargs: Any) -> list[Any]:
        """The outputs for the arrays given by name.

        >>> x = mx.sym.var("x")
        >>> (x + 1).eval(x=np.array([1, 2]))
        [array([2., 3.])]
        """
        return _binding.bind(self, ctx, kwargs, None, "null", kwargs, "eval").forward()

    def optimize_for(self, backend: str, *args: Any, **kwargs: Any) -> Self:
        """This symbol: mxnp's optimiser works when a graph runs, whatever backend is named."""
        return self._with(self._entries)

    def get_backend_symbol(self, backend: str) -> Self:
        """This symbol, see `optimize_for`."""
        return self._with(self._entries)

    # Kinds ----------------------------------------------------------------------------------------------------

    def as_np_ndarray(self) -> Any:
        """The same with NumPy's operators and methods (`mx.sym.np`)."""
        from .numpy import _Symbol

        return _Symbol(self._entries)

    def as_nd_ndarray(self) -> Symbol:
        """The same with 1.x's operators and methods."""
        return Symbol(self._entries)


SYMBOLS.add(Symbol)


def _unpickled(cls: type[Symbol], text: str) -> Symbol:
    return cls(load_json(text)._entries)


def _without_casts(entries: Sequence[Entry]) -> list[Entry]:
    """The heads with the casts of mixed precision left out."""
    replacement: dict[int, Entry] = {}
    for node in ordered(entries):
        if node.op == "amp_cast":
            child, index = node.inputs[0]
            replacement[id(node)] = replacement.get(id(child), (child, index))
    return rebuilt(entries, replacement) if replacement else list(entries)


def var(
    name: str,
    attr: dict[str, str] | None = None,
    shape: Sequence[int] | None = None,
    lr_mult: float | None = None,
    wd_mult: float | None = None,
    dtype: Any = None,
    init: Any = None,
    stype: str | None = None,
    profiler_scope: str | None = None,
    **kwargs: str,
) -> Symbol:
    """A variable. What is known of it, and attributes `__name__=text`, go with it into files.

    >>> mx.sym.var("x", shape=(2, 3)).attr("__shape__")
    '(2, 3)'
    """
    from mxnp import util

    if not isinstance(name, str):
        raise MXNetTypeError("Expect a string for variable `name`")
    attrs = {**attribute.current()}
    for key, value in (attr or {}).items():
        attrs[attribute.with_underscores(key)] = value
    known: dict[str, Any] = {"shape": shape, "lr_mult": lr_mult, "wd_mult": wd_mult}
    for key, value in known.items():
        if value is not None:
            attrs[f"__{key}__"] = _values.write(tuple(value) if key == "shape" else value)
    if dtype is not None:
        attrs["__dtype__"] = _values.dtype_flag(_values.dtype_name(dtype))
    if init is not None:
        attrs["__init__"] = init if isinstance(init, str) else init.dumps()
    if profiler_scope is not None:
        attrs["__profiler_scope__"] = profiler_scope
    for key, value in kwargs.items():
        if not (key.startswith("__") and key.endswith("__")):
            raise MXNetValueError(
                f"Attribute name={key} is not supported. Additional attributes must start and end with double "
                "underscores, e.g, __yourattr__"
            )
        attrs[key] = str(value)
    return Symbol([(variable(name, attrs, not util.is_np_shape()), 0)])


Variable = var


def Group(symbols: Sequence[Symbol], create_fn: Any = Symbol) -> Symbol:  # noqa: N802 (MXNet's name)
    """One symbol with the outputs of several.

    >>> mx.sym.Group([mx.sym.var("a"), mx.sym.var("b")]).list_outputs()
    ['a', 'b']
    """
    symbols = list(symbols) if isinstance(symbols, (list, tuple)) else []
    if not symbols or not all(isinstance(symbol, Symbol) for symbol in symbols):
        raise MXNetTypeError("Expected a list of symbols as input")
    return create_fn([entry for symbol in symbols for entry in symbol._entries])


def load(fname: str | os.PathLike[str]) -> Symbol:
    """The symbol in a `-symbol.json` file of mxnp, MXNet 1.x or 2.

    Raises FormatError, with file and node, for a damaged file, and for an operator or attribute that mxnp lacks.
    """
    if not isinstance(fname, (str, os.PathLike)):
        raise MXNetTypeError("fname need to be string")
    return Symbol(_json.build(read_graph_file(fname), os.fspath(fname)))


def load_json(json_str: str) -> Symbol:
    """The symbol in a text that `tojson` gave.

    >>> x = mx.sym.load_json(mx.sym.relu(mx.sym.var("x"), name="r").tojson())
    >>> x.list_outputs()
    ['r_output']
    """
    if not isinstance(json_str, (str, bytes)):
        raise MXNetTypeError("json_str needs to be string")
    return Symbol(_json.build(read_graph(json_str, "the text"), "the text"))


fromjson = load_json
