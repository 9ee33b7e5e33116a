"""Executors: a Symbol bound to arrays, run forward and backward as 1.x's programs do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _core, autograd, np
from .device import Device
from .error import MXNetError, MXNetTypeError, MXNetValueError

__all__ = ["Executor"]


class Executor:
    """What `Symbol.bind` and `simple_bind` give: arrays for every variable, and `forward` and `backward` over them.

    Parameters
    ----------
    symbol, device : what is computed, and where.
    args : the arguments' arrays by name. args_grad : the arrays their gradients are written to, None for no gradient.
    grad_req : by name, 'write', 'add' or 'null'. aux_states : the auxiliary states' arrays by name.

    >>> x = mx.sym.var("x")
    >>> executor = (x * x).simple_bind(mx.cpu(), x=(2,))
    >>> executor.forward(is_train=True, x=np.array([1, 2]))
    [array([1., 4.])]
    >>> executor.backward(np.ones(2)); executor.grad_dict["x"]
    array([2., 4.])
    """

    def __init__(
        self,
        symbol: Any,
        device: Device,
        args: dict[str, Any],
        args_grad: Mapping[str, Any],
        grad_req: Mapping[str, str],
        aux_states: dict[str, Any],
    ) -> None:
        from .symbol._run import Plan

        self._symbol, self._device = symbol, device
        self._plan = Plan(symbol._entries)
        self._grad_req = dict(grad_req)
        self.arg_dict = args
        self.aux_dict = aux_states
        self.grad_dict: dict[str, Any] = {name: args_grad.get(name) for name in args}
        self._outputs: list[Any] = []
        self._recorded = False
        self._monitor: Callable[[str, Any], None] | None = None

    @property
    def arg_arrays(self) -> list[Any]:
        """The arguments' arrays, in the order of `list_arguments`."""
        return list(self.arg_dict.values())

    @property
    def grad_arrays(self) -> list[Any]:
        """The gradients' arrays, None where there is none."""
        return list(self.grad_dict.values())

    @property
    def aux_arrays(self) -> list[Any]:
        """The auxiliary states' arrays."""
        return list(self.aux_dict.values())

    @property
    def outputs(self) -> list[Any]:
        """The results of the last `forward`."""
        return list(self._outputs)

    @property
    def output_dict(self) -> dict[str, Any]:
        """The results of the last `forward` by name."""
        return dict(zip(self._symbol.list_outputs(), self._outputs, strict=False))

    def forward(self, is_train: bool = False, **kwargs: Any) -> list[Any]:
        """Compute the outputs; keyword arguments are written into the arguments' arrays first.

        With `is_train` dropout and batch statistics are those of training, and `backward` may follow. Raises
        TypeError for a name that is no argument.
        """
        for name, value in kwargs.items():
            self._write(name, value)
        wanted = self._wanted()
        if is_train and wanted:
            autograd.mark_variables(
                [self.arg_dict[name] for name in wanted],
                list(wanted.values()),
                [self._grad_req[name] for name in wanted],
            )
        scope = autograd.record(True) if is_train else autograd.pause(False)
        with scope:
            self._outputs = self._plan.run({**self.arg_dict, **self.aux_dict}, self._monitor)
        self._recorded = bool(is_train)
        return self.outputs

    def _wanted(self) -> dict[str, Any]:
        """The gradients' arrays that backward fills."""
        return {n: g for n, g in self.grad_dict.items() if g is not None and self._grad_req[n] != "null"}

    def _write(self, name: str, value: Any) -> None:
        target = self.arg_dict.get(name)
        if target is None:
            raise MXNetTypeError(
                f"forward: there is no argument '{name}'; there are {', '.join(self.arg_dict)}"
            )
        array = value if isinstance(value, np.ndarray) else np.array(value, dtype=target.dtype)
        if array.shape != target.shape:
            raise MXNetValueError(
                f"forward: argument '{name}' has shape {target.shape}, got {array.shape}\n"
                "hint: reshape(...) gives an executor for other shapes"
            )
        with autograd.pause(autograd.is_training()):
            target[...] = array.to_device(self._device)

    def backward(self, out_grads: Any = None, is_train: bool = True) -> None:
        """Fill `grad_dict` after `forward(is_train=True)`. `out_grads`: the gradients of the outputs, ones if None."""
        if not self._recorded:
            raise MXNetError("backward: call forward(is_train=True) first")
        grads = [out_grads] if isinstance(out_grads, np.ndarray) else out_grads
        if grads is not None and len(grads) != len(self._outputs):
            raise MXNetValueError(f"backward: {len(self._outputs)} outputs, but {len(grads)} gradients")
        pairs = zip(self._outputs, grads or [None] * len(self._outputs), strict=True)
        # An output that no argument reaches has no gradient to give.
        reached = [(output, grad) for output, grad in pairs if _core.has_history(output)]
        written = [name for name in self._wanted() if self._grad_req[name] == "write"]
        for name in written:
            _core.set_fresh_grad(self.arg_dict[name], False)
        with autograd.pause(True):
            if reached:
                heads = [output for output, _ in reached]
                autograd.backward(heads, [grad for _, grad in reached], train_mode=is_train)
            for name in written:
                if not _core.is_fresh_grad(self.arg_dict[name]):
                    self.grad_dict[name][...] = 0
        self._recorded = False

    def copy_params_from(
        self,
        arg_params: Mapping[str, Any],
        aux_params: Mapping[str, Any] | None = None,
        allow_extra_params: bool = False,
    ) -> None:
        """Write arrays by name into arguments and states; ValueError for others unless `allow_extra_params`."""
        for given, own in ((arg_params, self.arg_dict), (aux_params or {}, self.aux_dict)):
            for name, value in given.items():
                if name in own:
                    own[name][...] = value.astype(own[name].dtype)
                elif not allow_extra_params:
                    raise MXNetValueError(f"Find name '{name}' that is not in the arguments")

    def reshape(
        self, partial_shaping: bool = False, allow_up_sizing: bool = False, **kwargs: Any
    ) -> Executor:
        """An executor for inputs of other shapes; arrays whose shape stays are shared. The options change nothing."""
        arg_shapes, _, aux_shapes = self._symbol.infer_shape(**kwargs)
        if arg_shapes is None:
            raise MXNetValueError("reshape: the shapes given do not decide all others")

        def fitted(old: Any, shape: Sequence[int]) -> Any:
            if old is None or tuple(old.shape) == tuple(shape):
                return old
            return np.zeros(shape, dtype=old.dtype, device=self._device)

        args = {n: fitted(a, s) for (n, a), s in zip(self.arg_dict.items(), arg_shapes, strict=True)}
        grads = {n: fitted(a, s) for (n, a), s in zip(self.grad_dict.items(), arg_shapes, strict=True)}
        states = {n: fitted(a, s) for (n, a), s in zip(self.aux_dict.items(), aux_shapes, strict=True)}
        return Executor(self._symbol, self._device, args, grads, self._grad_req, states)

    def set_monitor_callback(self, callback: Callable[[str, Any], None], monitor_all: bool = False) -> None:
        """Call `callback(name, array)` with every node's outputs in each `forward`."""
        self._monitor = callback

    def debug_str(self) -> str:
        """The graph in words."""
        return self._symbol.debug_str()

    def get_optimized_symbol(self) -> Any:
        """The symbol that runs: the one that was bound."""
        return self._symbol
