"""autograd.get_symbol: the recorded history of an array as a symbol."""

import numpy as onp
import pytest

import mxnp as mx
from mxnp import autograd, gluon, np, npx
from mxnp.error import MXNetError

RNG = onp.random.default_rng(0)


def test_variables_calls_and_numbers():
    x, w = np.ones((2, 3)), np.array([1, 2, 3])
    x.attach_grad()
    with autograd.record():
        y = npx.relu(1 - x * 2 + w).sum(axis=1)
    symbol = autograd.get_symbol(y)
    assert symbol.list_arguments() == ["var0", "var1"]
    ops = [node.op for node, _ in symbol.get_internals()._entries if node.spec is not None]
    assert ops == ["_npi_multiply_scalar", "_npi_rsubtract_scalar", "_npi_add", "_npx_relu", "_npi_sum"]
    again = mx.sym.load_json(symbol.tojson())
    assert again.eval(var0=x, var1=w)[0].tolist() == y.tolist()
    other = np.array(RNG.normal(size=(4, 3)), dtype="float32")
    wanted = onp.maximum(1 - 2 * other.asnumpy() + w.asnumpy(), 0).sum(1)
    onp.testing.assert_allclose(again.eval(var0=other, var1=w)[0].asnumpy(), wanted, rtol=1e-6)


def test_the_history_of_a_network():
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Conv2D(3, 3, in_channels=2), gluon.nn.BatchNorm(), gluon.nn.Flatten(), gluon.nn.Dense(2))
    net.initialize()
    x = np.array(RNG.normal(size=(2, 2, 5, 5)), dtype="float32")
    net(x)
    with autograd.record(train_mode=False):
        y = net(x)
    symbol = autograd.get_symbol(y)
    parameters = net.collect_params()
    assert len(symbol.list_inputs()) == 1 + len(parameters)
    assert len(symbol.list_auxiliary_states()) == 2
    order = [
        "0.weight",
        "0.bias",
        "1.gamma",
        "1.beta",
        "1.running_mean",
        "1.running_var",
        "3.weight",
        "3.bias",
    ]
    values = dict(zip(symbol.list_inputs(), [x, *(parameters[name].data() for name in order)], strict=True))
    onp.testing.assert_allclose(symbol.eval(**values)[0].asnumpy(), y.asnumpy(), rtol=1e-5)


def test_shared_inputs_are_one_variable():
    x, w = np.array([2.0]), np.array([3.0])
    x.attach_grad()
    with autograd.record():
        y = x * x * w + x * w
    symbol = autograd.get_symbol(y)
    assert sorted(symbol.list_arguments()) == ["var0", "var1"]


def test_gradients_of_the_symbol():
    x = np.array([0.5, -1.0])
    x.attach_grad()
    with autograd.record():
        y = np.exp(x).reshape(2, 1)[0] * 3
    executor = autograd.get_symbol(y).bind(mx.cpu(), {"var0": x.detach()}, {"var0": np.zeros(2)})
    executor.forward(is_train=True)
    executor.backward()
    y.backward()
    assert executor.grad_dict["var0"].tolist() == x.grad.tolist()


def test_what_has_no_symbol():
    x = np.array([1.0])
    with pytest.raises(MXNetError, match="it was not recorded"):
        autograd.get_symbol(x + 1)
    x.attach_grad()
    with autograd.record():
        y = x * x * x
    y.backward()
    with pytest.raises(MXNetError, match="backward has used it up"):
        autograd.get_symbol(y)
    with autograd.record():
        z = np.floor(x) * x
    with pytest.raises(MXNetError, match="an operation without gradient"):
        autograd.get_symbol(z)
    with pytest.raises(TypeError, match="get_symbol: expected arrays"):
        autograd.get_symbol(3)


def test_functions_of_the_users_have_no_symbol():
    class Twice(autograd.Function):
        def forward(self, x):
            return x * 2

        def backward(self, g):
            return g * 2

    x = np.array([1.0])
    x.attach_grad()
    with autograd.record():
        y = Twice()(x) + 1
    with pytest.raises(MXNetError, match=r"it goes through an autograd\.Function"):
        autograd.get_symbol(y)
