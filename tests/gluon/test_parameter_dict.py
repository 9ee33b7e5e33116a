"""ParameterDict: a dict with 1.x's methods."""

import numpy as onp
import pytest

from mxnp import gluon, np
from mxnp.device import cpu
from mxnp.gluon import nn


def two_layers():
    """An initialised network with known shapes."""
    net = nn.HybridSequential()
    net.add(nn.Dense(3, in_units=2), nn.Dense(1, in_units=3))
    net.initialize(init="ones")
    return net


def test_it_is_a_dict():
    params = two_layers().collect_params()
    assert params["0.weight"].shape == (3, 2)
    assert params.get("nonesuch") is None
    assert params.get("nonesuch", 4) == 4
    assert params.get("0.weight") is params["0.weight"]
    assert len({**params}) == len(params) == 4
    with pytest.raises(KeyError):
        params["nonesuch"]
    assert repr(params).startswith("{'0.weight': Parameter (shape=(3, 2), dtype=float32)")


def test_get_makes_registers_and_finds():
    params = gluon.ParameterDict("net_")
    assert params.prefix == "net_"
    weight = params.get("weight", shape=(2, 0))
    assert params.get("weight", shape=(0, 3)) is weight
    assert weight.shape == (2, 3)
    with pytest.raises(AssertionError, match="dtype float32"):
        params.get("weight", dtype="float16")
    constant = params.get_constant("table", np.array([1.0]))
    assert params.get_constant("table") is constant
    with pytest.raises(KeyError, match="nonesuch"):
        params.get_constant("nonesuch")
    assert list(params) == ["weight", "table"]
    shared = gluon.ParameterDict(shared=params)
    assert shared.get("weight", shape=(2, 3)) is weight
    assert list(shared) == ["weight"]


def test_update_refuses_to_lose_a_parameter():
    a, b = two_layers().collect_params(), two_layers().collect_params()
    a.update(a)
    with pytest.raises(ValueError, match=r"'0.weight'.*\nhint:"):
        a.update(b)
    a.update({"other": b["0.weight"]})
    assert list(a)[-1] == "other"


def test_methods_reach_every_parameter_once():
    net = nn.Sequential()
    net.add(nn.Dense(2, in_units=2))
    net.add(nn.Dense(2, params=net[0].params))
    params = net.collect_params()
    params.initialize("ones", ctx=[cpu(0), cpu(1)], verbose=True)
    onp.testing.assert_array_equal(net[0].weight.data(cpu(1)).asnumpy(), onp.ones((2, 2)))
    assert params.list_ctx() == [cpu(0), cpu(1)]
    params.reset_ctx(cpu(1))
    assert params.list_device() == [cpu(1)]
    params.setattr("grad_req", "add")
    assert net[1].weight.grad_req == "add"
    net[0].weight.grad()[:] = 4.0
    params.zero_grad()
    assert not net[0].weight.grad().asnumpy().any()


def test_save_and_load_with_prefixes(tmp_path):
    net, other = two_layers(), two_layers()
    net[0].weight.set_data(np.full((3, 2), 2.0))
    file = tmp_path / "first.params"
    net.collect_params("0").save(file, strip_prefix="0.")
    other.collect_params("0").load(file, restore_prefix="0.")
    onp.testing.assert_array_equal(other[0].weight.data().asnumpy(), onp.full((3, 2), 2))
    with pytest.raises(ValueError, match=r"'0.weight' does not start with 'x'"):
        net.collect_params().save(file, strip_prefix="x")
    with pytest.raises(AssertionError, match=r"lacks '1.weight'"):
        other.collect_params().load(file, restore_prefix="0.")


def test_load_dict():
    net = nn.Dense(2, in_units=1)
    net.initialize()
    params = net.collect_params()
    params.load_dict({"weight": np.array([[3], [4]]), "bias": np.ones(2)}, ctx=None)
    assert net.weight.data().tolist() == [[3.0], [4.0]]
    assert net.bias.data().tolist() == [1.0, 1.0]
    with pytest.raises(AssertionError, match=r"file 'a\.params' lacks 'bias'"):
        params.load_dict({"weight": np.zeros((2, 1))}, filename="a.params")
    assert net.weight.data().tolist() == [[3.0], [4.0]]
