"""Saving and loading the Trainer's states."""

import pickle

import numpy as onp
import pytest

from gluon.training import DEVICES, backward, backward_on, dense, trainer_of
from mxnp import gluon
from mxnp.error import MXNetError


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
