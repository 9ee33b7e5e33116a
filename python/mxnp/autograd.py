"""Recording of gradients: scopes, backward, grad and functions with a gradient of one's own.

What is recorded, and how it runs backward, is the core's.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from . import _core
from ._core import is_recording, is_training, ndarray, set_recording, set_training
from .error import MXNetError, MXNetTypeError, MXNetValueError

_FULL = _core.op("full")

__all__ = [
    "Function",
    "backward",
    "get_symbol",
    "grad",
    "is_recording",
    "is_training",
    "mark_variables",
    "pause",
    "predict_mode",
    "record",
    "set_recording",
    "set_training",
    "train_mode",
]


class _Scope:
    """A with-block in which recording, training or both are set for this thread, and put back after it."""

    __slots__ = ("_before", "_recording", "_training")

    def __init__(self, recording: bool | None, training: bool | None) -> None:
        self._recording, self._training = recording, training
        self._before: list[tuple[bool | None, bool | None]] = []

    def __enter__(self) -> _Scope:
        recording = None if self._recording is None else set_recording(self._recording)
        training = None if self._training is None else set_training(self._training)
        self._before.append((recording, training))
        return self

    def __exit__(self, *error: object) -> None:
        recording, training = self._before.pop()
        if recording is not None:
            set_recording(recording)
        if training is not None:
            set_training(training)


def record(train_mode: bool = True) -> _Scope:
    """A with-block whose calculations are recorded, in training mode unless `train_mode` is False.

    >>> x = np.array([1, 2]); x.attach_grad()
    >>> with autograd.record():
    ...     y = x * x
    >>> y.backward(); x.grad
    array([2., 4.])
    """
    return _Scope(True, bool(train_mode))


def pause(train_mode: bool = False) -> _Scope:
    """A with-block whose calculations are not recorded, in prediction mode unless `train_mode` is True.

    >>> with autograd.record():
    ...     with autograd.pause():
    ...         autograd.is_recording()
    False
    """
    return _Scope(False, bool(train_mode))


def train_mode() -> _Scope:
    """A with-block in training mode; recording stays as it is.

    >>> with autograd.train_mode():
    ...     autograd.is_training()
    True
    """
    return _Scope(None, True)


def predict_mode() -> _Scope:
    """A with-block in prediction mode; recording stays as it is.

    >>> with autograd.record(), autograd.predict_mode():
    ...     autograd.is_training()
    False
    """
    return _Scope(None, False)


def _arrays(name: str, value: Any) -> list[ndarray]:
    arrays = [value] if isinstance(value, ndarray) else list(value)
    for array in arrays:
        if not isinstance(array, ndarray):
            raise MXNetTypeError(f"{name}: expected arrays, got {type(array).__name__}")
    return arrays


def _head_grads(name: str, heads: list[ndarray], value: Any) -> list[ndarray | None] | None:
    if value is None:
        return None
    grads = [value] if isinstance(value, ndarray) else list(value)
    if len(grads) != len(heads):
        raise MXNetValueError(f"{name}: {len(heads)} heads, but {len(grads)} head gradients")
    return grads


def mark_variables(variables: Any, gradients: Any, grad_reqs: str | Sequence[str] = "write") -> None:
    """Makes `gradients` the arrays that backward fills for `variables`, each by its grad_req ('write', 'add', 'null').

    >>> x, g = np.array([3.0]), np.zeros(1)
    >>> autograd.mark_variables(x, g)
    >>> with autograd.record():
    ...     y = x * x
    >>> y.backward(); g
    array([6.])
    """
    _core.mark_variables(
        _arrays("mark_variables", variables), _arrays("mark_variables", gradients), grad_reqs
    )


def backward(heads: Any, head_grads: Any = None, retain_graph: bool = False, train_mode: bool = True) -> None:
    """Fills the gradients of everything that `heads` were recorded from.

    `head_grads`: the gradient of each head (None: ones). Raises MXNetError where a head has no history, or where the
    graph was used up by an earlier backward without `retain_graph`.

    >>> x = np.array([1, 2]); x.attach_grad()
    >>> with autograd.record():
    ...     y = 3 * x
    >>> autograd.backward([y]); x.grad
    array([3., 3.])
    """
    arrays = _arrays("backward", heads)
    _core.backward(arrays, _head_grads("backward", arrays, head_grads), retain_graph, train_mode)


def grad(
    heads: Any,
    variables: Any,
    head_grads: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    train_mode: bool = True,
) -> list[ndarray]:
    """The gradients of `heads` for `variables`, a list; nothing attached changes.

    With `create_graph` they are recorded themselves, for gradients of gradients.

    >>> x = np.array([2.0]); x.attach_grad()
    >>> with autograd.record():
    ...     y = x * x * x
    ...     slope = autograd.grad(y, x, create_graph=True)[0]
    >>> slope.backward(); x.grad
    array([12.])
    """
    arrays = _arrays("grad", heads)
    wanted = _arrays("grad", variables)
    if not wanted:
        raise MXNetValueError("grad: variables cannot be an empty list.")
    return _core.grad(
        arrays, wanted, _head_grads("grad", arrays, head_grads), retain_graph, create_graph, train_mode
    )


def get_symbol(x: ndarray) -> Any:
    """The recorded history of `x` as a Symbol; what it starts from are the variables `var0`, `var1`, ...

    Raises MXNetError where the tape does not hold the history: `x` was not recorded, a backward has used it up, or it
    goes through an operation without a gradient or a Function.

    >>> x = np.array([1, 2]); x.attach_grad()
    >>> with autograd.record():
    ...     y = (x * x + 1).sum()
    >>> autograd.get_symbol(y).eval(var0=np.array([3, 4]))
    [array(27.)]
    """
    from .symbol import Symbol, _trace

    nodes, heads = _core.history(*_arrays("get_symbol", [x]))
    return Symbol(_trace.convert(nodes, heads, None, {}, "var").heads)


class Function:
    """A calculation whose gradient the user writes: `forward(*inputs)` and `backward(*gradients of the outputs)`.

    Both work on arrays and are not recorded. One instance makes one call. The tape keeps what the instance holds when
    `forward` returns, and the instance itself only while the program does: one that holds its own results afterwards
    is freed with them.

    >>> class Sigmoid(autograd.Function):
    ...     def forward(self, x):
    ...         y = 1 / (1 + np.exp(-x))
    ...         self.save_for_backward(y)
    ...         return y
    ...     def backward(self, dy):
    ...         (y,) = self.saved_tensors
    ...         return dy * y * (1 - y)
    >>> x = np.array([0.0]); x.attach_grad()
    >>> with autograd.record():
    ...     y = Sigmoid()(x)
    >>> y.backward(); x.grad
    array([0.25])
    """

    def __init__(self) -> None:
        self._used = False
        self.saved_tensors: tuple = ()

    def save_for_backward(self, *args: Any) -> None:
        """Keeps `args` as `self.saved_tensors`."""
        self.saved_tensors = args

    def __call__(self, *inputs: Any) -> Any:
        """`forward` on the inputs; recorded as one calculation where recording is on."""
        if getattr(self, "_used", False):
            raise MXNetError(
                f"{type(self).__name__}: each Function instance can only be called once\n"
                "hint: create another instance"
            )
        self._used = True
        _core.end_trace("calls a function with a gradient of its own")
        recording = set_recording(False)
        try:
            outputs = self.forward(*inputs)
        finally:
            set_recording(recording)
        if not recording:
            return outputs
        several = isinstance(outputs, (tuple, list))
        results = [x.detach() for x in _arrays(type(self).__name__, outputs)]
        arrays = [x for x in inputs if isinstance(x, ndarray)]
        _core.record_custom(arrays, results, _Rule(self, arrays, results))
        return (tuple(results) if isinstance(outputs, tuple) else results) if several else results[0]

    def forward(self, *inputs: Any) -> Any:
        """The calculation: to be written by the subclass."""
        raise NotImplementedError(f"{type(self).__name__}.forward is not written")

    def backward(self, *output_grads: ndarray) -> Any:
        """The gradients of the inputs from those of the outputs: to be written by the subclass."""
        raise NotImplementedError(f"{type(self).__name__}.backward is not written")


class _Rule:
    """What the core calls on the way back: the user's backward with its results checked.

    The tape owns the rule, and a result owns the tape: a rule that owned the Function would keep one that holds its
    results alive for ever. So it has what the instance held at the call, and the instance by a weak reference.
    """

    def __init__(self, function: Function, inputs: list[ndarray], outputs: list[ndarray]) -> None:
        self.instance = weakref.ref(function)
        self.kind = type(function)
        self.state = dict(vars(function))
        self.inputs = [(x.shape, x.dtype) for x in inputs]
        self.outputs = [(y.shape, y.dtype, y.device) for y in outputs]

    def __call__(self, grads: list[ndarray | None]) -> list[ndarray | None]:
        found = self._function().backward(*(self._given(i, g) for i, g in enumerate(grads)))
        results = list(found) if isinstance(found, (tuple, list)) else [found]
        name = self.kind.__name__
        if len(results) != len(self.inputs):
            raise MXNetValueError(
                f"{name}.backward must return {len(self.inputs)} gradients, one for each input, got {len(results)}"
            )
        return [self._checked(i, result) for i, result in enumerate(results)]

    def _function(self) -> Function:
        function = self.instance()
        if function is None:
            function = self.kind.__new__(self.kind)
            vars(function).update(self.state)
        return function

    def _checked(self, i: int, result: Any) -> ndarray | None:
        if result is None:
            return None
        name, (shape, dtype) = self.kind.__name__, self.inputs[i]
        if not isinstance(result, ndarray):
            raise MXNetTypeError(
                f"{name}.backward: gradient {i} must be an array or None, got {type(result).__name__}"
            )
        if result.shape != shape:
            raise MXNetValueError(
                f"{name}.backward: gradient {i} has shape {result.shape}, the input has {shape}"
            )
        return result if result.dtype == dtype else result.astype(dtype)

    def _given(self, i: int, g: ndarray | None) -> ndarray:
        if g is not None:
            return g
        shape, dtype, device = self.outputs[i]
        return _FULL(0, shape=shape, dtype=dtype, device=device)
