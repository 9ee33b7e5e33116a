"""The Trainer: in-place updates, stale gradients, devices and stores, states, refused misuse."""

import pickle

import numpy as onp
import pytest

import mxnp as mx
from mxnp import autograd, gluon, kvstore, lr_scheduler, np, optimizer
from mxnp.error import DeferredInitializationError, MXNetError

DEVICES = [mx.cpu(0), mx.cpu(1)]


def dense(units=2, in_units=3, device=None):
    net = gluon.nn.Dense(units, in_units=in_units)
    net.initialize(mx.init.One(), device=device)
    return net


def trainer_of(net, name="sgd", arguments=None, **kwargs):
    return gluon.Trainer(net.collect_params(), name, arguments or {"learning_rate": 0.5}, **kwargs)


def backward(net, value=1.0, rows=4, in_units=3):
    with autograd.record():
        loss = net(np.full((rows, in_units), value)).sum()
    loss.backward()


def backward_on(net, devices=DEVICES, values=(1.0, 2.0)):
    with autograd.record():
        losses = [net(np.full((2, 3), v, device=d)).sum() for d, v in zip(devices, values, strict=True)]
    autograd.backward(losses)


# One device


def test_step_divides_by_the_batch_size_and_writes_in_place():
    net = dense()
    weight, bias, gradient = net.weight.data(), net.bias.data(), net.weight.grad()
    trainer = trainer_of(net)
    backward(net)
    trainer.step(4)
    assert weight.tolist() == [[0.5] * 3] * 2
    assert bias.tolist() == [-0.5] * 2
    assert net.weight.data() is weight
    assert gradient.tolist() == [[4.0] * 3] * 2


@pytest.mark.parametrize("batch_size", [4, 4.0, onp.int64(4), onp.array(4.0), np.array(4)], ids=type)
def test_batch_size_may_be_any_scalar(batch_size):
    net = dense()
    trainer = trainer_of(net)
    backward(net)
    trainer.step(batch_size)
    assert net.bias.data().tolist() == [-0.5] * 2


def test_changing_a_gradient_changes_the_step():
    net = dense()
    trainer = trainer_of(net)
    backward(net)
    net.bias.grad()[:] *= 0.5
    trainer.step(4)
    assert net.bias.data().tolist() == [-0.25] * 2


def test_rescale_grad_multiplies():
    net = dense()
    trainer = trainer_of(net, arguments={"learning_rate": 0.5, "rescale_grad": 0.25})
    for _ in range(2):
        backward(net)
        trainer.step(4)
    assert net.bias.data().tolist() == [-0.25] * 2


def test_clip_gradient_comes_after_rescaling():
    net = dense()
    trainer = trainer_of(net, arguments={"learning_rate": 1.0, "clip_gradient": 0.75})
    backward(net)
    trainer.step(8)
    assert net.bias.data().tolist() == [-0.5] * 2
    backward(net)
    trainer.step(1)
    assert net.bias.data().tolist() == [-1.25] * 2


def test_weight_decay_and_multipliers_by_parameter():
    net = dense()
    net.bias.lr_mult, net.weight.wd_mult = 0.5, 0.0
    net.bias.set_data(np.ones(2))
    trainer = trainer_of(net, arguments={"learning_rate": 0.5, "wd": 0.5})
    backward(net)
    trainer.step(4)
    assert net.weight.data().tolist() == [[0.5] * 3] * 2
    assert net.bias.data().tolist() == [0.625] * 2
    net.bias.lr_mult = 0.0
    backward(net)
    trainer.step(4)
    assert net.bias.data().tolist() == [0.625] * 2


def test_stale_gradients_raise_and_change_nothing():
    net = dense()
    trainer = trainer_of(net)
    with pytest.raises(UserWarning, match="Gradient of Parameter `bias` on device"):
        trainer.step(1)
    backward(net)
    trainer.step(4)
    before = net.weight.data().tolist()
    with pytest.raises(UserWarning, match="since the last step"):
        trainer.step(4)
    assert net.weight.data().tolist() == before
    trainer.step(4, ignore_stale_grad=True)
    assert net.weight.data().tolist() == before


def test_one_stale_parameter_of_several():
    used, unused = dense(), dense()
    params = list(used.collect_params().values()) + list(unused.collect_params().values())
    trainer = gluon.Trainer(params, "sgd", {"learning_rate": 0.5})
    backward(used)
    with pytest.raises(UserWarning):
        trainer.step(4)
    assert used.weight.data().tolist() == [[1.0] * 3] * 2
    trainer.step(4, ignore_stale_grad=True)
    assert used.weight.data().tolist() == [[0.5] * 3] * 2
    assert unused.weight.data().tolist() == [[1.0] * 3] * 2


def test_null_gradients_are_left_out():
    net = dense()
    net.weight.grad_req = "null"
    trainer = trainer_of(net)
    backward(net)
    trainer.step(4)
    assert net.weight.data().tolist() == [[1.0] * 3] * 2
    assert net.bias.data().tolist() == [-0.5] * 2


def test_added_gradients():
    net = dense()
    for param in net.collect_params().values():
        param.grad_req = "add"
    trainer = trainer_of(net)
    backward(net)
    backward(net)
    trainer.step(4)
    assert net.bias.data().tolist() == [-1.0] * 2


def test_deferred_parameters():
    net = gluon.nn.Dense(2)
    with pytest.raises(RuntimeError, match="not been initialized"):
        gluon.Trainer(net.collect_params(), "sgd")
    net.initialize()
    trainer = trainer_of(net)
    with pytest.raises(DeferredInitializationError):
        trainer.step(1)
    backward(net)
    trainer.step(4)
    assert net.bias.data().tolist() == [-0.5] * 2


def test_a_shared_parameter_is_updated_once():
    net = dense()
    other = gluon.nn.Dense(2, in_units=3)
    other.share_parameters(net.collect_params())
    params = list(net.collect_params().values()) + list(other.collect_params().values())
    trainer = gluon.Trainer(params, "sgd", {"learning_rate": 0.5})
    with autograd.record():
        x = np.ones((4, 3))
        loss = (net(x) + other(x)).sum()
    loss.backward()
    trainer.step(4)
    assert net.bias.data().tolist() == [-1.0] * 2
    assert other.bias.data() is net.bias.data()


def test_force_reinit_is_followed():
    net = dense()
    trainer = trainer_of(net, arguments={"learning_rate": 0.5, "momentum": 0.5})
    backward(net)
    trainer.step(4)
    net.initialize(mx.init.One(), force_reinit=True)
    backward(net)
    trainer.step(4)
    assert net.weight.data().tolist() == [[0.25] * 3] * 2


def test_half_precision_keeps_master_weights():
    net = dense()
    net.cast("float16")
    trainer = trainer_of(net, arguments={"learning_rate": 1e-4, "multi_precision": True})
    for _ in range(10):
        with autograd.record():
            loss = net(np.ones((1, 3), dtype="float16")).sum()
        loss.backward()
        trainer.step(1)
    assert net.weight.data().dtype == onp.float16
    assert net.weight.data().asnumpy() == pytest.approx(float(onp.float16(0.999)), abs=0)


# Learning rate


def test_learning_rate():
    trainer = trainer_of(dense(), arguments={"learning_rate": 0.25})
    assert trainer.learning_rate == 0.25
    trainer.set_learning_rate(0.5)
    assert trainer.learning_rate == 0.5
    assert trainer.optimizer.lr == 0.5
    with pytest.raises(AttributeError):
        trainer.learning_rate = 1.0


def test_schedules():
    net = dense()
    schedule = lr_scheduler.FactorScheduler(1, 0.5, base_lr=1.0)
    trainer = trainer_of(net, arguments={"lr_scheduler": schedule})
    for expected in (1.0, 0.5, 0.25):
        backward(net)
        trainer.step(4)
        assert trainer.learning_rate == expected
    assert net.bias.data().tolist() == [-1.75] * 2
    with pytest.raises(UserWarning, match="lr_scheduler"):
        trainer.set_learning_rate(1.0)


def test_any_callable_is_a_schedule():
    trainer = trainer_of(dense(), "adam", {"lr_scheduler": lambda n: 1.0 / (1 + n)})
    assert trainer.learning_rate == 1.0


# Several devices


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


# States


def run_steps(net, trainer, steps):
    for step in steps:
        backward(net, value=1.0 + step)
        trainer.step(4)


@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_training_resumes_exactly(name, tmp_path):
    arguments = {"learning_rate": 0.125, "wd": 0.25} | ({"momentum": 0.5} if name == "sgd" else {})
    whole, part = dense(), dense()
    run_steps(whole, trainer_of(whole, name, arguments), range(6))

    first = trainer_of(part, name, arguments)
    run_steps(part, first, range(3))
    first.save_states(tmp_path / "trainer.states")
    second = trainer_of(part, name, {"momentum": 0.5} if name == "sgd" else {})
    second.load_states(str(tmp_path / "trainer.states"))
    assert second.learning_rate == 0.125
    run_steps(part, second, range(3, 6))
    onp.testing.assert_array_equal(part.weight.data().asnumpy(), whole.weight.data().asnumpy())
    assert [p.name for p in tmp_path.iterdir()] == ["trainer.states"]


@pytest.mark.parametrize("update_on_kvstore", [True, False])
def test_states_of_one_device_go_on_two(update_on_kvstore, tmp_path):
    one, two = dense(), dense(device=DEVICES)
    single = trainer_of(one, "adam", {"learning_rate": 0.125})
    run_steps(one, single, range(3))
    single.save_states(tmp_path / "s")
    for name in ("weight", "bias"):
        getattr(two, name).set_data(getattr(one, name).data())
    double = trainer_of(two, "adam", update_on_kvstore=update_on_kvstore)
    double.load_states(tmp_path / "s")
    backward(one)
    single.step(4)
    backward_on(two, values=(1.0, 1.0))
    double.step(4)
    for replica in two.weight.list_data():
        onp.testing.assert_allclose(replica.asnumpy(), one.weight.data().asnumpy(), rtol=1e-6)
    double.save_states(tmp_path / "again")
    single.load_states(tmp_path / "again")
    assert single.optimizer.num_update == 4


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: (dense(), "adam"), "states of 'SGD', but the optimizer is Adam"),
        (lambda: (dense(in_units=4), "sgd"), r"parameter 1 \(weight\) has shape \(2, 3\), expected \(2, 4\)"),
    ],
)
def test_states_of_something_else_are_refused(make, text, tmp_path):
    net = dense()
    trainer = trainer_of(net, arguments={"learning_rate": 0.25, "momentum": 0.5})
    run_steps(net, trainer, range(2))
    trainer.save_states(tmp_path / "s")
    other, name = make()
    other_trainer = trainer_of(other, name)
    with pytest.raises(ValueError, match=text) as raised:
        other_trainer.load_states(tmp_path / "s")
    assert str(tmp_path / "s") in str(raised.value)
    assert isinstance(raised.value, MXNetError)
    assert (other_trainer.learning_rate, other_trainer.optimizer.num_update) == (0.5, 0)


def test_damaged_and_missing_states(tmp_path):
    net = dense()
    trainer = trainer_of(net)
    with pytest.raises(FileNotFoundError):
        trainer.load_states(tmp_path / "nothing")
    (tmp_path / "bad").write_bytes(pickle.dumps({0: print}))
    with pytest.raises(ValueError, match=r"bad: .*builtins\.print"):
        trainer.load_states(tmp_path / "bad")
    with pytest.raises(FileNotFoundError, match="folder"):
        trainer.save_states(tmp_path / "none" / "states")


def test_states_can_be_saved_and_loaded_before_the_first_forward(tmp_path):
    net = gluon.nn.Dense(2)
    net.initialize()
    trainer = trainer_of(net)
    trainer.save_states(tmp_path / "s")
    trainer.load_states(tmp_path / "s")


# Misuse


@pytest.mark.parametrize(
    ("misuse", "kind", "text"),
    [
        (lambda net: gluon.Trainer(3, "sgd"), ValueError, "list or dict of Parameters, got int\nhint"),
        (lambda net: gluon.Trainer([1], "sgd"), ValueError, "list or dict of Parameters, got one of int"),
        (lambda net: gluon.Trainer({"a": 1}, "sgd"), ValueError, "got one of int"),
        (lambda net: gluon.Trainer(net.weight, "sgd"), ValueError, "got Parameter\nhint"),
        (lambda net: gluon.Trainer([], "sgd"), ValueError, "no parameters to train"),
        (lambda net: trainer_of(net, "nope"), ValueError, "no optimizer is called 'nope'"),
        (lambda net: trainer_of(net, arguments={"foo": 1}), TypeError, "unknown argument 'foo'"),
        (lambda net: trainer_of(net, kvstore=None, update_on_kvstore=True), ValueError, "needs a kvstore"),
        (
            lambda net: trainer_of(net, kvstore="dist_sync"),
            NotImplementedError,
            "'dist_sync' spans processes",
        ),
        (lambda net: trainer_of(net, kvstore="foo"), ValueError, "no store is called 'foo'"),
        (lambda net: trainer_of(net).step(0), ZeroDivisionError, "batch size of 0"),
        (lambda net: trainer_of(net).step(-1), ValueError, "must be positive, got -1"),
        (lambda net: trainer_of(net).step(float("nan")), ValueError, "must be positive, got nan"),
        (
            lambda net: gluon.Trainer([net.weight, dense(device=DEVICES).weight], "sgd"),
            ValueError,
            "must be on the same devices",
        ),
    ],
)
def test_misuse_is_named(misuse, kind, text):
    with pytest.raises(kind, match=text) as raised:
        misuse(dense())
    assert isinstance(raised.value, MXNetError)


def test_an_optimizer_with_arguments_is_refused():
    net = dense()
    with pytest.raises(AssertionError, match="optimizer_params must be None"):
        gluon.Trainer(net.collect_params(), optimizer.SGD(), {"learning_rate": 0.5})
    trainer = gluon.Trainer(net.collect_params(), optimizer.SGD(learning_rate=0.5))
    backward(net)
    trainer.step(4)
    assert net.bias.data().tolist() == [-0.5] * 2


def test_parameters_may_come_as_any_iterable():
    net = dense()
    for params in (net.collect_params(), net.collect_params().values(), tuple(net.collect_params().values())):
        assert {p.name for p in gluon.Trainer(params, "sgd")._params} == {"weight", "bias"}
