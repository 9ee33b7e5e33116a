"""Loops and branches as functions: in eager code they are Python's own, and gradients go through them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core import ndarray
from .._ops.create import zeros
from .._ops.join import concatenate, stack
from ..error import MXNetTypeError, MXNetValueError


def _list(value: Any) -> tuple[list, bool]:
    """The arrays of a value, and whether it was one array alone."""
    if isinstance(value, ndarray):
        return [value], True
    if value is None:
        return [], False
    if not isinstance(value, (list, tuple)):
        raise MXNetTypeError(f"expected an array or a list of arrays, got {type(value).__name__}")
    return list(value), False


def foreach(body: Callable[[Any, Any], tuple[Any, Any]], data: Any, init_states: Any) -> tuple[Any, Any]:
    """`body(slice, states) -> (output, states)` for each slice of `data` along axis 0; stacked outputs and last states.

    >>> total = lambda x, s: (x + s, x + s)
    >>> npx.foreach(total, np.array([1, 2, 3]), np.array(0))
    (array([1., 3., 6.]), array(6.))
    """
    arrays, alone = _list(data)
    if not arrays:
        raise MXNetValueError("foreach: expected data")
    states, collected, one = init_states, [], True
    for i in range(arrays[0].shape[0]):
        output, states = body(arrays[0][i] if alone else [x[i] for x in arrays], states)
        parts, one = _list(output)
        collected.append(parts)
    outputs = [stack(steps) for steps in zip(*collected, strict=True)]
    return (outputs[0] if one and outputs else outputs), states


def while_loop(
    cond: Callable[..., Any],
    func: Callable[..., tuple[Any, Any]],
    loop_vars: Any,
    max_iterations: int | None = None,
) -> tuple[Any, Any]:
    """`func(*vars) -> (outputs of a step, vars)` while `cond(*vars)` holds; the stacked outputs and last variables.

    The stacks have `max_iterations` entries: zeros follow the last step. Each condition is waited for.

    >>> step = lambda i: (i, i + 1)
    >>> npx.while_loop(lambda i: i < 2, step, np.array(0), max_iterations=3)
    (array([0., 1., 0.]), array(2.))
    """
    if max_iterations is None or max_iterations < 0:
        raise MXNetValueError("while_loop: max_iterations should be specified, at least 0")
    variables, alone = _list(loop_vars)
    collected: list[list[ndarray]] = []
    one = False
    while len(collected) < max_iterations and bool(cond(*variables)):
        output, new = func(*variables)
        parts, one = _list(output)
        collected.append(parts)
        variables, _ = _list(new)
    outputs = [_padded(stack(steps), max_iterations) for steps in zip(*collected, strict=True)]
    return (outputs[0] if one and outputs else outputs), (variables[0] if alone else variables)


def _padded(steps: ndarray, length: int) -> ndarray:
    missing = length - steps.shape[0]
    if not missing:
        return steps
    return concatenate((steps, zeros((missing, *steps.shape[1:]), steps.dtype, device=steps.device)))


def cond(
    pred: Any, then_func: Callable[..., Any], else_func: Callable[..., Any], inputs: Any, name: str = "cond"
) -> Any:
    """`then_func(*inputs)` where `pred` (a value, or a function of the inputs) is true, else `else_func(*inputs)`.

    >>> npx.cond(lambda x: x > 0, lambda x: x * 2, lambda x: -x, np.array(3))
    array(6.)
    """
    arrays, _ = _list(inputs)
    chosen = pred(*arrays) if callable(pred) else pred
    return then_func(*arrays) if bool(chosen) else else_func(*arrays)
