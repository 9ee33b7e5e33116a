"""Parameters: named arrays that blocks own, initialise, differentiate and save, one replica per device.

Knows no Block: a block tells a parameter the structural name it is known by.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as onp

from mxnp import _core, autograd, initializer, np
from mxnp.device import Device, cpu, current_device
from mxnp.error import DeferredInitializationError, MXNetError, MXNetTypeError, MXNetValueError

from ._cached_graph import untraced
from ._devices import DeviceLike, as_device, device_list

Shape = tuple[int, ...]


class UninitializedParameterError(MXNetError):
    """A parameter's data was asked for and nobody has called `initialize`."""


@dataclass
class _Plan:
    """How to make a parameter's data once its shape is known."""

    init: Any
    default_init: Any
    devices: list[Device]
    data: Any = None  # set by `set_data` while deferred: replaces the initialiser


class Parameter:
    """A named array of a block, with its gradient and its replicas.

    Parameters
    ----------
    name : the local name, such as `weight`; initialisers see it.
    grad_req : 'write' (each backward overwrites the gradient), 'add' (accumulates) or 'null' (has none).
    shape : int or tuple; -1 (or 1.x's 0) marks a dimension that the first forward will find.
    dtype : dtype of the data.
    lr_mult, wd_mult : factors a Trainer applies to its learning rate and weight decay.
    init : the parameter's own initialiser (name, instance); None takes the one given to `initialize`.
    allow_deferred_init : let `initialize` wait for an unknown shape.
    differentiable : False forces `grad_req` 'null'.
    stype, grad_stype : accepted for MXNet's sparse storage; data and gradients are dense.

    >>> weight = gluon.Parameter("weight", shape=(2, 3))
    >>> weight.initialize(init="ones")
    >>> weight.data().tolist()
    [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    """

    def __init__(
        self,
        name: str = "weight",
        grad_req: str = "write",
        shape: int | Shape | None = None,
        dtype: Any = "float32",
        lr_mult: float = 1.0,
        wd_mult: float = 1.0,
        init: Any = None,
        allow_deferred_init: bool = False,
        differentiable: bool = True,
        stype: str = "default",
        grad_stype: str = "default",
    ) -> None:
        self._name = name
        self._structural_name: str | None = None
        self._shape = None if shape is None else _as_shape(shape, name)
        self._dtype = _as_dtype(dtype)
        self._arrays: dict[Device, Any] = {}
        self._deferred: _Plan | None = None
        self._differentiable = differentiable
        self._allow_deferred_init = allow_deferred_init
        self._stype, self._grad_stype = _as_stype(stype), _as_stype(grad_stype)
        self.lr_mult = lr_mult
        self.wd_mult = wd_mult
        self.init = init
        self.grad_req = grad_req

    def __repr__(self) -> str:
        return f"{type(self).__name__} (shape={self._shape}, dtype={self._dtype})"

    # What it is -----------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The local name, such as `weight`."""
        return self._name

    @property
    def shape(self) -> Any:
        """The shape, -1 where unknown; None when nothing is known. Setting it fills unknown dimensions only.

        Setting a shape that contradicts a known dimension raises AssertionError.
        """
        return self._shape

    @shape.setter
    def shape(self, shape: int | Shape | None) -> None:
        if shape is None:
            return
        new, old = _as_shape(shape, self._name), self._shape
        if old is None:
            self._shape = new
            return
        if len(new) != len(old) or any(a != b and -1 not in (a, b) for a, b in zip(new, old, strict=True)):
            raise AssertionError(f"Parameter '{self._full_name()}' has shape {old}, which {new} does not fit")
        self._shape = tuple(max(a, b) for a, b in zip(new, old, strict=True))

    @property
    def dtype(self) -> onp.dtype:
        """The dtype of the data. Setting it casts."""
        return self._dtype

    @dtype.setter
    def dtype(self, dtype: Any) -> None:
        self.cast(dtype)

    @property
    def stype(self) -> str:
        """The storage asked for ('default', 'row_sparse', 'csr'); the data is dense in any case."""
        return self._stype

    @property
    def grad_stype(self) -> str:
        """The gradient storage asked for; the gradient is dense in any case."""
        return self._grad_stype

    @property
    def grad_req(self) -> str:
        """'write', 'add' or 'null'. Setting it makes or drops the gradient; the data stays the same arrays."""
        return self._grad_req

    @grad_req.setter
    def grad_req(self, grad_req: str) -> None:
        if grad_req not in ("write", "add", "null"):
            raise AssertionError(
                f"Parameter '{self._full_name()}': grad_req must be 'write', 'add' or 'null', got {grad_req!r}"
            )
        grad_req = grad_req if self._differentiable else "null"
        changed = grad_req != getattr(self, "_grad_req", grad_req)
        self._grad_req = grad_req
        if changed and grad_req == "null":
            for array in self._arrays.values():
                _core.forget_grad(array)
        elif changed:
            self._attach_grads()

    # Making the data ------------------------------------------------------------------------------------------

    def initialize(
        self,
        init: Any = None,
        device: DeviceLike = None,
        default_init: Any = None,
        force_reinit: bool = False,
        ctx: DeviceLike = None,
    ) -> None:
        """Make the data on `device` (one, a list, or the current one), or plan to when the shape is unknown.

        `init` comes before the parameter's own `init`, which comes before `default_init` (Uniform()). Data that
        exists is kept, with a UserWarning, unless `force_reinit`, which makes new arrays. Raises MXNetValueError
        for an unknown shape without `allow_deferred_init`.
        """
        if self._arrays and not force_reinit:
            warnings.warn(
                f"Parameter '{self._full_name()}' is already initialized, ignoring. "
                "Set force_reinit=True to re-initialize.",
                stacklevel=2,
            )
            return
        if default_init is None:
            default_init = initializer.Uniform()
        if init is None:
            init = default_init if self.init is None else self.init
        plan = _Plan(init, default_init, device_list(device, ctx) or [current_device()])
        if self._shape_is_known():
            self._make(plan)
        elif self._allow_deferred_init:
            if self._arrays:
                _core.drop_graphs()
            self._arrays = {}
            self._deferred = plan
        else:
            raise MXNetValueError(
                f"Parameter '{self._full_name()}' cannot be initialized: its shape {self._shape} is unknown\n"
                "hint: give the whole shape, or allow_deferred_init=True to find it in the first forward"
            )

    def _finish_deferred_init(self) -> None:
        """Make data whose initialisation waited for the shape; nothing when nothing waits."""
        if self._deferred is None:
            return
        if not self._shape_is_known():
            raise self._no_data()
        self._make(self._deferred)

    def _make(self, plan: _Plan) -> None:
        with autograd.pause(), untraced():
            data = self._initial_data(plan) if plan.data is None else plan.data
            self._place(data, plan.devices)

    def _initial_data(self, plan: _Plan) -> Any:
        data = np.zeros(self._shape, dtype=self._dtype, device=cpu())
        description = initializer.InitDesc(self._name, {"__init__": plan.init})
        initializer.create(plan.default_init)(description, data)
        return data

    def _place(self, data: Any, devices: list[Device]) -> None:
        """Take the private array `data` and copies of it as the replicas on `devices`."""
        if self._arrays:
            _core.drop_graphs()  # they have the old arrays
        self._arrays = {d: data if d == data.device else data.copyto(d) for d in devices}
        self._deferred = None
        self._attach_grads()

    def _attach_grads(self) -> None:
        if self._grad_req != "null":
            for array in self._arrays.values():
                array.attach_grad(self._grad_req)

    # Reading --------------------------------------------------------------------------------------------------

    def data(self, device: Device | str | None = None, ctx: Device | str | None = None) -> Any:
        """The array on `device`; without one, the only replica or the one on the current device.

        The same object at each call: updates write into it. Raises RuntimeError when never initialised or not on
        `device`, DeferredInitializationError while the shape is unknown.
        """
        arrays = self._arrays
        if device is None:
            device = ctx
        if not arrays:
            raise self._no_data()
        if device is None:
            if len(arrays) == 1:
                return next(iter(arrays.values()))
            device = current_device()
        elif not isinstance(device, Device):
            device = as_device(device)
        array = arrays.get(device)
        if array is None:
            raise MXNetError(
                f"Parameter '{self._full_name()}' was not initialized on device {device}: "
                f"it is on {list(arrays)}\nhint: initialize(device=...) or reset_device(...) with that device"
            )
        return array

    def list_data(self) -> list[Any]:
        """The arrays on all devices, in the order of initialisation."""
        self._require_data()
        return list(self._arrays.values())

    def grad(self, device: Device | str | None = None, ctx: Device | str | None = None) -> Any:
        """The gradient on `device`: an array that backward writes into. Raises RuntimeError for grad_req 'null'."""
        array = self.data(device, ctx)
        self._require_grad()
        return array.grad

    def list_grad(self) -> list[Any]:
        """The gradients on all devices, in the order of initialisation."""
        self._require_data()
        self._require_grad()
        return [array.grad for array in self._arrays.values()]

    def list_device(self) -> list[Device]:
        """The devices it is, or is going to be, initialised on."""
        if self._deferred is not None:
            return list(self._deferred.devices)
        self._require_data()
        return list(self._arrays)

    def list_ctx(self) -> list[Device]:
        """1.x's name of `list_device`."""
        return self.list_device()

    def _reduce(self) -> Any:
        """One array on the CPU for all replicas: their mean, as a file stores them."""
        first, *rest = (array.copyto(cpu()) for array in self.list_data())
        return sum(rest, first) / (1 + len(rest)) if rest else first

    # Changing -------------------------------------------------------------------------------------------------

    def set_data(self, data: Any) -> None:
        """Write `data` into every replica in place, cast to the dtype; also plans it while the shape is unknown.

        Raises AssertionError when its shape does not fit, RuntimeError when never initialised.
        """
        if not self._arrays and self._deferred is None:
            raise self._no_data()
        with autograd.pause():
            data = data if isinstance(data, np.ndarray) else np.array(data, dtype=self._dtype)
            self.shape = data.shape
            if self._deferred is not None:
                self._deferred.data = np.array(data, dtype=self._dtype, device=cpu())
            for device, array in self._arrays.items():
                array[...] = data if data.device == device else data.copyto(device)

    def zero_grad(self) -> None:
        """Fill the gradients with zeros in place; nothing for grad_req 'null'."""
        if self._grad_req != "null":
            with autograd.pause():
                for array in self._arrays.values():
                    array.grad[...] = 0

    def reset_device(self, device: DeviceLike = None, ctx: DeviceLike = None) -> None:
        """Move the data to `device` (one or a list): new arrays, unless it is there already."""
        devices = device_list(device, ctx) or [current_device()]
        if self._deferred is not None:
            self._deferred.devices = devices
            return
        self._require_data()
        if devices != list(self._arrays):
            with autograd.pause():
                self._place(self._reduce(), devices)

    def reset_ctx(self, ctx: DeviceLike = None) -> None:
        """1.x's name of `reset_device`."""
        self.reset_device(ctx)

    def cast(self, dtype: Any) -> None:
        """Change the dtype. Makes new arrays, with new gradients, when it differs."""
        dtype = _as_dtype(dtype)
        if dtype == self._dtype:
            return
        self._dtype = dtype
        if self._arrays:
            _core.drop_graphs()
        with autograd.pause():
            self._arrays = {device: array.astype(dtype) for device, array in self._arrays.items()}
            if self._deferred is not None and self._deferred.data is not None:
                self._deferred.data = self._deferred.data.astype(dtype)
        self._attach_grads()

    # Private --------------------------------------------------------------------------------------------------

    def _shape_is_known(self) -> bool:
        return self._shape is not None and -1 not in self._shape

    def _full_name(self) -> str:
        return self._structural_name or self._name

    def _require_data(self) -> None:
        if not self._arrays:
            raise self._no_data()

    def _require_grad(self) -> None:
        if self._grad_req == "null":
            raise MXNetError(
                f"Parameter '{self._full_name()}' has no gradient because grad_req='null'\n"
                "hint: set its grad_req to 'write' or 'add'"
            )

    def _no_data(self) -> MXNetError:
        """The error for data that is not there; `parameter` on it lets a block put the structural name in."""
        kind = UninitializedParameterError if self._deferred is None else DeferredInitializationError
        error: Any = kind(self._no_data_text())
        error.parameter = self
        return error

    def _no_data_text(self) -> str:
        if self._deferred is not None:
            return (
                f"Parameter '{self._full_name()}' has no data yet: its shape {self._shape} is not known and its "
                "initialization was deferred\nhint: run one batch through the network first, or give the layer "
                "its input size (in_units, in_channels, ...)"
            )
        return (
            f"Parameter '{self._full_name()}' has not been initialized\n"
            "hint: call initialize() on the outermost block, again after adding layers"
        )

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__.copy()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._attach_grads()  # a copied or unpickled array starts without a gradient


class Constant(Parameter):
    """A parameter that training leaves alone: `Constant(value)`, or 1.x's `Constant(name, value)`.

    Like any parameter it has data on the devices given to `initialize`; its grad_req is always 'null'.

    >>> table = gluon.Constant(np.array([1, 2]))
    >>> table.initialize()
    >>> table.data().tolist(), table.grad_req
    ([1.0, 2.0], 'null')
    """

    def __init__(self, name: Any = None, value: Any = None) -> None:
        if value is None:
            name, value = "const", name
        if value is None:
            raise MXNetTypeError("Constant: expected a value\nhint: Constant(value) or Constant(name, value)")
        self.value = np.array(value)
        super().__init__(
            name, grad_req="null", shape=self.value.shape, dtype=self.value.dtype, differentiable=False
        )
        self._shape = self.value.shape  # a 0 in it is a size here, not an unknown

    def _initial_data(self, plan: _Plan) -> Any:
        return np.array(self.value, dtype=self._dtype, device=cpu())


def _as_shape(shape: int | Shape, name: str) -> Shape:
    """`shape` as a tuple with -1 for every unknown dimension."""
    sizes = tuple(int(size) for size in (shape if isinstance(shape, (tuple, list)) else (shape,)))
    if any(size < -1 for size in sizes):
        raise MXNetValueError(f"Parameter '{name}': shape {sizes} has a negative dimension")
    return tuple(size or -1 for size in sizes)


def _as_dtype(dtype: Any) -> onp.dtype:
    return _core.dtype("float32" if dtype is None else dtype)


def _as_stype(stype: str) -> str:
    if stype not in ("default", "row_sparse", "csr"):
        raise AssertionError(f"stype must be 'default', 'row_sparse' or 'csr', got {stype!r}")
    return stype
