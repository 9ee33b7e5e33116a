"""Branches and loops in a trace that will be written to a file: their functions become graphs of their own.

Each function is traced by itself, once, on zeros in the place of its arguments. One call `held` is noted for the
whole, which takes the arguments and what the functions use from outside. Knows no file format.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from .. import _core
from .._core import ndarray
from .._ops.create import array, zeros
from ..error import MXNetError, MXNetValueError
from ._trees import arguments, leaves, like

Row = dict[str, Any]  # of `_core.Graph.nodes`


@dataclass
class Function:
    """A traced function: its nodes and heads, and by number of a node which operand of the call it stands for."""

    nodes: list[Row]
    heads: list[tuple[int, int]]
    operands: dict[int, int] = field(default_factory=dict)


@dataclass
class HeldCall:
    """What a noted call `held` stands for: `kind` is the name in `npx`; the operands begin with `counts` arrays.

    `counts`: how many are slices and states of `foreach`, loop variables, or inputs of `cond`; `length` is the most
    steps of `while_loop`; `outputs` is how many of the results are outputs of a step.
    """

    kind: str
    functions: list[Function]
    counts: tuple[int, ...]
    outputs: int
    length: int = 0


class _State(threading.local):
    """The calls noted for the file that this thread makes; None while it makes none."""

    calls: list[HeldCall] | None = None


_state = _State()


@contextmanager
def holding() -> Iterator[None]:
    """Within it, traced branches and loops of this thread are noted as calls `held`."""
    before, _state.calls = _state.calls, []
    try:
        yield
    finally:
        _state.calls = before


def is_on() -> bool:
    """Whether a branch or loop is to be noted as one call now."""
    return _state.calls is not None and _core.is_tracing()


def graph_of(compiled: _core.Compiled, refused: str) -> tuple[list[Row], list[tuple[int, int]]]:
    """Nodes and heads of the graph that was traced, with what its calls `held` stand for under `held`.

    Raises: MXNetValueError that begins with `refused`, where the trace gave none.
    """
    graphs = compiled.graphs()
    if not graphs:
        reasons = "; ".join(compiled.reasons()) or "it is no graph"
        raise MXNetValueError(f"{refused}: {reasons}")
    nodes, heads = graphs[0].nodes()
    for row in nodes:
        if row["kind"] == "call" and row["name"] == "held":
            assert _state.calls is not None
            row["held"] = _state.calls[int(row["attrs"]["number"])]
    return nodes, heads


def foreach(
    body: Callable[[Any, Any], tuple[Any, Any]], data: Any, init_states: Any
) -> tuple[Any, Any] | None:
    """As `npx.foreach`, whose arguments were checked; None where the steps differ, since a state changes its form."""
    arrays, states = list(leaves(data)), list(leaves(init_states))
    shown: list[Any] = []

    def run(given: list[ndarray]) -> tuple[list[Any], list[Any]]:
        own = iter(given)
        outputs, new = body(like(data, own), like(init_states, own))
        shown.extend((outputs, new))
        return list(leaves(outputs)), list(leaves(new))

    slices = [_Like(x.shape[1:], x.dtype, x.device) for x in arrays]
    function, (outputs, new) = _traced("foreach", run, [*slices, *map(_Like.of, states)])
    if [x.form for x in new] != [_Like.of(x).form for x in states]:
        return None
    length = arrays[0].shape[0]
    held = HeldCall("foreach", [function], (len(arrays), len(states)), len(outputs))
    made = _noted(held, [*arrays, *states], [*(x.stacked(length) for x in outputs), *new])
    return like(shown[0], made), like(shown[1], made)


def while_loop(
    cond: Callable[..., Any], func: Callable[..., tuple[Any, Any]], loop_vars: Any, max_iterations: int
) -> tuple[Any, Any]:
    """As `npx.while_loop`, whose arguments were checked."""
    variables = list(leaves(loop_vars))
    if not variables:
        raise MXNetError("while_loop: a loop without variables cannot be written to a file")
    shown: list[Any] = []

    def holds(given: list[ndarray]) -> tuple[list[Any], list[Any]]:
        return [cond(*arguments(like(loop_vars, iter(given))))], []

    def step(given: list[ndarray]) -> tuple[list[Any], list[Any]]:
        outputs, new = func(*arguments(like(loop_vars, iter(given))))
        shown.append(outputs)
        return list(leaves(outputs)), list(leaves(new))

    likes = [_Like.of(x) for x in variables]
    first, ((condition,), _) = _traced("while_loop", holds, likes)
    _check_condition("while_loop", condition)
    second, (outputs, new) = _traced("while_loop", step, likes)
    _check_variables(new, variables)
    held = HeldCall("while_loop", [first, second], (len(variables),), len(outputs), max_iterations)
    made = _noted(held, variables, [*(x.stacked(max_iterations) for x in outputs), *new])
    return like(shown[0], made), like(loop_vars, made)


def cond(pred: Any, then_func: Callable[..., Any], else_func: Callable[..., Any], inputs: Any) -> Any:
    """As `npx.cond`, for a condition that is an array or a function."""
    arrays = list(leaves(inputs))
    shown: list[Any] = []

    def chosen(given: list[ndarray]) -> tuple[list[Any], list[Any]]:
        return [pred(*arguments(like(inputs, iter(given)))) if callable(pred) else pred], []

    def side(function: Callable[..., Any]) -> Callable[[list[ndarray]], tuple[list[Any], list[Any]]]:
        def run(given: list[ndarray]) -> tuple[list[Any], list[Any]]:
            shown.append(function(*arguments(like(inputs, iter(given)))))
            return list(leaves(shown[-1])), []

        return run

    likes = [_Like.of(x) for x in arrays]
    first, ((condition,), _) = _traced("cond", chosen, likes)
    _check_condition("cond", condition)
    second, (then, _) = _traced("cond", side(then_func), likes)
    third, (other, _) = _traced("cond", side(else_func), likes)
    if [x.form for x in then] != [x.form for x in other]:
        raise MXNetValueError(
            f"cond: a file wants results alike, but then_func gives {_texts(then)} and else_func {_texts(other)}"
        )
    made = _noted(HeldCall("cond", [first, second, third], (len(arrays),), len(then)), arrays, then)
    return like(shown[0], made)


@dataclass(frozen=True)
class _Like:
    """An array's shape, dtype and device."""

    shape: tuple[int, ...]
    dtype: Any
    device: Any

    @staticmethod
    def of(x: ndarray) -> _Like:
        return _Like(x.shape, x.dtype, x.device)

    @property
    def form(self) -> tuple[Any, ...]:
        return self.shape, self.dtype

    def stacked(self, length: int) -> _Like:
        return _Like((length, *self.shape), self.dtype, self.device)

    def zeros(self) -> ndarray:
        return zeros(self.shape, self.dtype, device=self.device)


def _texts(found: Sequence[_Like]) -> str:
    return ", ".join(f"{x.dtype}{list(x.shape)}" for x in found) or "nothing"


def _check_variables(new: Sequence[_Like], old: Sequence[ndarray]) -> None:
    if len(new) != len(old):
        raise MXNetValueError(f"while_loop: expected {len(old)} new loop variables, got {len(new)}")
    for after, before in zip(new, map(_Like.of, old), strict=True):
        if after.form != before.form:
            raise MXNetValueError(
                f"while_loop: in a file a loop variable keeps its shape and dtype, but {_texts([before])} becomes "
                f"{_texts([after])} in the first step\nhint: start from an array of that shape and dtype"
            )


def _check_condition(name: str, found: _Like) -> None:
    if any(size != 1 for size in found.shape):
        raise MXNetValueError(f"{name}: the condition must be one element, got shape {found.shape}")


def _traced(
    name: str, function: Callable[[list[ndarray]], tuple[list[Any], list[Any]]], given: Sequence[_Like]
) -> tuple[Function, tuple[list[_Like], list[_Like]]]:
    """The graph of a function of arrays like these, and what its two lists of results are like."""
    compiled = _core.Compiled()
    before = _core.set_trace_paused(True)
    try:
        tracing, (stand_ins,), _ = compiled.begin(([x.zeros() for x in given],), {})
        try:
            results = function(list(stand_ins))
            # An argument that is passed on is no result of the graph, and an array given twice is one; copies are.
            taken = {id(x) for x in stand_ins}
            made = [[_result(x, taken) for x in part] for part in results]
            tracing.finish([*made[0], *made[1]], [], [])
        finally:
            tracing.abandon()
    finally:
        _core.set_trace_paused(before)
    nodes, heads = graph_of(compiled, f"{name}: a function of it cannot be written to a file")
    first, second = ([_Like.of(x) for x in part] for part in made)
    return Function(nodes, heads), (first, second)


def _result(value: Any, taken: set[int]) -> ndarray:
    if not isinstance(value, ndarray):
        return array(value)
    if id(value) in taken:
        return value.copy()
    taken.add(id(value))
    return value


def _noted(held: HeldCall, operands: Sequence[ndarray], results: Sequence[_Like]) -> Iterator[ndarray]:
    """Note the call; its results."""
    calls, inputs = _state.calls, list(operands)
    assert calls is not None
    for function in held.functions:
        for number, row in enumerate(function.nodes):
            if row["kind"] == "captured":
                function.operands[number] = len(inputs)
                inputs.append(row.pop("value"))
    before = _core.set_trace_paused(True)
    try:
        made = [x.zeros() for x in results]
    finally:
        _core.set_trace_paused(before)
    calls.append(held)
    _core.note_held(len(calls) - 1, inputs, made)
    return iter(made)
