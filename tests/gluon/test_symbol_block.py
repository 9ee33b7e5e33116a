"""SymbolBlock: models of MXNet's dialects, inner layers, parameters, labels, and what is refused."""

import numpy as onp
import pytest

import mxnp as mx
from mxnp import autograd, gluon, np
from mxnp._files import FormatError
from symbol.dialects import Model, residual_net

DATA = onp.random.default_rng(1).normal(size=(2, 3, 4, 4)).astype("float32")


@pytest.fixture(params=[1, 2], ids=["1.9.1", "2.0.0b1"])
def exported(request, tmp_path):
    """The files of a network in a dialect, and the function that says what it computes."""
    model, head, reference = residual_net(request.param)
    return *model.write(tmp_path, head), reference


def test_imports(exported):
    graph, params, reference = exported
    net = gluon.SymbolBlock.imports(graph, ["data"], params)
    onp.testing.assert_allclose(net(np.array(DATA)).asnumpy(), reference(DATA), rtol=1e-4, atol=1e-4)
    net.hybridize()
    onp.testing.assert_allclose(net(np.array(DATA)).asnumpy(), reference(DATA), rtol=1e-4, atol=1e-4)


def test_imported_network_trains(exported):
    graph, params, _ = exported
    net = gluon.SymbolBlock.imports(graph, "data", params)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01})
    x = np.array(DATA)
    losses = []
    for _ in range(3):
        with autograd.record():
            loss = (net(x) ** 2).mean()
        loss.backward()
        trainer.step(1)
        losses.append(loss.item())
    assert losses[2] < losses[1] < losses[0]


def test_statistics_are_no_gradients_and_move_in_training(exported):
    graph, params, _ = exported
    net = gluon.SymbolBlock.imports(graph, "data", params)
    states = {n: p for n, p in net.collect_params().items() if "running" in n}
    assert len(states) == 2
    assert all(p.grad_req == "null" for p in states.values())
    before = {n: p.data().asnumpy() for n, p in states.items()}
    net(np.array(DATA))
    assert all((p.data().asnumpy() == before[n]).all() for n, p in states.items())
    with autograd.record():
        net(np.array(DATA))
    assert not any((p.data().asnumpy() == before[n]).all() for n, p in states.items())


def test_inner_layer(exported):
    graph, params, _ = exported
    internals = mx.sym.load(graph).get_internals()
    features = gluon.SymbolBlock(internals["act_output"], mx.sym.var("data"))
    features.load_parameters(params, ignore_extra=True)
    found = features(np.array(DATA))
    assert found.shape == (2, 4, 4, 4)
    assert (found.asnumpy() >= 0).all()
    assert len(features.collect_params()) == 5


def test_several_outputs_are_a_list(exported):
    graph, params, reference = exported
    internals = mx.sym.load(graph).get_internals()
    net = gluon.SymbolBlock([internals["act_output"], internals["fc_output"]], mx.sym.var("data"))
    net.load_parameters(params)
    found = net(np.array(DATA))
    assert isinstance(found, list)
    onp.testing.assert_allclose(found[1].asnumpy(), reference(DATA), rtol=1e-4, atol=1e-4)


def test_parameters_are_saved_and_read_again(exported, tmp_path):
    graph, params, reference = exported
    net = gluon.SymbolBlock.imports(graph, ["data"], params)
    net.save_parameters(tmp_path / "own.params")
    again = gluon.SymbolBlock.imports(graph, ["data"], tmp_path / "own.params")
    onp.testing.assert_allclose(again(np.array(DATA)).asnumpy(), reference(DATA), rtol=1e-4, atol=1e-4)


def test_cast_keeps_normalisations_in_float32(exported):
    graph, params, reference = exported
    net = gluon.SymbolBlock.imports(graph, ["data"], params)
    net.cast("float16")
    kinds = {p.dtype.name for n, p in net.collect_params().items() if "running" in n or "gamma" in n}
    assert kinds == {"float32"}
    found = net(np.array(DATA, dtype="float16"))
    assert found.dtype == "float16"
    onp.testing.assert_allclose(found.asnumpy(), reference(DATA), rtol=0.05, atol=0.05)


def test_shapes_are_inferred_before_the_first_forward():
    x = mx.sym.var("data")
    y = mx.sym.FullyConnected(mx.sym.FullyConnected(x, num_hidden=4, name="a"), num_hidden=2, name="b")
    net = gluon.SymbolBlock(y, x)
    net.initialize()
    assert net(np.ones((3, 5))).shape == (3, 2)
    assert {n: p.shape for n, p in net.collect_params().items()} == {
        "a_weight": (4, 5),
        "a_bias": (4,),
        "b_weight": (2, 4),
        "b_bias": (2,),
    }


def test_attributes_of_variables_become_the_parameters():
    x = mx.sym.var("x")
    w = mx.sym.var("w", shape=(2, 3), dtype="float64", lr_mult=3.0, wd_mult=0.5, init=mx.init.Constant(2))
    net = gluon.SymbolBlock(mx.sym.FullyConnected(x, w, num_hidden=2, no_bias=True, name="fc"), x)
    parameter = net.collect_params()["w"]
    assert (parameter.shape, parameter.dtype.name) == ((2, 3), "float64")
    assert (parameter.lr_mult, parameter.wd_mult) == (3.0, 0.5)
    net.initialize()
    assert (parameter.data().asnumpy() == 2).all()


def test_given_parameters_are_shared():
    x = mx.sym.var("x")
    y = mx.sym.FullyConnected(x, num_hidden=2, no_bias=True, name="fc")
    first = gluon.SymbolBlock(y, x)
    first.initialize(init="ones")
    first(np.ones((1, 3)))
    second = gluon.SymbolBlock(y, x, params=first.collect_params())
    first.collect_params()["fc_weight"].set_data(np.full((2, 3), 2))
    assert second(np.ones((1, 3))).tolist() == [[6, 6]]
    third = gluon.SymbolBlock(y, x, params={"fc_weight": np.ones((2, 3))})
    assert third(np.ones((1, 3))).tolist() == [[3, 3]]


def test_label_of_an_output_layer_may_be_left_out(tmp_path):
    model = Model(1)
    x = model.var("data")
    w = model.var("fc_weight", onp.ones((2, 3), "float32"))
    y = model.add("FullyConnected", "fc", [x, w], num_hidden=2, no_bias=True)
    head = model.add("SoftmaxOutput", "softmax", [y, model.var("softmax_label")])
    net = gluon.SymbolBlock.imports(*_around(model.write(tmp_path, head)))
    assert net(np.ones((2, 3))).tolist() == [[0.5, 0.5], [0.5, 0.5]]
    both = gluon.SymbolBlock(net._symbol, [mx.sym.var("data"), mx.sym.var("softmax_label")])
    both.load_parameters(tmp_path / "net-0000.params")
    with autograd.record():
        out = both(np.ones((1, 3)), np.array([1]))
    out.backward()
    onp.testing.assert_allclose(both.collect_params()["fc_weight"].grad().asnumpy(), [[0.5] * 3, [-0.5] * 3])


def _around(files):
    return files[0], ["data"], files[1]


def test_block_called_with_a_symbol_composes(exported):
    graph, params, _ = exported
    net = gluon.SymbolBlock.imports(graph, ["data"], params)
    whole = net(mx.sym.relu(mx.sym.var("picture"), name="first"))
    assert whole.list_arguments()[0] == "picture"
    assert "first_output" in whole.get_internals().list_outputs()


def test_missing_and_extra_parameters(tmp_path):
    model, head, _ = residual_net(1)
    for name in ("arg:conv0_weight", "arg:dense0_bias"):
        model.arrays.pop(name)
    model.arrays["arg:more"] = onp.ones(2, "float32")
    graph, params = model.write(tmp_path, head)
    with pytest.raises(AssertionError, match=r"net-0000\.params' lacks 'conv0_weight', 'dense0_bias'"):
        gluon.SymbolBlock.imports(graph, ["data"], params)
    with pytest.raises(ValueError, match="contains 'more', which the block does not have"):
        gluon.SymbolBlock.imports(graph, ["data"], params, allow_missing=True)
    net = gluon.SymbolBlock.imports(graph, ["data"], params, allow_missing=True, ignore_extra=True)
    net.collect_params("conv0_weight|dense0_bias").initialize()
    assert net(np.array(DATA)).shape == (2, 5)


def test_unknown_inputs_are_named(exported):
    graph, params, _ = exported
    with pytest.raises(ValueError, match="has no variable 'picture'; it has data"):
        gluon.SymbolBlock.imports(graph, ["picture"], params)
    net = gluon.SymbolBlock.imports(graph, ["data"], params)
    with pytest.raises(TypeError, match="takes the inputs data, got 2 arguments"):
        net(np.array(DATA), np.array(DATA))


def test_inputs_must_be_variables():
    x = mx.sym.var("x")
    y = mx.sym.exp(x, name="e")
    with pytest.raises(ValueError, match="<Symbol e> is no variable"):
        gluon.SymbolBlock(mx.sym.relu(y), y)
    with pytest.raises(TypeError, match="inputs must be symbols, got str"):
        gluon.SymbolBlock(y, ["x"])
    with pytest.raises(ValueError, match="an input is named twice"):
        gluon.SymbolBlock(y, [x, x])


def test_operator_that_is_missing_is_named_with_its_node(tmp_path):
    model = Model(2)
    head = model.add("_contrib_Proposal", "rpn", [model.var("data")])
    graph, _ = model.write(tmp_path, head)
    with pytest.raises(
        FormatError, match=r"net-symbol\.json: node 1: node 'rpn': mxnp has no operator '_contrib_Proposal'"
    ):
        gluon.SymbolBlock.imports(graph, ["data"])


def test_wrong_shape_names_the_node(exported):
    graph, params, _ = exported
    net = gluon.SymbolBlock.imports(graph, ["data"], params)
    with pytest.raises(ValueError, match=r"node '(conv0_fwd|node_0)' \(Convolution\)"):
        net(np.ones((2, 5, 4, 4)))


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("__shape__", "(2,"),
        ("__shape__", "x"),
        ("__dtype__", "99"),
        ("__lr_mult__", "much"),
        ("__wd_mult__", ""),
    ],
)
def test_attributes_of_variables_that_are_none_name_file_and_variable(key, text, tmp_path):
    model = Model(1)
    data, weight = model.var("data"), model.var("weight")
    model.nodes[1]["attrs"] = {key: text}
    path, _ = model.write(tmp_path, model.add("elemwise_add", "sum", [data, weight]))
    with pytest.raises(FormatError, match=rf"net-symbol\.json: variable 'weight': {key}: .*got '"):
        gluon.SymbolBlock.imports(path, "data")
