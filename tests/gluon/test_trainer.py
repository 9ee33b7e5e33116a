"""The Trainer on one device: in-place updates, stale gradients, learning rates; and misuse that is named."""

import numpy as onp
import pytest

import mxnp as mx
from gluon.training import DEVICES, backward, dense, trainer_of
from mxnp import autograd, gluon, lr_scheduler, np, optimizer
from mxnp.error import DeferredInitializationError, MXNetError


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
