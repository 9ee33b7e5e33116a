"""Sequential and its kin."""

import numpy as onp
import pytest

from mxnp import gluon, np
from mxnp.gluon import nn


@pytest.fixture(params=[nn.Sequential, nn.HybridSequential])
def chain(request):
    """A chain of three dense layers, initialised."""
    net = request.param()
    net.add(nn.Dense(4, in_units=3), nn.Dense(3, in_units=4))
    net.add(nn.Dense(2, in_units=3))
    net.initialize()
    return net


def test_it_runs_in_order(chain):
    x = np.ones((2, 3))
    expected = chain[2](chain[1](chain[0](x)))
    onp.testing.assert_array_equal(chain(x).asnumpy(), expected.asnumpy())


def test_list_behaviour(chain):
    assert len(chain) == 3
    assert [type(block) for block in chain] == [nn.Dense] * 3
    assert chain[-1] is chain[2]
    for bad, error in ((3, IndexError), (-4, IndexError), ("0", TypeError), ([0], TypeError)):
        with pytest.raises(error):
            chain[bad]


def test_a_slice_is_a_chain_of_the_same_blocks(chain):
    part = chain[1:]
    assert type(part) is type(chain)
    assert part[0] is chain[1]
    assert list(part.collect_params()) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert part.collect_params()["0.weight"] is chain.collect_params()["1.weight"]
    assert len(chain[5:]) == 0


def test_a_slice_of_a_subclass_with_arguments():
    class Named(nn.HybridSequential):
        def __init__(self, title):
            super().__init__()
            self.title = title
            self.add(nn.Dense(1), nn.Dense(2))

    part = Named("net")[:1]
    assert isinstance(part, nn.HybridSequential)
    assert len(part) == 1


def test_empty_and_prefix():
    x = np.ones(2)
    assert nn.Sequential()(x) is x
    assert nn.HybridSequential(prefix="net_").prefix == "net_"


def test_tuples_pass_through():
    class Split(gluon.HybridBlock):
        def forward(self, x):
            return x, x * 2

    class Add(gluon.HybridBlock):
        def forward(self, a, b):
            return a + b

    net = nn.HybridSequential()
    net.add(Split(), Add(), Split())
    a, b = net(np.ones(2))
    onp.testing.assert_array_equal(a.asnumpy(), [3, 3])
    onp.testing.assert_array_equal(b.asnumpy(), [6, 6])


def test_a_plain_block_may_sit_in_a_hybrid_chain():
    class Plain(gluon.Block):
        def forward(self, x):
            return x * 3

    net = nn.HybridSequential()
    net.add(Plain(), nn.Activation("relu"))
    net.hybridize()
    onp.testing.assert_array_equal(net(np.array([-1.0, 2.0])).asnumpy(), [0, 6])


def test_children_of_a_chain_can_be_read_as_1x_and_2_do(chain):
    x = y = np.ones((1, 3))
    for child in chain._children.values():
        x = child(x)
        y = child()(y)
    onp.testing.assert_array_equal(x.asnumpy(), y.asnumpy())


@pytest.mark.parametrize("kind", [nn.Concatenate, nn.HybridConcatenate])
def test_concatenate(kind):
    net = kind(axis=1)
    net.add(nn.Identity(), nn.Lambda("negative"), nn.Identity())
    onp.testing.assert_array_equal(net(np.array([[1.0]])).asnumpy(), [[1, -1, 1]])
    assert type(net[:2]) is kind
    onp.testing.assert_array_equal(net[:2](np.array([[1.0]])).asnumpy(), [[1, -1]])
