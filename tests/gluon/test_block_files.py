"""save_parameters and load_parameters: round trips, options, and failures that change nothing."""

import pickle

import numpy as onp
import pytest

from mxnp import gluon, np, npx
from mxnp._files import load_arrays, save_arrays
from mxnp.device import cpu
from mxnp.error import MXNetError
from mxnp.gluon import nn


def network(units=3, init="ones", in_units=2):
    """Two layers, initialised."""
    net = nn.HybridSequential()
    net.add(nn.Dense(units, in_units=in_units), nn.Dense(1, in_units=units))
    net.initialize(init=init)
    return net


def values(net):
    """All parameters as NumPy arrays."""
    return {name: p.data().asnumpy() for name, p in net.collect_params().items()}


def assert_same(a, b):
    """Equal names and bits."""
    assert a.keys() == b.keys()
    for name in a:
        onp.testing.assert_array_equal(a[name], b[name])


@pytest.fixture
def saved(tmp_path):
    """A file of `network(init='uniform')` and its values."""
    net = network(init="uniform")
    file = tmp_path / "net.params"
    net.save_parameters(file)
    return file, values(net)


def test_round_trip_writes_in_place(saved):
    file, expected = saved
    net = network()
    held = net[0].weight.data()
    net.load_parameters(file)
    assert_same(values(net), expected)
    assert net[0].weight.data() is held


def test_the_file_has_structural_names(saved):
    file, expected = saved
    assert_same({name: onp.asarray(array) for name, array in load_arrays(file).items()}, expected)


def test_load_initialises_and_fills_unknown_shapes(saved):
    file, expected = saved
    net = nn.HybridSequential()
    net.add(nn.Dense(3), nn.Dense(1))
    net.load_parameters(str(file), ctx=cpu(1))
    assert_same(values(net), expected)
    assert net[0].weight.list_ctx() == [cpu(1)]
    assert net[0].weight.shape == (3, 2)
    assert net[0].weight.grad().shape == (3, 2)


def test_load_into_deferred_replicas(saved):
    file, expected = saved
    net = nn.HybridSequential()
    net.add(nn.Dense(3), nn.Dense(1))
    net.initialize(device=[cpu(0), cpu(1)])
    net.load_parameters(file)
    for array in net[0].weight.list_data():
        onp.testing.assert_array_equal(array.asnumpy(), expected["0.weight"])


def test_save_and_load_by_prefix(tmp_path):
    net, other = network(init="uniform"), network()
    net.save(tmp_path / "net")
    other.load(tmp_path / "net")
    assert_same(values(other), values(net))


def test_replicas_are_saved_as_their_mean(tmp_path):
    net = nn.Dense(1, in_units=2)
    net.initialize(device=[cpu(0), cpu(1)])
    net.weight.data(cpu(0))[:] = 1.0
    net.weight.data(cpu(1))[:] = 3.0
    net.save_parameters(tmp_path / "f")
    onp.testing.assert_array_equal(onp.asarray(load_arrays(tmp_path / "f")["weight"]), [[2, 2]])


@pytest.mark.parametrize("prefix", ["arg:", "aux:"])
def test_export_prefixes_are_taken_off(tmp_path, prefix):
    net = network(init="uniform")
    save_arrays(tmp_path / "f", {prefix + name: array for name, array in values(net).items()})
    other = network()
    other.load_parameters(tmp_path / "f")
    assert_same(values(other), values(net))


@pytest.mark.parametrize("strip", [False, True])
def test_full_names_of_1x_load(tmp_path, strip):
    class Old(gluon.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            with self.name_scope():
                self.body = nn.Dense(2, in_units=2)
                self.w = self.params.get("gain", shape=(2,))

    net = Old(prefix="old_")
    arrays = {"dense0_weight": onp.eye(2), "dense0_bias": onp.zeros(2), "gain": onp.ones(2)}
    arrays = {name if strip else "old_" + name: array.astype("float32") for name, array in arrays.items()}
    save_arrays(tmp_path / "f", arrays)
    net.load_parameters(tmp_path / "f")
    onp.testing.assert_array_equal(net.body.weight.data().asnumpy(), onp.eye(2))
    onp.testing.assert_array_equal(net.w.data().asnumpy(), [1, 1])


# Shared parameters --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("deduplicate", [False, True])
def test_shared_parameters(tmp_path, deduplicate):
    def shared():
        net = nn.Sequential()
        net.add(nn.Dense(2, in_units=2))
        net.add(nn.Dense(2, params=net[0].params))
        net.initialize()
        return net

    net, other = shared(), shared()
    net.save_parameters(tmp_path / "f", deduplicate=deduplicate)
    names = ["0.weight", "0.bias"] if deduplicate else ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert list(load_arrays(tmp_path / "f")) == names
    other.load_parameters(tmp_path / "f")
    assert_same(values(other), values(net))


# Options ------------------------------------------------------------------------------------------------------


def test_missing_and_extra_names(tmp_path, saved):
    file, expected = saved
    bigger = network()
    bigger.add(nn.Dense(1, in_units=1))
    bigger[2].initialize(init="zeros")
    before = values(bigger)
    with pytest.raises(
        AssertionError, match=r"net.params' lacks '2.weight', '2.bias'.*\nhint: allow_missing"
    ):
        bigger.load_parameters(file)
    assert_same(values(bigger), before)
    bigger.load_parameters(file, allow_missing=True)
    assert_same(values(bigger), {**before, **expected})

    smaller = network()[:1]
    before = values(smaller)
    with pytest.raises(
        ValueError, match=r"contains '1.weight', '1.bias', which.*\nhint: ignore_extra"
    ) as caught:
        smaller.load_parameters(file)
    assert isinstance(caught.value, MXNetError)
    assert_same(values(smaller), before)
    smaller.load_parameters(file, ignore_extra=True)
    onp.testing.assert_array_equal(smaller[0].weight.data().asnumpy(), expected["0.weight"])


def test_dtypes(tmp_path, saved):
    file, expected = saved
    net = network()
    net.cast("float16")
    before = values(net)
    with pytest.raises(
        AssertionError, match=r"'0.weight': expected dtype float16, found float32\nhint: cast_dtype"
    ):
        net.load_parameters(file)
    assert_same(values(net), before)
    net.load_parameters(file, cast_dtype=True)
    assert net[0].weight.data().dtype == onp.float16
    assert_same(values(net), {name: value.astype("float16") for name, value in expected.items()})
    net.load_parameters(file, cast_dtype=True, dtype_source="saved")
    assert net[0].weight.dtype == onp.float32
    assert_same(values(net), expected)
    with pytest.raises(AssertionError, match="dtype_source"):
        net.load_parameters(file, dtype_source="file")


def test_devices_that_do_not_fit(saved):
    file, _ = saved
    net = network()
    before = values(net)
    with pytest.raises(AssertionError, match=r"'0.weight': it is initialized on \[cpu\(0\)\]"):
        net.load_parameters(file, device=cpu(1))
    assert_same(values(net), before)


def test_load_dict(saved):
    _, expected = saved
    net = network()
    net.load_dict({name: np.array(value) for name, value in expected.items()})
    assert_same(values(net), expected)
    net.load_dict({}, allow_missing=True)
    with pytest.raises(AssertionError, match="param_dict lacks"):
        net.load_dict({"0.weight": np.ones((3, 2))})
    with pytest.raises(ValueError, match="without names"):
        net.load_dict([np.ones((3, 2))])


# Failures -----------------------------------------------------------------------------------------------------


def test_a_wrong_shape_names_file_parameter_and_shapes_and_changes_nothing(tmp_path):
    good = network(init="uniform")
    arrays = values(good)
    arrays["1.bias"] = onp.zeros((4, 2), dtype="float32")
    save_arrays(tmp_path / "bad.params", arrays)
    net = network()
    before = values(net)
    with pytest.raises(
        AssertionError, match=r"bad.params', parameter '1.bias': expected shape \(1,\), found \(4, 2\)"
    ):
        net.load_parameters(tmp_path / "bad.params")
    assert_same(values(net), before)


@pytest.mark.parametrize("keep", [0, 1, 0.5, 0.99])
def test_a_damaged_file_changes_nothing(saved, keep):
    file, _ = saved
    content = file.read_bytes()
    file.write_bytes(content[: int(len(content) * keep) if keep < 1 else keep])
    net = network()
    before = values(net)
    with pytest.raises(ValueError, match=r"net\.params"):
        net.load_parameters(file)
    assert_same(values(net), before)


def test_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="nonesuch"):
        network().load_parameters(tmp_path / "nonesuch")


def test_saving_needs_data(tmp_path):
    net = nn.Sequential()
    net.add(nn.Dense(1))
    with pytest.raises(RuntimeError, match=r"'0.weight' has not been initialized"):
        net.save_parameters(tmp_path / "f")
    net.initialize()
    with pytest.raises(gluon.DeferredInitializationError, match=r"'0.weight'"):
        net.save_parameters(tmp_path / "f")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("strip", [False, True])
def test_full_names_of_1x_load_into_collected_parameters(tmp_path, strip):
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Dense(2, in_units=1), nn.Dense(1, in_units=2))
    arrays = {"dense0_weight": np.array([[1], [2]]), "dense0_bias": np.array([3, 4])}
    arrays |= {"dense1_weight": np.array([[5, 6]]), "dense1_bias": np.array([7])}
    path = tmp_path / "net.params"
    npx.save(path, arrays if strip else {f"net_{name}": array for name, array in arrays.items()})
    net.collect_params().load(path, restore_prefix="net_" if strip else "")
    assert net[0].bias.data().tolist() == [3.0, 4.0]
    assert net[1].weight.data().tolist() == [[5.0, 6.0]]
    net.collect_params(".*weight").load_dict({"net_dense0_weight": np.zeros((2, 1))}, allow_missing=True)
    assert net[0].weight.data().tolist() == [[0.0], [0.0]]


def test_collected_parameters_can_be_pickled():
    net = nn.Dense(2, in_units=1)
    net.initialize(init="ones")
    assert pickle.loads(pickle.dumps(net.collect_params()))["weight"].data().tolist() == [[1.0], [1.0]]
