"""Symbols: composition, names, listings, attributes, outputs, groups and inner nodes."""

import copy
import pickle

import numpy as onp
import pytest

import mxnp as mx
from mxnp import np
from mxnp.error import MXNetError


@pytest.fixture
def net():
    """A small network in 1.x's spelling."""
    x = mx.sym.Variable("data")
    x = mx.sym.FullyConnected(x, num_hidden=10, name="fc1")
    x = mx.sym.Activation(x, act_type="relu", name="act")
    x = mx.sym.BatchNorm(x, name="bn")
    x = mx.sym.FullyConnected(x, num_hidden=3, name="fc2")
    return mx.sym.SoftmaxOutput(x, name="softmax")


ARGUMENTS = [
    "data",
    "fc1_weight",
    "fc1_bias",
    "bn_gamma",
    "bn_beta",
    "fc2_weight",
    "fc2_bias",
    "softmax_label",
]


def test_listings(net):
    assert net.list_arguments() == ARGUMENTS
    assert net.list_auxiliary_states() == ["bn_moving_mean", "bn_moving_var"]
    assert net.list_inputs() == ARGUMENTS[:5] + ["bn_moving_mean", "bn_moving_var"] + ARGUMENTS[5:]
    assert net.list_outputs() == ["softmax_output"]
    assert (net.name, net.num_outputs, len(net)) == ("softmax", 1, 1)
    assert repr(net) == "<Symbol softmax>"


def test_internals(net):
    inner = net.get_internals()
    assert [n for n in inner.list_outputs() if n.endswith("_output")] == [
        "fc1_output",
        "act_output",
        "bn_output",
        "fc2_output",
        "softmax_output",
    ]
    assert inner["act_output"].list_arguments() == ARGUMENTS[:3]
    assert inner[0].name == "data"
    with pytest.raises(ValueError, match='Cannot find output that matches name "nope"'):
        inner["nope"]


def test_children_and_inputs(net):
    assert net.get_children().list_outputs() == ["fc2_output", "softmax_label"]
    assert mx.sym.var("x").get_children() is None
    assert net.get_inputs().list_outputs() == net.list_inputs()


def test_groups_and_outputs():
    a, b = mx.sym.var("a"), mx.sym.var("b")
    both = mx.sym.Group([mx.sym.exp(a, name="e"), b])
    assert both.name is None
    assert repr(both) == "<Symbol group [e, b]>"
    assert [each.name for each in both] == ["e", "b"]
    assert both[-1].name == "b"
    assert both[0:1].list_outputs() == ["e_output"]
    with pytest.raises(IndexError, match="2 is out of range"):
        both[2]
    with pytest.raises(TypeError, match="Expected a list of symbols"):
        mx.sym.Group([])


def test_outputs_of_several():
    x = mx.sym.var("x")
    parts = mx.sym.split(x, num_outputs=3, name="sp")
    assert parts.list_outputs() == ["sp_output0", "sp_output1", "sp_output2"]
    assert parts["sp_output1"].list_outputs() == parts[1].list_outputs() == ["sp_output1"]
    assert mx.sym.topk(x, ret_typ="both", name="t").list_outputs() == ["t_output0", "t_output1"]
    assert mx.sym.BatchNorm(x, name="b", output_mean_var=True).list_outputs() == [
        "b_output",
        "b_mean",
        "b_var",
    ]
    with pytest.raises(MXNetError, match=r"a symbol of 3 outputs cannot be an input\nhint: choose one"):
        mx.sym.relu(parts)


@pytest.mark.parametrize(
    ("make", "op", "name"),
    [
        (lambda a, b: a + b, "elemwise_add", "_plus0"),
        (lambda a, b: a - b, "elemwise_sub", "_minus0"),
        (lambda a, b: a * 2, "_mul_scalar", "_mulscalar0"),
        (lambda a, b: 1 - a, "_rminus_scalar", "_rminusscalar0"),
        (lambda a, b: 2 / a, "_rdiv_scalar", "_rdivscalar0"),
        (lambda a, b: 2**a, "_rpower_scalar", "_rpower_scalar0"),
        (lambda a, b: a % b, "_mod", "_mod0"),
        (lambda a, b: -a, "_mul_scalar", "_mulscalar0"),
        (lambda a, b: a > 1, "_greater_scalar", "_greater_scalar0"),
        (lambda a, b: a == b, "_equal", "_equal0"),
        (lambda a, b: abs(a), "abs", "abs0"),
        (lambda a, b: mx.sym.FullyConnected(a, num_hidden=1), "FullyConnected", "fullyconnected0"),
        (lambda a, b: mx.sym.concat(a, b), "Concat", "concat0"),
        (lambda a, b: mx.sym.zeros((2,)), "_zeros", "_zeros0"),
        (lambda a, b: a.reshape((2, 3)), "Reshape", "reshape0"),
        (lambda a, b: a.sum(axis=1), "sum", "sum0"),
        (lambda a, b: a.astype("int32"), "Cast", "cast0"),
        (lambda a, b: mx.sym.maximum(a, b), "_maximum", "_maximum0"),
        (lambda a, b: mx.sym.power(a, 2), "_power_scalar", "_powerscalar0"),
    ],
)
def test_operators_and_their_names(make, op, name):
    with mx.name.NameManager():
        made = make(mx.sym.var("a"), mx.sym.var("b"))
    assert (made._entries[0][0].op, made.name) == (op, name)


@pytest.mark.parametrize(
    ("make", "op", "name"),
    [
        (lambda a, b: a + b, "_npi_add", "add0"),
        (lambda a, b: 1 - a, "_npi_rsubtract_scalar", "rsubtract_scalar0"),
        (lambda a, b: a > 1, "_npi_greater_scalar", "greater_scalar0"),
        (lambda a, b: -a, "_npi_negative", "negative0"),
        (lambda a, b: a.T, "_npi_transpose", "transpose0"),
        (lambda a, b: a.sum(axis=1), "_npi_sum", "sum0"),
        (lambda a, b: a.reshape(-1, 3), "_np_reshape", "reshape0"),
        (lambda a, b: a[:, 1], "_npx_reshape", "reshape0"),
        (lambda a, b: mx.sym.np.where(a, 1.0, b), "_npi_where_lscalar", "where_lscalar0"),
        (lambda a, b: mx.sym.np.concatenate([a, b], axis=1), "Concat", "concatenate0"),
        (lambda a, b: mx.sym.npx.fully_connected(a, b, num_hidden=3), "FullyConnected", "fully_connected0"),
        (lambda a, b: mx.sym.npx.relu(a), "_npx_relu", "relu0"),
        (lambda a, b: mx.sym.np.random.normal(size=(2,)), "_npi_normal", "normal0"),
    ],
)
def test_operators_of_numpy_symbols(make, op, name):
    with mx.name.NameManager():
        made = make(mx.sym.var("a").as_np_ndarray(), mx.sym.var("b").as_np_ndarray())
    assert (made._entries[0][0].op.replace("_npi_concatenate", "Concat"), made.name) == (op, name)
    assert type(made) is mx.sym.np._Symbol
    assert type(made.as_nd_ndarray()) is mx.sym.Symbol


def test_prefix_and_attribute_scopes():
    with mx.name.Prefix("pre_"):
        x = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=2, name="fc")
    assert x.list_arguments() == ["x", "pre_fc_weight", "pre_fc_bias"]
    with mx.AttrScope(ctx_group="dev1", __stage__="1"):
        with mx.AttrScope(__stage__="2"):
            inner = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=2, name="fc")
        outer = mx.sym.var("y")
    assert inner.attr("ctx_group") == inner.attr("__ctx_group__") == "dev1"
    assert inner.attr_dict()["fc_weight"]["__stage__"] == "2"
    assert outer.attr("__stage__") == "1"
    assert mx.sym.var("z").attr("__stage__") is None
    with pytest.raises(ValueError, match="attributes must be strings"):
        mx.AttrScope(lr_mult=2)


def test_attributes():
    v = mx.sym.var("v", shape=(0, 3), dtype="float16", lr_mult=2.0, init=mx.init.Zero(), __note__="n")
    assert v.attr("__shape__") == "(0, 3)"
    assert v.attr("__dtype__") == "2"
    assert v.list_attr()["lr_mult"] == "2.0"
    assert v.attr("nothing") is None
    net = mx.sym.FullyConnected(v, num_hidden=2, name="fc", attr={"__a__": "b"}, lr_mult="0.5")
    assert net.attr_dict()["fc"]["num_hidden"] == "2"
    assert net.attr("__a__") == "b"
    v._set_attr(__note__="changed")
    assert v.attr("__note__") == "changed"
    with pytest.raises(ValueError, match="start and end with double"):
        mx.sym.var("v", other="x")


def test_compose(net):
    body = net.get_internals()["fc1_output"]
    moved = body(data=mx.sym.exp(mx.sym.var("z"), name="e"))
    assert moved.list_arguments() == ["z", "fc1_weight", "fc1_bias"]
    assert body.list_arguments() == ARGUMENTS[:3]
    assert body(mx.sym.var("first")).list_arguments()[0] == "first"
    named = body(data=mx.sym.var("z"), name="moved")
    assert (named.name, named.list_outputs(), body.name) == ("moved", ["moved_output"], "fc1")
    with pytest.raises(MXNetError, match="there is no variable 'nope'"):
        body(nope=mx.sym.var("z"))


def test_wrong_calls():
    x = mx.sym.var("x")
    with pytest.raises(
        MXNetError, match="there is no attribute 'bogus'; it has num_hidden, no_bias, flatten"
    ):
        mx.sym.FullyConnected(x, num_hidden=3, bogus=1)
    with pytest.raises(MXNetError, match=r"FullyConnected needs the attribute num_hidden \(int\)"):
        mx.sym.FullyConnected(x)
    with pytest.raises(MXNetError, match="attribute num_hidden: expected an integer, got 'many'"):
        mx.sym.FullyConnected(x, num_hidden="many")
    with pytest.raises(MXNetError, match="there is no input 'bias'; it takes data, weight"):
        mx.sym.FullyConnected(x, bias=x, num_hidden=3, no_bias=True)
    with pytest.raises(AttributeError, match=r"no operator 'FulyConnected'\nhint: similar: FullyConnected"):
        mx.sym.FulyConnected(x)
    with pytest.raises(TypeError, match="Expect a string for variable"):
        mx.sym.var(3)
    with pytest.raises(TypeError, match="unsupported operand"):
        x + "y"


def test_a_symbol_has_no_value():
    x = mx.sym.var("x")
    with pytest.raises(NotImplementedError, match="no value before it is bound"):
        bool(x)
    with pytest.raises(AttributeError, match="no value before it is bound"):
        x.asnumpy()
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)


def test_copies_share_and_pickles_keep():
    x = mx.sym.relu(mx.sym.var("x"), name="r")
    for other in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert other.tojson() == x.tojson()
    assert type(pickle.loads(pickle.dumps(x.as_np_ndarray()))) is mx.sym.np._Symbol


def test_numpy_scalars_and_arrays_leave_operators_to_the_symbol():
    x = mx.sym.var("x").as_np_ndarray()
    assert (onp.float32(2) * x).eval(x=np.array([1.5]))[0].tolist() == [3]
    assert (x**2).eval(x=np.array([3]))[0].tolist() == [9]


def test_deep_graphs_need_no_recursion():
    x = mx.sym.var("x")
    for _ in range(5000):
        x = x + 1
    assert len(x.get_internals()) == 5001
    assert mx.sym.load_json(x.tojson()).eval(x=np.zeros(1))[0].tolist() == [5000]
    assert x.infer_shape(x=(2,))[1] == [(2,)]
    del x


def test_debug_text(net):
    text = net.debug_str()
    assert "Op:FullyConnected, Name=fc1" in text
    assert "arg[1]=fc1_weight(0)" in text


@pytest.mark.parametrize("index", [None, ..., (slice(None), None), [0, 1], 1.5])
def test_an_index_that_is_none_of_a_symbol_of_numpy(index):
    """MXNet 2's class, which is NumPy's."""
    with pytest.raises(IndexError, match="a symbol is indexed by integers and slices"):
        mx.sym.var("x").as_np_ndarray()[index]
