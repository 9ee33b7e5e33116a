"""register_op_hook: every operator of a call is shown, with the values it has there, and nothing else changes."""

import numpy as onp
import pytest

import mxnp as mx
from mxnp import autograd, gluon, np, npx
from mxnp.error import MXNetError
from mxnp.gluon import nn


class Seen(list):
    """The rows of a hook, and the arrays by node name."""

    def __call__(self, node, operator, array):
        self.append((node, operator))
        self.arrays = {**getattr(self, "arrays", {}), node: array.asnumpy()}


def network():
    net = nn.HybridSequential()
    net.add(nn.Dense(3, activation="relu", in_units=2), nn.BatchNorm(in_channels=3), nn.Dropout(0.5))
    net.add(nn.Dense(2, in_units=3))
    np.random.seed(3)
    net.initialize(mx.init.Normal(1))
    return net


OUTPUTS = [
    ("node_0_output", "fully_connected"),
    ("node_1_output", "relu"),
    ("node_2_output", "batch_norm"),
    ("node_3_output", "dropout"),
    ("node_4_output", "fully_connected"),
]


@pytest.mark.parametrize("hybridized", [False, True])
def test_every_operator_is_shown_at_every_call(hybridized):
    net, seen = network(), Seen()
    if hybridized:
        net.hybridize()
    net.register_op_hook(seen)
    x = np.array([[1.0, -2.0]])
    y = net(x)
    assert seen == OUTPUTS
    onp.testing.assert_array_equal(seen.arrays["node_4_output"], y.asnumpy())
    onp.testing.assert_array_equal(seen.arrays["node_1_output"], net[0](x).asnumpy())
    assert seen[5:] == OUTPUTS[:2]  # net[0]'s own call
    net(x)
    assert seen[7:] == OUTPUTS


def test_inputs_are_shown_where_asked():
    net, seen = network(), Seen()
    net.register_op_hook(seen, monitor_all=True)
    x = np.array([[1.0, -2.0]])
    net(x)
    assert [node for node, _ in seen[:6]] == [
        "node_0_input0",
        "node_0_input1",
        "node_0_input2",
        "node_0_output",
        "node_1_input0",
        "node_1_output",
    ]
    onp.testing.assert_array_equal(seen.arrays["node_0_input0"], x.asnumpy())
    onp.testing.assert_array_equal(seen.arrays["node_0_input1"], net[0].weight.data().asnumpy())
    assert sum(node.startswith("node_2_input") for node, _ in seen) == 5


@pytest.mark.parametrize("hybridized", [False, True])
def test_results_gradients_statistics_and_draws_stay(hybridized):
    x = np.random.normal(size=(8, 2))
    figures = []
    for hook in (None, Seen()):
        net = network()
        if hybridized:
            net.hybridize()
        if hook is not None:
            net.register_op_hook(hook, monitor_all=True)
        np.random.seed(7)
        with autograd.record():
            y = net(x)
            loss = (y**2).sum()
        loss.backward()
        params = net.collect_params()
        grads = [p.grad().asnumpy() for p in params.values() if p.grad_req != "null"]
        figures.append(
            [y.asnumpy(), *grads, params["1.running_var"].data().asnumpy(), np.random.rand(2).asnumpy()]
        )
    for with_hook, without in zip(*figures, strict=True):
        onp.testing.assert_array_equal(with_hook, without)
    onp.testing.assert_array_equal(hook.arrays["node_4_output"], figures[0][0])
    onp.testing.assert_array_equal(
        hook.arrays["node_2_input3"], onp.zeros(3)
    )  # the running mean, before the call


def test_operators_of_many_kinds():
    class Mixed(gluon.HybridBlock):
        def forward(self, x, pair, scale=None):
            a, b = np.split(x[:, ::-2], 2, axis=1)
            c = np.concatenate([a, pair[0][None, 1]], axis=0)[1:]
            return (
                npx.topk(c, k=1, ret_typ="both")[1],
                (b * 2 + scale).sum(),
                np.where(c > 1, c, 0).astype("float16"),
            )

    net, seen = Mixed(), Seen()
    net.register_op_hook(seen)
    x, other, scale = np.arange(8).reshape(2, 4), np.full((2, 1), 9), np.ones(1)
    results = net(x, [other], scale=scale)
    for node, operator in seen:
        assert node.startswith("node_"), operator
    assert {"slice", "concatenate", "topk", "sum", "where", "astype", "multiply", "add"} <= {
        op for _, op in seen
    }
    last = {operator: seen.arrays[node] for node, operator in seen}
    onp.testing.assert_array_equal(last["astype"], results[2].asnumpy())
    onp.testing.assert_array_equal(last["sum"], results[1].asnumpy())


def test_the_outermost_hook_sees_the_call():
    net, outer, inner = network(), Seen(), Seen()
    net.register_op_hook(outer)
    net[0].register_op_hook(inner)
    net(np.ones((1, 2)))
    assert (len(outer), len(inner)) == (5, 0)
    net[0](np.ones((1, 2)))
    assert (len(outer), len(inner)) == (5, 2)


def test_a_plain_block_passes_it_on():
    net, seen = nn.Sequential(), Seen()
    net.add(nn.Dense(2, in_units=2), nn.Dense(1, in_units=2))
    net.initialize()
    net.register_op_hook(seen)
    net(np.ones((1, 2)))
    assert seen == [("node_0_output", "fully_connected")] * 2


def test_what_cannot_be_shown():
    class Branching(gluon.HybridBlock):
        def forward(self, x):
            return x * 2 if float(x.sum()) > 0 else x

    net = Branching()
    with pytest.raises(TypeError, match="a hook must be callable, got int"):
        net.register_op_hook(3)
    net.register_op_hook(print)
    with pytest.raises(MXNetError, match=r"the data of an array .* was asked for") as caught:
        net(np.ones(2))
    assert caught.value.__notes__ == ["Branching has an operator hook, for which its calls are traced"]
