"""Writing a hybrid block as the two files that MXNet reads: its graph, traced anew, and its parameters."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from mxnp import _core, autograd, np
from mxnp._files import save_arrays
from mxnp.error import MXNetError
from mxnp.npx import _held


def template(value: Any) -> Any:
    """The arguments of a call with every array replaced by what is needed to make one like it."""
    if isinstance(value, np.ndarray):
        return _Like(tuple(value.shape), value.dtype, value.device)
    if isinstance(value, (list, tuple)):
        items = [template(v) for v in value]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, dict):
        return {key: template(v) for key, v in value.items()}
    return value


class _Like:
    """An array's shape, dtype and device."""

    __slots__ = ("device", "dtype", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: Any, device: Any) -> None:
        self.shape, self.dtype, self.device = shape, dtype, device


def _filled(value: Any, batch: int | None, more: int) -> Any:
    """Arguments with arrays of zeros; those whose first axis has `batch` entries get `more` of them."""
    if isinstance(value, _Like):
        shape = value.shape
        if more and shape and shape[0] == batch:
            shape = (batch + more, *shape[1:])
        return np.zeros(shape, dtype=value.dtype, device=value.device)
    if isinstance(value, (list, tuple)):
        items = [_filled(v, batch, more) for v in value]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, dict):
        return {key: _filled(v, batch, more) for key, v in value.items()}
    return value


def _batch(value: Any) -> int | None:
    """The length of the first axis of the first array that has one."""
    if isinstance(value, _Like):
        return value.shape[0] if value.shape else None
    for each in (
        value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    ):
        found = _batch(each)
        if found is not None:
            return found
    return None


def graph_of(block: Any) -> Any:
    """The block's graph in prediction mode, as `symbol._trace.Exported`. Raises RuntimeError before a first forward."""
    like = block.__dict__.get("_called_with")
    if like is None:
        raise MXNetError(
            "Please first call block.hybridize() and then run forward with this block at least once before calling "
            "export."
        )
    return _converted(block, like)


def _converted(block: Any, like: Any) -> Any:
    """The graph of a call with arguments like these."""
    from mxnp.symbol import _trace, _values

    batch = _batch(like)
    nodes, heads = _traced(block, like, batch, 0)
    try:
        other = _traced(block, like, batch, 1)[0] if batch is not None else None
    except (MXNetError, ValueError, TypeError, IndexError):
        other = None  # the network wants this batch size
    attrs = {
        name: {"__lr_mult__": _values.write(float(p.lr_mult)), "__wd_mult__": _values.write(float(p.wd_mult))}
        for name, p in block._collect_params_with_prefix().items()
    }
    return _trace.convert(nodes, heads, other, attrs)


def _traced(block: Any, like: Any, batch: int | None, more: int) -> tuple[list[dict[str, Any]], list[Any]]:
    """Nodes and heads of one call in prediction mode."""
    nodes, heads, count = _trace_once(block, like, batch, more, False)
    if len(heads) != count:  # outputs that were not computed, such as a parameter: as copies they are
        nodes, heads, count = _trace_once(block, like, batch, more, True)
    return nodes, heads


def _arrays(value: Any) -> list[Any]:
    """The arrays in nested results."""
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [array for each in value for array in _arrays(each)] if isinstance(value, (list, tuple)) else []


def _trace_once(
    block: Any, like: Any, batch: int | None, more: int, copied: bool
) -> tuple[list[dict[str, Any]], list[Any], int]:
    """Nodes, heads, and how many arrays the forward gave."""
    args, kwargs = _filled(like, batch, more)
    compiled = _core.Compiled()
    with autograd.pause(False), _held.holding():
        tracing, args, kwargs = compiled.begin(args, kwargs)
        try:
            result = block._run_here(args, kwargs)
            outputs = [array.copy() for array in _arrays(result)] if copied else _arrays(result)
            names, arrays = [], []
            for name, parameter in block._collect_params_with_prefix().items():
                for array in parameter._arrays.values():
                    names.append(name)
                    arrays.append(array)
            tracing.finish(outputs, names, arrays)
        finally:
            tracing.abandon()
        nodes, heads = _held.graph_of(compiled, f"{type(block).__name__}: its forward cannot be exported")
        return nodes, heads, len(outputs)


def infer_type(block: Any, args: tuple[Any, ...]) -> None:
    """See `HybridBlock.infer_type`."""
    from mxnp.symbol import Symbol

    found = _converted(block, template((args, {})))
    names = ["data"] if len(args) == 1 else [f"data{i}" for i in range(len(args))]
    set_types(Symbol(found.heads), names, args, block._collect_params_with_prefix())


def set_types(graph: Any, names: Sequence[str], args: Sequence[Any], parameters: Mapping[str, Any]) -> None:
    """Give parameters the dtypes that a graph's variables of their names have for inputs like these."""
    from mxnp.symbol import _infer, _values
    from mxnp.symbol._node import ordered, rebuilt, variable

    variables = [node for node in ordered(graph._entries) if node.spec is None]
    heads = rebuilt(graph._entries, {id(node): (variable(node.name), 0) for node in variables})
    found = _infer.Found()
    _infer.infer_types(
        heads, {n: _values.dtype_name(x.dtype) for n, x in zip(names, args, strict=True)}, found
    )
    for node in ordered(heads):
        dtype = found.types.get((id(node), 0))
        if node.name in parameters and dtype is not None and parameters[node.name].dtype != dtype:
            parameters[node.name].cast(dtype)


def composed(block: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The Symbol of a block called with symbols; its parameters become variables of their structural names.

    `hybrid_forward` of 1.x runs on symbols as it is. Any other forward is traced, for which the shapes of the symbols
    must be known, from their variables or from a call with arrays. Raises MXNetError where they are not.
    """
    from mxnp import symbol

    from ._hybrid_block import HybridBlock

    if type(block).forward is HybridBlock.forward and not block._children:
        own = {key: symbol.var(block.prefix + p.name) for key, p in block._reg_params.items()}
        return block.hybrid_forward(symbol, *args, **kwargs, **own)
    given = [*args, *kwargs.values()]
    if not all(isinstance(each, symbol.Symbol) and len(each) == 1 for each in given):
        raise MXNetError(f"{type(block).__name__}: a call with symbols takes symbols of one output only")
    likes = _known(symbol.Group(given))
    like: Any = block.__dict__.get("_called_with")
    if likes is not None:
        like = tuple(likes[: len(args)]), dict(zip(kwargs, likes[len(args) :], strict=True))
    if like is None:
        raise MXNetError(
            f"{type(block).__name__}: the shapes of the symbols are not known\n"
            "hint: give the variables a shape, or hybridize the block and call it with arrays first"
        )
    found = _converted(block, like)
    names = ["data"] if len(given) == 1 else [f"data{i}" for i in range(len(given))]
    graph = symbol.Symbol(found.heads)
    used = graph.list_inputs()
    made = graph(**{name: each for name, each in zip(names, given, strict=True) if name in used})
    made = made if type(given[0]) is symbol.Symbol else made.as_np_ndarray()
    return made if len(made) == 1 else list(made)


def _known(graph: Any) -> list[_Like] | None:
    """What arrays in the place of the outputs would be like; None where a shape is not known."""
    from mxnp import current_device

    _, shapes, _ = graph.infer_shape_partial()
    _, types, _ = graph.infer_type_partial()
    if not all(shape is not None and all(size > 0 for size in shape) for shape in shapes):
        return None
    pairs = zip(shapes, types, strict=True)
    return [_Like(tuple(shape), dtype or "float32", current_device()) for shape, dtype in pairs]


def export(block: Any, path: str | os.PathLike[str], epoch: int, remove_amp_cast: bool) -> tuple[str, str]:
    """See `HybridBlock.export`."""
    from mxnp.symbol import Symbol

    found = graph_of(block)
    return write(Symbol(found.heads), found.arguments, found.states, path, epoch, remove_amp_cast)


def write(
    graph: Any,
    arguments: dict[str, Any],
    states: dict[str, Any],
    path: str | os.PathLike[str],
    epoch: int,
    remove_amp_cast: bool,
) -> tuple[str, str]:
    """Write the two files, each as a whole, and give their names."""
    prefix = os.fspath(path)
    names = f"{prefix}-symbol.json", f"{prefix}-{epoch:04d}.params"
    arrays = {f"arg:{name}": array for name, array in arguments.items()}
    arrays.update({f"aux:{name}": array for name, array in states.items()})
    graph.save(names[0], remove_amp_cast)
    save_arrays(names[1], arrays)
    return names
