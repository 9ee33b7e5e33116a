"""1.x's names of blocks, parameters made through `params`, and sharing."""

import re

import numpy as onp
import pytest

from mxnp import gluon, np
from mxnp.gluon import nn


class Net(gluon.Block):
    """Two layers and a parameter of its own."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.hidden = nn.Dense(4, in_units=3)
        self.output = nn.Dense(2, in_units=4)
        self.scale = gluon.Parameter("scale", shape=(1,), init="ones")

    def forward(self, x):
        return self.output(self.hidden(x)) * self.scale.data()


def test_names_are_unique_and_follow_the_class():
    a, b = nn.Dense(1), nn.Dense(1)
    assert re.fullmatch(r"dense\d+", a.name)
    assert a.prefix == a.name + "_"
    assert a.name != b.name
    assert re.fullmatch(r"conv\d+", nn.Conv2D(1, 1).name)
    assert re.fullmatch(r"pool\d+", nn.MaxPool2D().name)
    assert re.fullmatch(r"relu\d+", nn.Activation("relu").name)
    a.name = "mine"
    assert a.name == "mine"


def test_name_scope_prefixes_what_is_created_inside():
    class Scoped(gluon.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            with self.name_scope():
                self.a = nn.Dense(1)
                self.b = nn.Dense(1, prefix="out_")
                self.body = nn.HybridSequential()
                with self.body.name_scope():
                    self.body.add(nn.Dense(1), nn.Dense(1))

    net = Scoped(prefix="net_")
    assert net.name == "net"
    assert net.a.prefix == "net_dense0_"
    assert net.b.prefix == "net_out_"
    assert net.body[1].name == "net_hybridsequential0_dense1"
    bare = Scoped(prefix="")
    assert bare.name == ""
    assert re.fullmatch(r"hybridsequential\d+_dense0_", bare.body[0].prefix)


def test_params_get_registers_under_the_attribute_it_becomes():
    class Old(gluon.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            with self.name_scope():
                self.w = self.params.get("weight", shape=(2, 3), init="ones")
                self.c = self.params.get_constant("table", np.array([1.0, 2.0]))
                self.params.get("loose", shape=(1,))

    net = Old()
    assert list(net.collect_params()) == ["w", "c", "loose"]
    assert net.params.get("weight") is net.w
    assert net.params.get("weight", shape=(2, 3)) is net.w
    assert net.params.get("absent") is None
    assert isinstance(net.c, gluon.Constant)
    with pytest.raises(AssertionError, match=r"\(2, 3\)"):
        net.params.get("weight", shape=(5, 5))

    other = Old(params=net.params)
    assert list(other.collect_params()) == ["w", "c", "loose"]
    for name, parameter in net.collect_params().items():
        assert other.collect_params()[name] is parameter
    assert other.w is other.params.get("weight") is net.w


def test_params_argument_shares():
    a = nn.Dense(4, in_units=3)
    b = nn.Dense(4, params=a.params)
    assert b.weight is a.weight
    assert b.bias is a.bias
    assert list(b.collect_params()) == ["weight", "bias"]
    with pytest.raises(AssertionError, match="does not fit"):
        nn.Dense(5, params=a.params)
    own = gluon.Parameter("weight", shape=(4, 3))
    b.weight = own
    assert b.weight is own


def test_params_argument_shares_through_children():
    a = Net()
    b = Net(params=a.collect_params())
    for name, parameter in a.collect_params().items():
        assert b.collect_params()[name] is parameter
    assert b.hidden.weight is a.hidden.weight


def test_share_parameters():
    a, b = Net(), Net()
    a.initialize()
    assert b.share_parameters(a.collect_params()) is b
    x = np.ones((2, 3))
    onp.testing.assert_array_equal(a(x).asnumpy(), b(x).asnumpy())
    assert b.output.bias is a.output.bias
    with pytest.warns(UserWarning, match="no parameter 'foo'"):
        b.share_parameters({"foo": a.scale})
    with pytest.raises(ValueError, match="expected a dict"):
        b.share_parameters(3)
