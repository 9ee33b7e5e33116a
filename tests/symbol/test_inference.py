"""infer_shape and infer_type: parameters from data, both directions, partial answers, contradictions."""

import numpy as onp
import pytest

import mxnp as mx
from mxnp import npx
from mxnp.error import MXNetError


def dense(**kwargs):
    return mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=10, name="fc", **kwargs)


@pytest.mark.parametrize(
    ("make", "data", "parameters", "output"),
    [
        (lambda x: mx.sym.FullyConnected(x, num_hidden=5, name="f"), (2, 3, 4), [(5, 12), (5,)], (2, 5)),
        (
            lambda x: mx.sym.FullyConnected(x, num_hidden=5, flatten=False, no_bias=True, name="f"),
            (2, 3, 4),
            [(5, 4)],
            (2, 3, 5),
        ),
        (
            lambda x: mx.sym.Convolution(x, kernel=(3, 3), num_filter=8, num_group=2, pad=(1, 1), name="c"),
            (2, 4, 9, 9),
            [(8, 2, 3, 3), (8,)],
            (2, 8, 9, 9),
        ),
        (
            lambda x: mx.sym.Deconvolution(x, kernel=(2, 2), num_filter=8, stride=(2, 2), name="d"),
            (2, 4, 5, 5),
            [(4, 8, 2, 2)],
            (2, 8, 10, 10),
        ),
        (lambda x: mx.sym.BatchNorm(x, axis=-1, name="b"), (2, 3, 4), [(4,), (4,)], (2, 3, 4)),
        (lambda x: mx.sym.LayerNorm(x, name="l"), (2, 3, 4), [(4,), (4,)], (2, 3, 4)),
        (lambda x: mx.sym.InstanceNorm(x, name="i"), (2, 3, 4), [(3,), (3,)], (2, 3, 4)),
        (
            lambda x: mx.sym.Embedding(x, input_dim=7, output_dim=3, name="e"),
            (2, 5),
            [(7, 3)],
            (2, 5, 3),
        ),
        (lambda x: mx.sym.LeakyReLU(x, act_type="prelu", name="p"), (2, 3, 4), [(3,)], (2, 3, 4)),
        (lambda x: mx.sym.SoftmaxOutput(x, name="s"), (4, 3), [(4,)], (4, 3)),
        (lambda x: mx.sym.SoftmaxOutput(x, multi_output=True, name="s"), (4, 3, 5), [(4, 5)], (4, 3, 5)),
        (lambda x: mx.sym.LinearRegressionOutput(x, name="r"), (4, 3), [(4, 3)], (4, 3)),
        (lambda x: mx.sym.Pooling(x, kernel=(2, 2), stride=(2, 2)), (1, 3, 8, 6), [], (1, 3, 4, 3)),
        (lambda x: mx.sym.Reshape(x, shape=(0, -1)), (2, 3, 4), [], (2, 12)),
    ],
)
def test_parameters_come_from_the_data(make, data, parameters, output):
    arguments, outputs, _ = make(mx.sym.var("data")).infer_shape(data=data)
    assert arguments[1:] == parameters
    assert outputs == [output]


def test_auxiliary_states_too():
    net = mx.sym.BatchNorm(mx.sym.var("data"), name="bn")
    assert net.infer_shape(data=(2, 3, 4)) == ([(2, 3, 4), (3,), (3,)], [(2, 3, 4)], [(3,), (3,)])
    assert net.infer_shape((2, 3, 4))[1] == [(2, 3, 4)]


def test_equal_shapes_tell_each_other():
    a, b = mx.sym.var("a"), mx.sym.var("b")
    assert mx.sym.exp(a + b * 2).infer_shape(b=(2, 3))[0] == [(2, 3), (2, 3)]
    whole = mx.sym.Group([a + b, mx.sym.relu(b) + mx.sym.var("c", shape=(4,))])
    assert whole.infer_shape()[0] == [(4,), (4,), (4,)]


def test_partial_answers():
    net = dense()
    assert net.infer_shape_partial(data=(-1, 5)) == ([(-1, 5), (10, 5), (10,)], [(-1, 10)], [])
    assert net.infer_shape_partial() == ([None, None, (10,)], [None], [])
    conv = mx.sym.Convolution(mx.sym.var("data"), kernel=(3, 3), num_filter=4, stride=(2, 2), name="c")
    assert conv.infer_shape_partial(data=(-1, 3, 9, 9))[1] == [(-1, 4, 4, 4)]
    assert conv.infer_shape_partial(data=(2, 3, -1, 9))[1] == [(2, 4, -1, 4)]


def test_unknown_is_zero_in_the_mode_of_1():
    npx.set_np_shape(False)
    try:
        net = dense()
        assert net.infer_shape_partial(data=(0, 5)) == ([(0, 5), (10, 5), (10,)], [(0, 10)], [])
        assert net.infer_shape_partial() == ([(), (), (10,)], [()], [])
    finally:
        npx.set_np_shape(True)


def test_undecided_shapes_warn_and_give_none():
    with pytest.warns(UserWarning, match="Cannot decide shape for the following arguments") as caught:
        assert dense().infer_shape() == (None, None, None)
    assert "data: None" in str(caught[0].message)


def test_contradictions_name_the_node():
    with pytest.raises(MXNetError, match=r"node 'fc' \(FullyConnected\), input weight: Shape inconsistent"):
        dense().infer_shape(data=(2, 5), fc_weight=(3, 3))
    a, b = mx.sym.var("a"), mx.sym.var("b")
    with pytest.raises(MXNetError, match="Shape inconsistent"):
        (a + b).infer_shape(a=(2,), b=(3,))
    with pytest.raises(MXNetError, match="node 'd'"):
        mx.sym.dot(a, b, name="d").infer_shape(a=(2, 3), b=(4, 5))
    with pytest.raises(MXNetError, match="there is no argument 'nope'"):
        dense().infer_shape(nope=(2, 3))
    with pytest.raises(TypeError, match="expected a shape for 'data', got 3"):
        dense().infer_shape(data=3)


def test_shapes_of_large_networks_cost_no_computation():
    x = mx.sym.var("data")
    for i in range(6):
        x = mx.sym.Convolution(x, kernel=(3, 3), pad=(1, 1), num_filter=512, name=f"c{i}")
    assert x.infer_shape(data=(256, 512, 64, 64))[1] == [(256, 512, 64, 64)]


def test_types():
    net = dense()
    assert net.infer_type(data="float16") == ([onp.float16] * 3, [onp.float16], [])
    assert net.infer_type() == (None, None, None)
    assert net.infer_type_partial() == ([None] * 3, [None], [])
    e = mx.sym.Embedding(mx.sym.var("i"), input_dim=3, output_dim=2, dtype="float64", name="e")
    assert e.infer_type(i="int32") == ([onp.int32, onp.float64], [onp.float64], [])
    assert mx.sym.Cast(mx.sym.var("x"), dtype="int8").infer_type(x=onp.float32)[1] == [onp.int8]
    bn = mx.sym.BatchNorm(mx.sym.var("x", dtype="float16"), name="b")
    assert bn.infer_type()[0] == [onp.float16, onp.float32, onp.float32]
    assert mx.sym.argsort(mx.sym.var("x")).infer_type(x="float16")[1] == [onp.float32]
