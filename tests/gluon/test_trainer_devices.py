"""The Trainer on several devices: what MXNet does with stores, and that devices change no result."""

import numpy as onp
import pytest

from gluon.training import DEVICES, backward, backward_on, dense, trainer_of
from mxnp import autograd, kvstore, np


@pytest.mark.parametrize(
    ("arguments", "gradients", "biases"),
    [
        ({}, [[2.0] * 2] * 2, [[-0.5] * 2] * 2),
        ({"kvstore": "local"}, [[2.0] * 2] * 2, [[-0.5] * 2] * 2),
        ({"kvstore": kvstore.create("device")}, [[2.0] * 2] * 2, [[-0.5] * 2] * 2),
        ({"update_on_kvstore": False}, [[4.0] * 2] * 2, [[-0.5] * 2] * 2),
        ({"kvstore": None}, [[2.0] * 2] * 2, [[-0.25] * 2] * 2),
    ],
)
def test_devices_as_in_mxnet(arguments, gradients, biases):
    net = dense(device=DEVICES)
    kept = net.bias.list_data()
    trainer = trainer_of(net, **arguments)
    backward_on(net)
    trainer.step(4)
    assert [g.tolist() for g in net.bias.list_grad()] == gradients
    assert [d.tolist() for d in net.bias.list_data()] == biases
    assert all(a is b for a, b in zip(kept, net.bias.list_data(), strict=True))


@pytest.mark.parametrize("name", ["sgd", "adam"])
@pytest.mark.parametrize("update_on_kvstore", [True, False])
def test_devices_give_what_one_device_gives(name, update_on_kvstore):
    arguments = {"learning_rate": 0.125} | ({"momentum": 0.5} if name == "sgd" else {})
    one, two = dense(), dense(device=DEVICES)
    single = trainer_of(one, name, arguments)
    double = trainer_of(two, name, arguments, update_on_kvstore=update_on_kvstore)
    for step in range(4):
        with autograd.record():
            loss = one(np.full((2, 3), 1.0 + step)).sum() + one(np.full((2, 3), 2.0)).sum()
        loss.backward()
        single.step(4)
        backward_on(two, values=(1.0 + step, 2.0))
        double.step(4)
    for replica in two.weight.list_data():
        onp.testing.assert_allclose(replica.asnumpy(), one.weight.data().asnumpy(), rtol=1e-6)


def test_allreduce_then_update():
    net = dense(device=DEVICES)
    trainer = trainer_of(net, update_on_kvstore=False)
    backward_on(net)
    trainer.allreduce_grads()
    assert [g.tolist() for g in net.bias.list_grad()] == [[4.0] * 2] * 2
    for gradient in net.bias.list_grad():
        gradient *= 0.5
    trainer.update(4)
    assert [d.tolist() for d in net.bias.list_data()] == [[-0.25] * 2] * 2
    with pytest.raises(UserWarning):
        trainer.update(4)


def test_allreduce_and_update_on_one_device():
    net = dense()
    trainer = trainer_of(net)
    backward(net)
    trainer.allreduce_grads()
    trainer.update(4)
    assert net.bias.data().tolist() == [-0.5] * 2


def test_the_store_refuses_halves_of_a_step():
    net = dense(device=DEVICES)
    trainer = trainer_of(net)
    backward_on(net)
    with pytest.raises(AssertionError, match="allreduce_grads: the kvstore sums"):
        trainer.allreduce_grads()
    with pytest.raises(AssertionError, match="update: "):
        trainer.update(4)


def test_the_environment_decides_where_updates_run(monkeypatch):
    monkeypatch.setenv("MXNET_UPDATE_ON_KVSTORE", "0")
    net = dense(device=DEVICES)
    trainer = trainer_of(net)
    backward_on(net)
    trainer.allreduce_grads()
    trainer.update(4)
    assert net.bias.list_data()[1].tolist() == [-0.5] * 2


def test_set_data_between_steps_is_kept():
    net = dense(device=DEVICES)
    trainer = trainer_of(net)
    backward_on(net)
    trainer.step(4)
    net.bias.set_data(np.full((2,), 8.0))
    backward_on(net)
    trainer.step(4)
    assert [d.tolist() for d in net.bias.list_data()] == [[7.5] * 2] * 2


def test_moving_to_other_devices_keeps_the_states():
    moved, stays = dense(), dense()
    trainers = [trainer_of(n, arguments={"learning_rate": 0.5, "momentum": 0.5}) for n in (moved, stays)]
    for net, trainer in zip((moved, stays), trainers, strict=True):
        backward(net)
        trainer.step(4)
    moved.reset_device(DEVICES)
    backward_on(moved, values=(1.0, 1.0))
    trainers[0].step(4)
    backward(stays)
    trainers[1].step(4)
    for replica in moved.weight.list_data():
        assert replica.tolist() == stays.weight.data().tolist()


def test_a_store_of_the_users_own():
    calls = []

    class Recorder(kvstore.KVStoreBase):
        def broadcast(self, key, value, out, priority=0):
            calls.append(("broadcast", key))

        def pushpull(self, key, value, out=None, priority=0):
            calls.append(("pushpull", key))
            out[0][:] = 8

    net = dense()
    trainer = trainer_of(net, kvstore=Recorder())
    for _ in range(2):
        backward(net)
        trainer.step(4)
    assert calls == [(c, k) for k in (0, 1) for c in ("broadcast", "pushpull")] + [
        ("pushpull", 0),
        ("pushpull", 1),
    ]
    assert net.bias.data().tolist() == [-2.0] * 2
