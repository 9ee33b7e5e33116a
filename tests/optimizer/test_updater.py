"""The Updater: states by index, and states saved as bytes without pickle."""

import io
import json
import pickle
from pathlib import Path

import numpy as onp
import pytest

from mxnp import lr_scheduler, np, optimizer
from mxnp.error import MXNetError

NAMES = sorted(set(optimizer.Optimizer.opt_registry) - {"sgld"})


def grad_at(step, size=3):
    return np.array(onp.sin(onp.arange(size) + step).astype("float32"))


def train(updater, weights, first, last):
    for step in range(first, last):
        updater(list(range(len(weights))), [grad_at(step, w.size) for w in weights], weights)


def fresh():
    return [np.array([1.0, -2.0, 0.5]), np.array([3.0, 0.25])]


@pytest.mark.parametrize("name", NAMES)
def test_training_resumes_exactly(name):
    arguments = {"momentum": 0.9} if name in ("sgd", "lars", "dcasgd") else {}
    whole, weights = optimizer.get_updater(optimizer.create(name, wd=0.01, **arguments)), fresh()
    train(whole, weights, 0, 6)

    first, resumed = optimizer.get_updater(optimizer.create(name, wd=0.01, **arguments)), fresh()
    train(first, resumed, 0, 3)
    saved = first.get_states(dump_optimizer=True)
    second = optimizer.get_updater(optimizer.create(name, **arguments))
    second.set_states(saved)
    assert second.optimizer.num_update == 3
    train(second, resumed, 3, 6)
    for a, b in zip(weights, resumed, strict=True):
        onp.testing.assert_array_equal(a.asnumpy(), b.asnumpy())


def test_hyperparameters_come_back_but_not_the_rescaling():
    opt = optimizer.SGD(learning_rate=0.5, momentum=0.75, wd=0.125, clip_gradient=2.0, rescale_grad=0.1)
    saved = optimizer.Updater(opt).get_states(dump_optimizer=True)
    other = optimizer.Updater(optimizer.SGD(rescale_grad=0.5))
    other.set_states(saved)
    got = other.optimizer
    assert (got.lr, got.momentum, got.wd, got.clip_gradient) == (0.5, 0.75, 0.125, 2.0)
    assert got.rescale_grad == 0.5


def test_numpy_scalars_as_hyperparameters_come_back():
    opt = optimizer.SGD(learning_rate=onp.float32(0.5), momentum=onp.float64(0.75), wd=onp.int64(2))
    other = optimizer.SGD(learning_rate=onp.float32(0.25))
    optimizer.Updater(other).set_states(optimizer.Updater(opt).get_states(dump_optimizer=True))
    assert (other.lr, other.momentum, other.wd) == (0.5, 0.75, 2)


def test_counts_of_each_device_come_back():
    opt = optimizer.Adam()
    opt._update_count([0, 1])
    opt._set_current_device(1)
    opt._update_count([0, 0])
    other = optimizer.Updater(optimizer.Adam())
    other.set_states(optimizer.Updater(opt).get_states(dump_optimizer=True))
    assert other.optimizer._all_index_update_counts == {0: {0: 1, 1: 1}, 1: {0: 2}}
    assert other.optimizer._index_update_count == {0: 1, 1: 1}
    assert other.optimizer.num_update == 2


def test_a_schedule_comes_back():
    opt = optimizer.SGD(lr_scheduler=lr_scheduler.FactorScheduler(2, 0.5, base_lr=1.0))
    other = optimizer.SGD(lr_scheduler=lr_scheduler.FactorScheduler(7, 0.25, base_lr=3.0))
    optimizer.Updater(other).set_states(optimizer.Updater(opt).get_states(dump_optimizer=True))
    assert [other.lr_scheduler(n) for n in (2, 3, 5)] == [1.0, 0.5, 0.25]


def test_master_weights_are_saved():
    updater = optimizer.get_updater(optimizer.SGD(learning_rate=1e-4, momentum=0.5, multi_precision=True))
    weight = np.ones(2, dtype="float16")
    updater(0, np.ones(2, dtype="float16"), weight)
    other = optimizer.get_updater(optimizer.SGD(learning_rate=1e-4, momentum=0.5, multi_precision=True))
    other.set_states(updater.get_states())
    other(0, np.ones(2, dtype="float16"), weight)
    master, momentum = other.states[0]
    assert (master.dtype, momentum.dtype) == (onp.float32, onp.float32)
    assert master.asnumpy() == pytest.approx(1 - 1e-4 - 1.5e-4, abs=1e-7)


def test_the_format_is_npz_without_objects():
    updater = optimizer.get_updater(optimizer.Adam())
    train(updater, fresh(), 0, 1)
    with onp.load(io.BytesIO(updater.get_states()), allow_pickle=False) as archive:
        assert sorted(archive.files) == ["0", "1", "2", "3", "manifest"]
        manifest = json.loads(archive["manifest"].tobytes())
    assert manifest["states"] == [[0, [{"array": 0}, {"array": 1}]], [1, [{"array": 2}, {"array": 3}]]]


def test_another_optimizer_is_refused_and_nothing_changes():
    saved = optimizer.Updater(optimizer.Adam(learning_rate=0.5)).get_states(dump_optimizer=True)
    updater = optimizer.Updater(optimizer.SGD(learning_rate=0.25))
    train(updater, fresh(), 0, 1)
    states = updater.states
    with pytest.raises(ValueError, match="states of 'Adam', but the optimizer is SGD\nhint:"):
        updater.set_states(saved)
    assert updater.states is states
    assert (updater.optimizer.lr, updater.optimizer.num_update) == (0.25, 1)


def manifest_bytes(**changes):
    manifest = {"format": "mxnp-optimizer-states", "version": 1, "states": [], **changes}
    stream = io.BytesIO()
    onp.savez(stream, manifest=onp.frombuffer(json.dumps(manifest).encode(), onp.uint8))
    return stream.getvalue()


def with_optimizer(**changes):
    return manifest_bytes(optimizer={"class": "SGD", "values": {}, "counts": [], **changes})


def shared(depth):
    tree = None
    for _ in range(depth):
        tree = (tree, tree)
    return tree


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "unknown kind of file"),
        (b"garbage", "unknown kind of file"),
        (manifest_bytes()[:-30], "set_states"),
        (manifest_bytes(format="other"), "damaged optimizer states: format 'other'"),
        (manifest_bytes(version=2), "version 2, while this mxnp reads 1"),
        (manifest_bytes(states=[[0, {"array": 7}]]), "damaged optimizer states"),
        (manifest_bytes(states=[[0.5, None]]), "index 0.5"),
        (manifest_bytes(states=3), "damaged optimizer states"),
        (pickle.dumps({0: print}), "it names builtins.print, which states do not need"),
        (pickle.dumps([1, 2]), "not a dict of states by index"),
        (pickle.dumps({0: 3.5}), "a state is float"),
        (pickle.dumps({0: None})[:-3], "not MXNet's optimizer states"),
        (b"\x80\x02}K\x00cbuiltins\nbytearray\n\x8a\x06\x00\x00\x00\x00\x00\x01\x85Rs.", "it encodes a int"),
        (pickle.dumps({0: shared(60)}), "share parts without end"),
        (with_optimizer(values={"lr": "fast"}), "'lr' of SGD is 'fast'"),
        (with_optimizer(values={"lr": [1]}), r"'lr' of SGD is \[1\]"),
        (with_optimizer(counts=[[0, [["a"]]]]), "damaged optimizer states"),
        (with_optimizer(scheduler=3), "damaged optimizer states"),
    ],
)
def test_bad_bytes_are_refused(data, text):
    updater = optimizer.Updater(optimizer.SGD(lr_scheduler=lr_scheduler.FactorScheduler(1)))
    with pytest.raises(ValueError, match=text) as raised:
        updater.set_states(data)
    assert isinstance(raised.value, MXNetError)
    assert updater.states == {}


def test_a_hostile_pickle_runs_nothing(tmp_path):
    target = tmp_path / "made"

    class Attack:
        def __reduce__(self):
            return (Path.touch, (target,))

    with pytest.raises(ValueError, match="which states do not need"):
        optimizer.Updater(optimizer.SGD()).set_states(pickle.dumps({0: Attack()}))
    assert not target.exists()


@pytest.mark.parametrize("version", ["1", "2"])
def test_states_that_mxnet_saved(version):
    data = (Path(__file__).parent / f"mxnet{version}_adam.states").read_bytes()
    updater = optimizer.Updater(optimizer.Adam())
    updater.set_states(data)
    assert updater.optimizer.lr == 0.125
    assert updater.optimizer._index_update_count == {0: 2}
    weight = np.array([1.0, -2.0, 0.5])
    train(updater, [weight], 2, 3)
    mean, variance = updater.states[0]
    expected_mean, expected_variance = onp.zeros(3), onp.zeros(3)
    for step in range(3):
        g = onp.sin(onp.arange(3) + step)
        expected_mean = 0.9 * expected_mean + 0.1 * g
        expected_variance = 0.999 * expected_variance + 0.001 * g * g
    assert mean.asnumpy() == pytest.approx(expected_mean, rel=1e-5)
    assert variance.asnumpy() == pytest.approx(expected_variance, rel=1e-4)
