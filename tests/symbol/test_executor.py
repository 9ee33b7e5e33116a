"""bind, simple_bind and eval: forward, backward, training with 1.x's output layers, errors."""

import numpy as onp
import pytest

import mxnp as mx
from mxnp import np
from mxnp.error import MXNetError

RNG = onp.random.default_rng(0)


def normal(*shape):
    return np.array(RNG.normal(size=shape), dtype="float32")


def test_eval():
    a, b = mx.sym.var("a"), mx.sym.var("b")
    assert mx.sym.Group([a + b, a * b]).eval(mx.cpu(), a=np.array([2]), b=np.array([3])) == [
        np.array([5]),
        np.array([6]),
    ]
    assert mx.sym.arange(3).eval()[0].tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="key `b` is missing in `args`"):
        (a + b).eval(a=np.ones(1))
    with pytest.raises(ValueError, match="there is no argument 'c'"):
        (a + b).eval(a=np.ones(1), b=np.ones(1), c=np.ones(1))
    with pytest.raises(TypeError, match="'b' must be an array, got int"):
        (a + b).eval(a=np.ones(1), b=3)


def test_forward_and_backward():
    a, b = mx.sym.var("a"), mx.sym.var("b")
    x, y = normal(3), normal(3)
    grads = {"a": np.zeros(3), "b": np.zeros(3)}
    executor = (a * b).bind(mx.cpu(), {"a": x, "b": y}, grads, {"a": "write", "b": "add"})
    for _ in range(2):
        executor.forward(is_train=True)
        executor.backward(np.array([1, 2, 3]))
    onp.testing.assert_allclose(executor.grad_dict["a"].asnumpy(), y.asnumpy() * [1, 2, 3], rtol=1e-6)
    onp.testing.assert_allclose(executor.grad_dict["b"].asnumpy(), 2 * x.asnumpy() * [1, 2, 3], rtol=1e-6)
    assert executor.grad_dict["a"] is grads["a"]
    assert executor.outputs[0].shape == (3,)
    assert executor.arg_arrays[0] is x


def test_arguments_without_influence_have_gradient_zero():
    a, b = mx.sym.var("a"), mx.sym.var("b")
    grads = {"a": np.full(2, 9), "b": np.full(2, 9)}
    executor = (a * 3 + mx.sym.BlockGrad(b)).bind(mx.cpu(), [np.ones(2), np.ones(2)], grads)
    executor.forward(is_train=True)
    executor.backward()
    assert grads["a"].tolist() == [3, 3]
    assert grads["b"].tolist() == [0, 0]
    executor.forward(is_train=True)
    with pytest.raises(ValueError, match="1 outputs, but 2 gradients"):
        executor.backward([np.ones(2), np.ones(2)])


def test_lists_of_arrays_and_no_gradients():
    a, b = mx.sym.var("a"), mx.sym.var("b")
    executor = (a - b)._bind(mx.cpu(), [np.array([3]), np.array([1])], grad_req="null")
    assert executor.forward(is_train=True)[0].tolist() == [2]
    assert executor.grad_dict == {"a": None, "b": None}
    with pytest.raises(ValueError, match="Length of args does not match"):
        (a - b).bind(mx.cpu(), [np.ones(1)])
    with pytest.raises(ValueError, match="must be one of write, add, null, got 'read'"):
        (a - b).bind(mx.cpu(), [np.ones(1), np.ones(1)], grad_req="read")


def mlp():
    x = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=16, name="fc1")
    x = mx.sym.BatchNorm(mx.sym.Activation(x, act_type="relu"), name="bn", fix_gamma=False)
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(x, num_hidden=2, name="fc2"), name="softmax")


def test_a_program_of_1_trains():
    mx.random.seed(0)
    executor = mlp().simple_bind(mx.cpu(), data=(32, 5))
    data = normal(32, 5)
    label = (data[:, 0] > 0).astype("float32")
    for name, array in executor.arg_dict.items():
        if name.endswith("weight"):
            array[...] = normal(*array.shape) * 0.3
        elif name == "bn_gamma":
            array[...] = 1
    executor.aux_dict["bn_moving_var"][...] = 1
    executor.arg_dict["data"][...] = data
    executor.arg_dict["softmax_label"][...] = label
    before = executor.aux_dict["bn_moving_mean"].asnumpy()
    for _ in range(60):
        executor.forward(is_train=True)
        executor.backward()
        for name, grad in executor.grad_dict.items():
            if name not in ("data", "softmax_label"):
                executor.arg_dict[name][...] -= 0.02 * grad
    probabilities = executor.forward(is_train=True)[0]
    assert (probabilities.argmax(1) == label).mean() > 0.95
    assert not (executor.aux_dict["bn_moving_mean"].asnumpy() == before).all()
    assert executor.output_dict["softmax_output"].shape == (32, 2)


def test_forward_writes_what_it_is_given():
    executor = mlp().simple_bind(mx.cpu(), grad_req="null", data=(2, 5))
    target = executor.arg_dict["data"]
    executor.forward(data=np.ones((2, 5)))
    assert executor.arg_dict["data"] is target
    assert target.sum().item() == 10
    with pytest.raises(TypeError, match="there is no argument 'nope'"):
        executor.forward(nope=np.ones(1))
    with pytest.raises(ValueError, match=r"argument 'data' has shape \(2, 5\), got \(3, 5\)"):
        executor.forward(data=np.ones((3, 5)))


def test_parameters_are_copied_and_shapes_changed():
    executor = mlp().simple_bind(mx.cpu(), data=(2, 5))
    executor.copy_params_from({"fc2_bias": np.array([1, 2])}, {"bn_moving_mean": np.ones(16)})
    assert executor.arg_dict["fc2_bias"].tolist() == [1, 2]
    with pytest.raises(ValueError, match="Find name 'other'"):
        executor.copy_params_from({"other": np.ones(1)})
    executor.copy_params_from({"other": np.ones(1)}, allow_extra_params=True)
    larger = executor.reshape(data=(4, 5))
    assert larger.arg_dict["data"].shape == (4, 5)
    assert larger.arg_dict["fc1_weight"] is executor.arg_dict["fc1_weight"]
    assert larger.forward()[0].shape == (4, 2)


def test_backward_needs_a_forward_in_training():
    executor = mlp().simple_bind(mx.cpu(), data=(2, 5))
    executor.forward()
    with pytest.raises(MXNetError, match=r"call forward\(is_train=True\) first"):
        executor.backward()


def test_monitor_sees_every_node():
    seen = []
    executor = mlp().simple_bind(mx.cpu(), data=(2, 5))
    executor.set_monitor_callback(lambda name, array: seen.append((name, array.shape)))
    executor.forward()
    assert ("fc1_output", (2, 16)) in seen
    assert seen[-1] == ("softmax_output", (2, 2))


def test_variables_of_one_name_are_refused():
    twice = mx.sym.var("x") + mx.sym.var("x")
    with pytest.raises(MXNetError, match="two variables of the graph are called 'x'"):
        twice.bind(mx.cpu(), {"x": np.ones(1)})


def test_errors_name_the_node():
    x = mx.sym.var("x")
    y = mx.sym.Reshape(x, shape=(7, 7), name="wrong")
    with pytest.raises(MXNetError, match=r"node 'wrong' \(Reshape\)"):
        y.eval(x=np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"elemwise_add: expected equal shapes, got \(2,\) and \(1,\)\nhint"):
        (x + mx.sym.var("y")).eval(x=np.ones(2), y=np.ones(1))


def test_dtypes_are_inferred():
    x = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    executor = x.simple_bind(mx.cpu(), data=(2, 3), type_dict={"data": "float64"})
    assert {a.dtype.name for a in executor.arg_arrays} == {"float64"}


def test_optimize_for_gives_the_symbol():
    x = mx.sym.relu(mx.sym.var("x"), name="r")
    assert x.optimize_for("onednn").tojson() == x.tojson()
