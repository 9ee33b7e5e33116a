"""Loops and branches, whose nodes hold graphs of their own: MXNet's `_foreach`, `_while_loop` and `_cond`.

Their attributes say which input of the node each argument of a graph is. MXNet 2 leaves them out for its own `npx`
functions, and such files are refused, as MXNet 2 does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mxnp import npx
from mxnp.error import MXNetError

from .._spec import Attrs, row
from .shape import parts

# A graph that a node holds, as a function: from the arrays of its variables to the list of its outputs.
HeldGraph = Callable[..., list[Any]]


def _outputs(attrs: Attrs, count: int) -> tuple[str, ...]:
    return parts(attrs["num_outputs"])


def _check(name: str, locations: Sequence[int], count: int, what: str) -> None:
    if any(not 0 <= at < count for at in locations):
        raise MXNetError(f"{name}: the places {tuple(locations)} must be of the {count} {what}")


def _split(
    name: str, results: list[Any], num_outputs: int, num_out_data: int, states: int
) -> tuple[list[Any], list[Any]]:
    """What a body gives: the outputs of a step, and the new states."""
    if len(results) != num_outputs or num_out_data < 0 or num_out_data + states != num_outputs:
        raise MXNetError(
            f"{name}: the body gives {len(results)} arrays; expected num_outputs={num_outputs}, of which "
            f"num_out_data={num_out_data} are outputs of a step and {states} are states"
        )
    return results[:num_out_data], results[num_out_data:]


def _foreach(
    *inputs: Any,
    graphs: Sequence[HeldGraph],
    num_outputs: int,
    num_out_data: int,
    in_data_locs: tuple[int, ...],
    in_state_locs: tuple[int, ...],
    remain_locs: tuple[int, ...],
) -> tuple[Any, ...]:
    places = (*in_data_locs, *in_state_locs, *remain_locs)
    if sorted(places) != list(range(len(inputs))):
        raise MXNetError(f"_foreach: the places {places} do not say where the {len(inputs)} inputs go")
    first, second = len(in_data_locs), len(in_data_locs) + len(in_state_locs)

    def body(slices: list[Any], states: list[Any]) -> tuple[list[Any], list[Any]]:
        given = dict(zip(places, (*slices, *states, *inputs[second:]), strict=True))
        results = graphs[0](*(given[i] for i in range(len(given))))
        return _split("_foreach", results, num_outputs, num_out_data, len(in_state_locs))

    outputs, states = npx.foreach(body, list(inputs[:first]), list(inputs[first:second]))
    return (*outputs, *states)


def _while_loop(
    *inputs: Any,
    graphs: Sequence[HeldGraph],
    num_outputs: int,
    num_out_data: int,
    max_iterations: int,
    cond_input_locs: tuple[int, ...],
    func_input_locs: tuple[int, ...],
    func_var_locs: tuple[int, ...],
) -> tuple[Any, ...]:
    _check("_while_loop", (*cond_input_locs, *func_input_locs), len(inputs), "inputs")
    _check("_while_loop", func_var_locs, len(func_input_locs), "arguments of the loop's body")
    variables = [func_input_locs[at] for at in func_var_locs]

    def arguments(places: tuple[int, ...], values: tuple[Any, ...]) -> list[Any]:
        now = {**dict(enumerate(inputs)), **dict(zip(variables, values, strict=True))}
        return [now[at] for at in places]

    def holds(*values: Any) -> Any:
        return graphs[0](*arguments(cond_input_locs, values))[0]

    def step(*values: Any) -> tuple[list[Any], list[Any]]:
        results = graphs[1](*arguments(func_input_locs, values))
        return _split("_while_loop", results, num_outputs, num_out_data, len(variables))

    outputs, last = npx.while_loop(holds, step, [inputs[at] for at in variables], max_iterations)
    return (*outputs, *last)


def _cond(
    *inputs: Any,
    graphs: Sequence[HeldGraph],
    num_outputs: int,
    cond_input_locs: tuple[int, ...],
    then_input_locs: tuple[int, ...],
    else_input_locs: tuple[int, ...],
) -> tuple[Any, ...]:
    _check("_cond", (*cond_input_locs, *then_input_locs, *else_input_locs), len(inputs), "inputs")
    holds, then, other = (
        lambda *given, graph=graph, places=places: graph(*(given[at] for at in places))
        for graph, places in zip(graphs, (cond_input_locs, then_input_locs, else_input_locs), strict=True)
    )
    return tuple(npx.cond(lambda *given: holds(*given)[0], then, other, list(inputs)))


def add_rows() -> None:
    """The operators of this family."""
    row(
        "_foreach _npx_foreach",
        "*data",
        "num_outputs:int num_out_data:int in_data_locs:shape in_state_locs:shape remain_locs:shape",
        _foreach,
        outputs=_outputs,
        graphs=1,
    )
    row(
        "_while_loop _npx_while_loop",
        "*data",
        "num_outputs:int num_out_data:int max_iterations:int cond_input_locs:shape func_input_locs:shape "
        "func_var_locs:shape",
        _while_loop,
        outputs=_outputs,
        graphs=2,
    )
    row(
        "_cond _npx_cond",
        "*data",
        "num_outputs:int cond_input_locs:shape then_input_locs:shape else_input_locs:shape",
        _cond,
        outputs=_outputs,
        graphs=3,
    )
