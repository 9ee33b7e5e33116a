"""Trainer: applies an optimizer to the parameters of a network, on one device or on replicas on several.

Owns which gradients are summed, which weights are updated where, and the check for stale gradients. Update rules
belong to `mxnp.optimizer`, sums over devices to `mxnp.kvstore`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mxnp import kvstore as kv
from mxnp._core import is_fresh_grad, set_fresh_grad
from mxnp._files.atomic import atomic_write
from mxnp.error import MXNetValueError, MXNetZeroDivisionError
from mxnp.kvstore.base import is_of_one_process
from mxnp.optimizer import Optimizer, Updater, create, get_updater

from .parameter import Parameter

__all__ = ["Trainer"]


class Trainer:
    """Updates parameters in place from their gradients.

    params: a dict (`net.collect_params()`) or list of Parameters. They may wait for their shapes, but must have
        been initialised. One that appears several times is updated once; those with grad_req 'null' are left out.
    optimizer: a name with `optimizer_params`, or an Optimizer without.
    kvstore: a name, a store, or None. A named store is used only for several devices; None leaves the replicas'
        gradients apart.
    compression_params: passed to the store.
    update_on_kvstore: with several devices, whether the store sums the gradients and updates one replica, which
        is then copied (True, the default), or the gradients are summed in place and each replica is updated.
        The environment variable MXNET_UPDATE_ON_KVSTORE=0 changes the default.

    >>> from mxnp import autograd, gluon, np
    >>> net = gluon.nn.Dense(1, in_units=2)
    >>> net.initialize()
    >>> trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    >>> with autograd.record():
    ...     loss = net(np.ones((4, 2))).sum()
    >>> loss.backward()
    >>> trainer.step(batch_size=4)
    """

    def __init__(
        self,
        params: Any,
        optimizer: str | Optimizer,
        optimizer_params: dict[str, Any] | None = None,
        kvstore: Any = "device",
        compression_params: dict[str, Any] | None = None,
        update_on_kvstore: bool | None = None,
    ) -> None:
        self._params = _parameters(params)
        self._devices = _common_devices(self._params)
        self._optimizer = _make_optimizer(optimizer, optimizer_params)
        self._optimizer.param_dict = dict(enumerate(self._params))
        self._scale = self._optimizer.rescale_grad
        if update_on_kvstore and kvstore is None:
            raise MXNetValueError("Trainer: update_on_kvstore=True needs a kvstore, but kvstore is None")
        if isinstance(kvstore, str) and not is_of_one_process(kvstore):
            kvstore = kv.create(kvstore)
        self._kvstore_wanted = kvstore
        self._update_on_kvstore_wanted = update_on_kvstore
        self._compression_params = compression_params
        self._kvstore: Any = None
        self._update_on_kvstore = False
        self._stored: dict[int, Any] = {}
        self._updaters: list[Updater] = []

    def __repr__(self) -> str:
        devices = f", devices={list(self._devices)}" if self._devices and len(self._devices) > 1 else ""
        return f"Trainer({len(self._params)} parameters, {self._optimizer!r}{devices})"

    # Rates

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer."""
        return self._optimizer

    @property
    def learning_rate(self) -> float:
        """The current learning rate, before the parameters' `lr_mult`."""
        return self._optimizer.learning_rate

    def set_learning_rate(self, lr: float) -> None:
        """Set the learning rate; raises UserWarning where a schedule decides it."""
        self._optimizer.set_learning_rate(lr)

    # Steps

    def step(self, batch_size: Any, ignore_stale_grad: bool = False) -> None:
        """Sum gradients over the devices, divide by `batch_size` (a number or a 0-d array) and update.

        Call it after `backward`, outside `record`. A gradient that no backward has written since the last step
        raises UserWarning and nothing is updated; with `ignore_stale_grad` such parameters are left as they are.
        """
        self._prepare(batch_size)
        chosen = self._with_fresh_gradients(ignore_stale_grad)
        if self._kvstore is not None and not self._update_on_kvstore:
            self._sum_gradients(chosen)
        self._update(chosen)

    def allreduce_grads(self) -> None:
        """Sum the gradients over the devices, in place; then change them as you like and call `update`."""
        self._init_kvstore()
        self._refuse_on_kvstore("allreduce_grads")
        if self._kvstore is not None:
            self._sum_gradients(self._trained())

    def update(self, batch_size: Any, ignore_stale_grad: bool = False) -> None:
        """`step` without the sum over devices, after `allreduce_grads`."""
        self._init_kvstore()
        self._refuse_on_kvstore("update")
        self._prepare(batch_size)
        self._update(self._with_fresh_gradients(ignore_stale_grad))

    def _prepare(self, batch_size: Any) -> None:
        self._init_kvstore()
        size = float(batch_size)
        if size == 0:
            raise MXNetZeroDivisionError("Trainer: gradients cannot be divided by a batch size of 0")
        if not size > 0:
            raise MXNetValueError(f"Trainer: batch_size must be positive, got {batch_size!r}")
        self._optimizer.rescale_grad = self._scale / size

    def _trained(self) -> list[int]:
        return [i for i, param in enumerate(self._params) if param.grad_req != "null"]

    def _with_fresh_gradients(self, ignore_stale_grad: bool) -> dict[int, list[Any]]:
        """The replicas of the parameters to update; raises where a gradient is stale, before anything has changed."""
        chosen = {i: self._params[i].list_data() for i in self._trained()}
        for i, replicas in list(chosen.items()):
            stale = [data for data in replicas if not is_fresh_grad(data)]
            if not stale:
                continue
            if not ignore_stale_grad:
                raise UserWarning(
                    f"Gradient of Parameter `{self._params[i].name}` on device {stale[0].device} has not been "
                    "updated by backward since the last step: the loss does not depend on it, or there was no "
                    "backward\nhint: step(batch_size, ignore_stale_grad=True) leaves such parameters as they are"
                )
            del chosen[i]
        return chosen

    def _sum_gradients(self, chosen: Iterable[int]) -> None:
        for i in chosen:
            if i not in self._stored:
                replicas = self._params[i].list_data()
                self._kvstore.broadcast(i, replicas[0], out=replicas, priority=-i)
                self._stored[i] = None
            gradients = self._params[i].list_grad()
            self._kvstore.pushpull(i, gradients, out=gradients, priority=-i)

    def _update(self, chosen: dict[int, list[Any]]) -> None:
        if self._update_on_kvstore:
            self._update_in_store(chosen)
        else:
            for device_id, updater in enumerate(self._updaters):
                self._optimizer._set_current_device(device_id)
                weights = [replicas[device_id] for replicas in chosen.values()]
                updater(list(chosen), [weight.grad for weight in weights], weights)
        for replicas in chosen.values():
            for data in replicas:
                set_fresh_grad(data, False)

    def _update_in_store(self, chosen: Iterable[int]) -> None:
        for i in chosen:
            self._share(i)
            self._kvstore.push(i, self._params[i].list_grad(), priority=-i)
        for i in chosen:
            self._kvstore.pull(i, out=self._params[i].list_data(), priority=-i)

    def _refuse_on_kvstore(self, name: str) -> None:
        if self._update_on_kvstore:
            raise AssertionError(
                f"Trainer.{name}: the kvstore sums gradients and updates parameters in one go\n"
                "hint: make the Trainer with update_on_kvstore=False"
            )

    # Devices and store

    def _init_kvstore(self) -> None:
        """Choose store and updaters at the first step, and again when the parameters have changed devices."""
        if self._updaters and self._params[0].list_device() == self._devices:
            return
        self._devices = _common_devices(self._params)
        self._updaters = self._updaters_for(len(self._devices))
        store = self._make_store()
        if store is not self._kvstore:
            self._stored = {}
            self._kvstore = store
            if store is not None and self._compression_params:
                store.set_gradient_compression(self._compression_params)
        self._update_on_kvstore = store is not None and self._updates_in(store)
        if self._update_on_kvstore:
            if self._keeps_states():
                store._set_updater(self._updaters[0])
            else:
                store.set_optimizer(self._optimizer)

    def _updaters_for(self, count: int) -> list[Updater]:
        """One updater for each replica; new ones start from the states of the first."""
        updaters = [get_updater(self._optimizer) for _ in range(count)]
        if self._updaters:
            states = self._updaters[0].get_states()
            for updater in updaters:
                updater.set_states(states)
            self._count_on_all_devices()
        return updaters

    def _keeps_states(self) -> bool:
        """Whether the states are in the updaters here, rather than inside a store of another kind."""
        return not self._update_on_kvstore or isinstance(self._kvstore, kv.KVStore)

    def _make_store(self) -> Any:
        wanted = self._kvstore_wanted
        if not isinstance(wanted, str):
            return wanted
        return kv.create(wanted) if len(self._devices) > 1 else None

    def _updates_in(self, store: Any) -> bool:
        capable = store.is_capable(kv.KVStoreBase.OPTIMIZER)
        wanted = self._update_on_kvstore_wanted
        if wanted is None:
            return capable and os.environ.get("MXNET_UPDATE_ON_KVSTORE", "1") != "0"
        if wanted and not capable:
            raise MXNetValueError(f"Trainer: the kvstore {store.type!r} cannot run an optimizer")
        return bool(wanted)

    def _share(self, i: int) -> None:
        """Make replica 0 the value that the store updates, whenever another array has come to hold it."""
        replicas = self._params[i].list_data()
        if self._stored.get(i) is replicas[0]:
            return
        if isinstance(self._kvstore, kv.KVStore):
            self._kvstore._adopt(i, replicas[0])
        else:
            self._kvstore.broadcast(i, replicas[0], out=replicas, priority=-i)
        self._stored[i] = replicas[0]

    # States

    def save_states(self, fname: Any) -> None:
        """Write the optimizer's states, hyperparameters and update counts to a file, atomically.

        The format is npz, without pickled objects.
        """
        self._init_kvstore()
        if not self._keeps_states():
            self._kvstore.save_optimizer_states(fname, dump_optimizer=True)
            return
        states = self._updaters[0].get_states(dump_optimizer=True)
        with atomic_write(fname) as stream:
            stream.write(states)

    def load_states(self, fname: Any) -> None:
        """Read what `save_states` wrote, here or in MXNet; training goes on exactly where it was saved.

        Raises MXNetValueError for a damaged file, another optimizer or other parameters, and changes nothing.
        """
        self._init_kvstore()
        if not self._keeps_states():
            self._kvstore.load_optimizer_states(fname)
            return
        data = Path(fname).read_bytes()
        for updater in self._updaters:
            updater.set_states(data, str(fname), self._check_states)
        self._count_on_all_devices()

    def _check_states(self, states: dict[Any, Any], name: str) -> None:
        """Refuse states that cannot be those of these parameters."""
        for index, state in states.items():
            if not isinstance(index, int) or not 0 <= index < len(self._params):
                raise MXNetValueError(
                    f"{name}: it has a state {index!r}, but the trainer has {len(self._params)} parameters"
                )
            param = self._params[index]
            for shape in _shapes(state):
                if shape != tuple(param.shape) and math.prod(shape) != 1:
                    raise MXNetValueError(
                        f"{name}: the state of parameter {index} ({param.name}) has shape {shape}, "
                        f"expected {tuple(param.shape)}"
                    )

    def _count_on_all_devices(self) -> None:
        """Replicas that the states know nothing of start from the counts of the first."""
        counts = self._optimizer._all_index_update_counts
        for device_id in range(len(self._devices)):
            counts.setdefault(device_id, dict(counts.get(0, {})))


def _shapes(state: Any) -> Iterable[tuple[int, ...]]:
    if isinstance(state, tuple):
        for each in state:
            yield from _shapes(each)
    elif state is not None:
        yield state.shape


def _parameters(params: Any) -> list[Parameter]:
    """The parameters in order, a dict's by sorted key, each once."""
    if isinstance(params, Mapping):
        params = [params[key] for key in sorted(params)]
    elif isinstance(params, (str, Parameter)) or not isinstance(params, Iterable):
        raise MXNetValueError(
            f"Trainer: expected a list or dict of Parameters, got {type(params).__name__}\n"
            "hint: pass net.collect_params()"
        )
    unique = {}
    for param in params:
        if not isinstance(param, Parameter):
            raise MXNetValueError(
                f"Trainer: expected a list or dict of Parameters, got one of {type(param).__name__}"
            )
        unique[id(param)] = param
    if not unique:
        raise MXNetValueError("Trainer: there are no parameters to train")
    return list(unique.values())


def _common_devices(params: list[Parameter]) -> list[Any]:
    """The devices that hold every parameter; raises for one that was never initialised."""
    devices = params[0].list_device()
    for param in params[1:]:
        if param.list_device() != devices:
            raise MXNetValueError(
                f"Trainer: parameters must be on the same devices, but {params[0].name} is on {devices} and "
                f"{param.name} on {param.list_device()}"
            )
    return devices


def _make_optimizer(chosen: str | Optimizer, arguments: dict[str, Any] | None) -> Optimizer:
    if isinstance(chosen, Optimizer) and arguments:
        raise AssertionError(
            "Trainer: optimizer_params must be None when optimizer is an Optimizer\n"
            "hint: set them where the Optimizer is made"
        )
    return create(chosen, **(arguments or {}))
