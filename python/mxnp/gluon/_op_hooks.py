"""Operator hooks: a block's call, shown operator by operator to a callback.

The call is traced while it runs; then its operators are computed once more, one by one, from the same arguments,
parameters and random numbers, and each result goes to the callback. Knows no layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mxnp import _core, autograd
from mxnp.error import MXNetError

from ._cached_graph import traced

Callback = Callable[[str, str, Any], object]


def observed(block: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of the block's call, after its operators were shown to `block._op_hook`."""
    callback, monitor_all = block._op_hook
    drawn = _core.random_state()
    states = _copies_of_states(block)
    result, nodes = _traced(block, args, kwargs)
    drawn_after = _core.random_state()
    _core.set_random_state(drawn)
    try:
        with autograd.pause(train_mode=autograd.is_training()):
            arguments = {
                id(array): array for array in _arrays((args, kwargs))
            }  # each once, as the graph has them
            _show(nodes, list(arguments.values()), states, callback, monitor_all)
    finally:
        _core.set_random_state(drawn_after)
    return result


def _copies_of_states(block: Any) -> dict[int, Any]:
    """By identity, the arrays that a call may update (running statistics), as they are before it."""
    parameters = block._collect_params_with_prefix().values()
    states = [array for p in parameters if p.grad_req == "null" for array in p._arrays.values()]
    return {id(array): array.copy() for array in states}


def _traced(block: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, list[dict[str, Any]]]:
    """The result, and the nodes of a graph that is made for this call alone."""
    kept, block.__dict__["_compiled"] = block._compiled, _core.Compiled()
    try:
        result = traced(block, block._run_here, args, kwargs)
        graphs, reasons = block._compiled.graphs(), block._compiled.reasons()
    except MXNetError as error:
        error.add_note(f"{type(block).__name__} has an operator hook, for which its calls are traced")
        raise
    finally:
        block.__dict__["_compiled"] = kept
    if not graphs:
        raise MXNetError(
            f"register_op_hook: the operators of {type(block).__name__} cannot be seen: {'; '.join(reasons)}"
        )
    try:
        return result, graphs[0].nodes()[0]
    except ValueError as error:
        raise MXNetError(
            f"register_op_hook: the operators of {type(block).__name__} cannot be seen: {error}"
        ) from None


def _arrays(value: Any) -> Iterator[Any]:
    """The arrays in nested arguments, in order."""
    if isinstance(value, _core.ndarray):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _arrays(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from _arrays(each)


def _show(
    nodes: list[dict[str, Any]],
    arguments: list[Any],
    states: dict[int, Any],
    callback: Callback,
    monitor_all: bool,
) -> None:
    values: list[tuple[Any, ...]] = []
    number = 0
    for node in nodes:
        if node["kind"] == "argument":
            values.append((arguments[int(node["name"].removeprefix("data"))],))
        elif node["kind"] != "call":
            value = node["value"]
            values.append((states.get(id(value), value),))
        else:
            operands = [values[i[0]][i[1]] if isinstance(i, tuple) else i for i in node["inputs"]]
            for place in node["writes"]:  # the call has updated them already: here a copy is
                operands[place] = operands[place].copy()
            label = f"node_{number}"
            if monitor_all:
                for place, operand in enumerate(operands):
                    if isinstance(operand, _core.ndarray):
                        callback(f"{label}_input{place}", node["name"], operand)
            outputs = _computed(node, operands)
            for place, output in enumerate(outputs):
                callback(f"{label}_output{place if len(outputs) > 1 else ''}", node["name"], output)
            values.append(outputs)
            number += 1


def _computed(node: dict[str, Any], operands: list[Any]) -> tuple[Any, ...]:
    """The visible results of a node's operator."""
    if node["name"] == "slice":
        return (operands[0][_basic_index(node["attrs"]["index"])],)
    result = _core.op(node["name"])(*operands, **node["attrs"])
    return result if isinstance(result, tuple) else (result,)


def _basic_index(text: str) -> tuple[Any, ...]:
    """The index that a graph writes as `[start:step:len,number,None,...]`."""
    index: list[Any] = []
    for part in text.strip("[]").split(","):
        numbers = [int(n) for n in part.split(":")] if part not in ("", "None") else []
        if len(numbers) == 3:
            start, step, count = numbers
            stop = start + step * count
            index.append(slice(start, None if stop < 0 else stop, step))
        elif numbers:
            index.append(numbers[0])
        elif part == "None":
            index.append(None)
    return tuple(index)
