"""From a traced call `held` to MXNet's `_foreach`, `_while_loop` and `_cond`: its functions become graphs that the node
holds, by the functions that make such nodes of symbols (`_control.py`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from . import _control
from ._operators import apply
from .symbol import Symbol

if TYPE_CHECKING:
    from mxnp.npx._held import Function, HeldCall

    from ._trace import Traced, _Converter


def held(outer: _Converter, index: int, node: Traced) -> list[Symbol]:
    """The results of the call, each a symbol."""
    ours: HeldCall = node["held"]
    other: HeldCall = outer.other[index]["held"]
    operands = [Symbol([outer.entry(key)]) for key in node["inputs"]]
    functions = [
        _function(outer, operands, first, second)
        for first, second in zip(ours.functions, other.functions, strict=True)
    ]
    if ours.kind != "foreach":
        functions[0] = _as_number(functions[0])
    count = ours.counts[0]
    if ours.kind == "foreach":
        data, states = operands[:count], operands[count : sum(ours.counts)]

        def body(slices: list[Symbol], now: list[Symbol]) -> tuple[list[Symbol], list[Symbol]]:
            results = functions[0](*slices, *now)
            return results[: ours.outputs], results[ours.outputs :]

        outputs, last = _control.foreach(body, data, states, keep_unused=True)
        return [*outputs, *last]
    if ours.kind == "while_loop":

        def step(*now: Symbol) -> tuple[list[Symbol], list[Symbol]]:
            results = functions[1](*now)
            return results[: ours.outputs], results[ours.outputs :]

        outputs, last = _control.while_loop(
            functions[0], step, operands[:count], ours.length, keep_unused=True
        )
        return [*outputs, *last]
    given = operands[:count]
    condition, then, otherwise = (lambda function=function: function(*given) for function in functions)
    return list(_control.cond(condition, then, otherwise))


def _function(
    outer: _Converter, operands: list[Symbol], first: Function, second: Function
) -> Callable[..., list[Symbol]]:
    """A traced function as a function of symbols; `second` is that of the other trace."""

    def run(*given: Symbol) -> list[Symbol]:
        inner = outer.within(first.nodes, second.nodes)
        arguments = iter(given)
        for number, row in enumerate(first.nodes):
            if row["kind"] == "argument":
                inner.entries[number, 0] = next(arguments)._entries[0]
            elif number in first.operands:
                inner.entries[number, 0] = operands[first.operands[number]]._entries[0]
        return [Symbol([entry]) for entry in inner.convert(first.heads)]

    return run


def _as_number(condition: Callable[..., list[Symbol]]) -> Callable[..., list[Symbol]]:
    """The condition as float32: MXNet's operators do not take a bool there."""
    return lambda *given: [apply("Cast", "condition", *condition(*given), dtype="float32")]


def written(node: Traced) -> list[tuple[int, int]]:
    """The inputs of a call that it, or a function that it holds, updates: running statistics."""
    found = [node["inputs"][place] for place in node["writes"]]
    for function in node["held"].functions if "held" in node else ():
        inside = [key for row in function.nodes if row["kind"] == "call" for key in written(row)]
        found += [
            node["inputs"][function.operands[number]] for number, _ in inside if number in function.operands
        ]
    return found
