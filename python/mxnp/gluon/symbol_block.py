"""SymbolBlock: a Symbol, and the parameters that its variables are, as a block. What model files become."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from mxnp import initializer, np, symbol
from mxnp._files.source import FormatError
from mxnp.error import MXNetError, MXNetTypeError, MXNetValueError
from mxnp.symbol import _infer, _values
from mxnp.symbol._node import Node, ordered, state_variables
from mxnp.symbol._run import Plan

from . import _checkpoint, _export
from ._devices import DeviceLike
from ._hybrid_block import HybridBlock
from ._parameter import Parameter

__all__ = ["SymbolBlock"]


class SymbolBlock(HybridBlock):
    """A block that computes `outputs` from `inputs`; every other variable of the graph is a parameter.

    Parameters
    ----------
    outputs : a Symbol, or a list of them; several outputs come as a list.
    inputs : the variables that calls give arrays for, a Symbol or a list. Labels of 1.x's output layers
        (`softmax_label`) may be left out: the outputs do not depend on them.
    params : parameters (or arrays) to use, by the variables' names; the others wait for `initialize` or
        `load_parameters`.

    >>> data = mx.sym.var("data")
    >>> out = mx.sym.FullyConnected(data, num_hidden=2, no_bias=True, name="fc")
    >>> net = gluon.SymbolBlock(out, data)
    >>> net.initialize(init="ones")
    >>> net(np.ones((1, 3)))
    array([[3., 3.]])
    """

    def __init__(self, outputs: Any, inputs: Any, params: Mapping[str, Any] | None = None) -> None:
        super().__init__(prefix="")
        heads = outputs if isinstance(outputs, symbol.Symbol) else symbol.Group(list(outputs))
        self._symbol = heads
        self._inputs = _input_names(inputs, heads)
        self._plan = Plan(heads._entries)
        nodes = ordered(heads._entries)
        states, given = state_variables(nodes), params or {}
        self._labels = _labels(nodes) - set(self._inputs) - set(given)
        for node in nodes:
            if node.spec is None and node.name not in self._inputs and node.name not in self._labels:
                self._reg_params[node.name] = _parameter(node, id(node) in states, given.get(node.name))

    @staticmethod
    def imports(
        symbol_file: str | os.PathLike[str],
        input_names: str | Sequence[str],
        param_file: str | os.PathLike[str] | None = None,
        device: DeviceLike = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
        *,
        ctx: DeviceLike = None,
    ) -> SymbolBlock:
        """The network in the files of `export`: mxnp's, MXNet 1.x's or MXNet 2's.

        `input_names`: the variables that calls give arrays for (`data`, or `data0`, `data1`, ...). Raises FormatError
        for a damaged file or an operator mxnp lacks, AssertionError for parameters the file lacks (unless
        `allow_missing`), ValueError for arrays that are no parameter (unless `ignore_extra`).
        """
        names = [input_names] if isinstance(input_names, str) else list(input_names)
        heads = symbol.load(symbol_file)
        known = heads.list_inputs()
        for name in names:
            if name not in known:
                raise MXNetValueError(
                    f"SymbolBlock.imports: '{os.fspath(symbol_file)}' has no variable '{name}'; it has "
                    f"{', '.join(known[:8])}{', ...' if len(known) > 8 else ''}"
                )
        try:
            net = SymbolBlock(heads, [symbol.var(name) for name in names])
        except MXNetError as error:
            raise FormatError(f"{os.fspath(symbol_file)}: {error}") from None
        if param_file is not None:
            net._load_exported(param_file, device, ctx, allow_missing, ignore_extra)
        return net

    def _load_exported(
        self, file: Any, device: DeviceLike, ctx: DeviceLike, allow_missing: bool, ignore_extra: bool
    ) -> None:
        """Read parameters, each in the file's dtype."""
        options = _checkpoint.LoadOptions.create(device, ctx, allow_missing, ignore_extra, True, "saved")
        _checkpoint.load_file(self, file, options)

    # Shapes and dtypes ----------------------------------------------------------------------------------------

    def infer_shape(self, *args: Any) -> None:
        """Set the parameters' unknown dimensions from the inputs' shapes."""
        given: dict[str, Any] = dict(zip(self._inputs, (tuple(x.shape) for x in args), strict=True))
        given |= {name: p.shape for name, p in self._reg_params.items() if p.shape is not None}
        found = _infer.Found()
        _infer.infer_types(
            self._symbol._entries, {n: p.dtype.name for n, p in self._reg_params.items()}, found
        )
        _infer.infer_shapes(self._symbol._entries, given, found)
        for node in self._variables():
            shape = found.shapes.get((id(node), 0))
            if shape is not None and node.name in self._reg_params:
                self._reg_params[node.name].shape = shape

    def infer_type(self, *args: Any) -> None:
        """Set the parameters' dtypes from the inputs'."""
        _export.set_types(self._symbol, self._inputs, args, self._reg_params)

    def _variables(self) -> list[Node]:
        return [node for node in ordered(self._symbol._entries) if node.spec is None]

    def cast(self, dtype: Any) -> None:
        """Change the dtype of all parameters; those of batch normalisations stay float32 below float32."""
        kept = _normalisation_parameters(self._symbol) if np.dtype(dtype).itemsize < 4 else set()
        for name, parameter in self._reg_params.items():
            parameter.cast("float32" if name in kept else dtype)

    # Running --------------------------------------------------------------------------------------------------

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        values = self._in_order(args, kwargs)
        if values and isinstance(values[0], symbol.Symbol):
            return self._symbol(**dict(zip(self._inputs, values, strict=True)))
        return super()._run(tuple(values), {})

    def _in_order(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The inputs in order, from positional and keyword arguments."""
        if len(args) == 1 and isinstance(args[0], (list, tuple)) and len(self._inputs) > 1:
            args = tuple(args[0])
        values = [*args, *(kwargs[name] for name in self._inputs[len(args) :] if name in kwargs)]
        if len(values) != len(self._inputs) or len(args) + len(kwargs) != len(values):
            raise MXNetTypeError(
                f"SymbolBlock takes the inputs {', '.join(self._inputs)}, got {len(args) + len(kwargs)} arguments"
            )
        return values

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The outputs' arrays: one, or a list of several."""
        device = args[0].device if args else None
        values: dict[str, Any] = dict.fromkeys(self._labels)
        values.update({name: p.data(device) for name, p in self._reg_params.items()})
        values.update(zip(self._inputs, args, strict=True))
        outputs = self._plan.run(values)
        return outputs[0] if len(outputs) == 1 else outputs

    def export(
        self, path: str | os.PathLike[str], epoch: int = 0, remove_amp_cast: bool = True
    ) -> tuple[str, str]:
        """Write the graph as it is, and the parameters; see HybridBlock.export."""
        states = set(self._symbol.list_auxiliary_states())
        arrays = {name: p._reduce() for name, p in self._reg_params.items()}
        arguments = {name: array for name, array in arrays.items() if name not in states}
        rest = {name: array for name, array in arrays.items() if name in states}
        return _export.write(self._symbol, arguments, rest, path, epoch, remove_amp_cast)


def _labels(nodes: list[Node]) -> set[str]:
    """The names of the variables that are nothing but labels of output layers."""
    labels: set[int] = set()
    others: set[int] = set()
    for node in nodes:
        for (child, _), name in zip(node.inputs, node.input_names(), strict=True):
            (labels if node.spec is not None and name in node.spec.labels else others).add(id(child))
    return {node.name for node in nodes if node.spec is None and id(node) in labels - others}


def _input_names(inputs: Any, heads: Any) -> list[str]:
    """The names of the inputs, which must be variables of their own. Raises for what is none."""
    symbols = [inputs] if isinstance(inputs, symbol.Symbol) and len(inputs) == 1 else list(inputs)
    names = []
    for each in symbols:
        if not isinstance(each, symbol.Symbol):
            raise MXNetTypeError(f"SymbolBlock: inputs must be symbols, got {type(each).__name__}")
        if len(each) != 1 or each._entries[0][0].spec is not None:
            raise MXNetValueError(f"SymbolBlock: input {each!r} is no variable")
        names.append(each._entries[0][0].name)
    if len(set(names)) != len(names):
        raise MXNetValueError(f"SymbolBlock: an input is named twice: {', '.join(names)}")
    return names


def _parameter(node: Node, is_state: bool, given: Any) -> Parameter:
    """The parameter that a variable is."""
    if isinstance(given, Parameter):
        return given
    dtype = _infer.variable_attr(node, "__dtype__", _values.read_dtype)
    lr_mult, wd_mult = (_infer.variable_attr(node, f"__{key}_mult__", float) for key in ("lr", "wd"))
    parameter = Parameter(
        node.name,
        grad_req="null" if is_state else "write",
        shape=_infer.variable_shape(node),
        dtype=dtype or "float32",
        lr_mult=1.0 if lr_mult is None else lr_mult,
        wd_mult=1.0 if wd_mult is None else wd_mult,
        init=_initialiser(node.attrs.get("__init__")),
        allow_deferred_init=True,
        differentiable=not is_state,
    )
    if given is not None:
        array = given if isinstance(given, np.ndarray) else np.array(given)
        parameter.shape = array.shape
        parameter.cast(array.dtype)
        parameter.initialize(init=initializer.Constant(0), device=array.device)
        parameter.set_data(array)
    return parameter


def _initialiser(text: str | None) -> Any:
    """The initialiser that a file names; None where mxnp has no such one, as it is not needed to load."""
    if not text:
        return None
    try:
        return initializer.create(text)
    except (ValueError, TypeError, KeyError):
        return None


def _normalisation_parameters(graph: Any) -> set[str]:
    """The names of the parameters and states of batch normalisations."""
    return {
        child.name
        for node in ordered(graph._entries)
        if node.spec is not None and node.spec.states
        for child, _ in node.inputs[1:]
    }
