"""Loops and branches as functions: Python's own in eager code, and part of the graph in a compiled block.

A compiled block unrolls `foreach`. A condition on data makes a graph of its own for each way it has gone, so that
`cond` and `while_loop` replay without Python too; with too many ways the block runs in Python. In a file they are nodes
that hold graphs (`_held.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import autograd
from .._core import decide, ndarray
from .._ops.create import zeros
from .._ops.join import concatenate, stack
from ..error import MXNetValueError
from . import _held
from ._trees import arguments, leaves, like


def _holds(condition: Any) -> bool:
    return decide(condition) if isinstance(condition, ndarray) else bool(condition)


def foreach(body: Callable[[Any, Any], tuple[Any, Any]], data: Any, init_states: Any) -> tuple[Any, Any]:
    """`body(slice, states) -> (output, states)` for each slice of `data` along axis 0; stacked outputs and last states.

    `data`, states and outputs are arrays or nested lists of them. Without slices, `body` runs once on zeros for the
    outputs' shapes, and the states stay.

    >>> total = lambda x, s: (x + s, x + s)
    >>> npx.foreach(total, np.array([1, 2, 3]), np.array(0))
    (array([1., 3., 6.]), array(6.))
    """
    arrays = list(leaves(data))
    if not arrays:
        raise MXNetValueError("foreach: expected data")
    lengths = {x.shape[:1] for x in arrays}
    if len(lengths) > 1 or lengths == {()}:
        raise MXNetValueError(
            f"foreach: expected arrays of one length along axis 0, got shapes {[x.shape for x in arrays]}"
        )
    held = _held.foreach(body, data, init_states) if _held.is_on() else None
    if held is not None:
        return held
    states, outputs = init_states, []
    for i in range(arrays[0].shape[0]):
        output, states = body(like(data, iter([x[i] for x in arrays])), states)
        outputs.append(output)
    if not outputs:
        slices = [zeros(x.shape[1:], x.dtype, device=x.device) for x in arrays]
        with autograd.pause(autograd.is_training()):
            shapes, _ = body(like(data, iter(slices)), states)
        return _empty(shapes, 0), states
    return _stacked("foreach", outputs), states


def while_loop(
    cond: Callable[..., Any],
    func: Callable[..., tuple[Any, Any]],
    loop_vars: Any,
    max_iterations: int | None = None,
) -> tuple[Any, Any]:
    """`func(*vars) -> (outputs of a step, vars)` while `cond(*vars)` holds; the stacked outputs and last variables.

    The stacks have `max_iterations` entries: zeros follow the last step. Each condition is waited for. Where there is
    no step, `func` runs once for the outputs' shapes.

    >>> step = lambda i: (i, i + 1)
    >>> npx.while_loop(lambda i: i < 2, step, np.array(0), max_iterations=3)
    (array([0., 1., 0.]), array(2.))
    """
    if max_iterations is None or max_iterations < 0:
        raise MXNetValueError("while_loop: max_iterations should be specified, at least 0")
    if _held.is_on():
        return _held.while_loop(cond, func, loop_vars, max_iterations)
    variables: Any = loop_vars
    outputs: list[Any] = []
    while len(outputs) < max_iterations and _holds(cond(*arguments(variables))):
        output, new = func(*arguments(variables))
        outputs.append(output)
        arrays, wanted = list(leaves(new)), len(list(leaves(loop_vars)))
        if len(arrays) != wanted:
            raise MXNetValueError(f"while_loop: expected {wanted} new loop variables, got {len(arrays)}")
        variables = like(loop_vars, iter(arrays))
    if not outputs:
        with autograd.pause(autograd.is_training()):
            shapes, _ = func(*arguments(variables))
        return _empty(shapes, max_iterations), variables
    return _stacked("while_loop", outputs, max_iterations), variables


def _stacked(name: str, outputs: list[Any], length: int | None = None) -> Any:
    """The steps' outputs stacked, with zeros up to `length`."""
    steps = [list(leaves(output)) for output in outputs]
    counts = sorted({len(step) for step in steps})
    if len(counts) > 1:
        raise MXNetValueError(f"{name}: each step must give the same number of outputs, got {counts}")
    return like(outputs[0], iter([_padded(stack(arrays), length) for arrays in zip(*steps, strict=True)]))


def _padded(steps: ndarray, length: int | None) -> ndarray:
    missing = 0 if length is None else length - steps.shape[0]
    if not missing:
        return steps
    return concatenate((steps, zeros((missing, *steps.shape[1:]), steps.dtype, device=steps.device)))


def _empty(shapes: Any, length: int) -> Any:
    """Zeros for the outputs of a step, `length` of each."""
    arrays = [zeros((length, *x.shape), x.dtype, device=x.device) for x in leaves(shapes)]
    return like(shapes, iter(arrays))


def cond(
    pred: Any, then_func: Callable[..., Any], else_func: Callable[..., Any], inputs: Any, name: str = "cond"
) -> Any:
    """`then_func(*inputs)` where `pred` (a value, or a function of the inputs) is true, else `else_func(*inputs)`.

    >>> npx.cond(lambda x: x > 0, lambda x: x * 2, lambda x: -x, np.array(3))
    array(6.)
    """
    if _held.is_on() and (isinstance(pred, ndarray) or callable(pred)):
        return _held.cond(pred, then_func, else_func, inputs)
    arrays = arguments(inputs)
    chosen = pred(*arrays) if callable(pred) else pred
    return then_func(*arrays) if _holds(chosen) else else_func(*arrays)
