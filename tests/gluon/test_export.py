"""HybridBlock.export: the files and what they hold, round trips of many operations, batch sizes, symbols as inputs."""

import json
from pathlib import Path

import numpy as onp
import pytest

import mxnp as mx
from mxnp import autograd, gluon, np, npx
from mxnp._files import load_arrays
from mxnp.error import MXNetError
from mxnp.gluon import nn

RNG = onp.random.default_rng(0)


def normal(*shape):
    return np.array(RNG.normal(size=shape), dtype="float32")


class Residual(nn.HybridBlock):
    """Batch norms around an addition."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2D(4, 3, padding=1)
        self.body = nn.HybridSequential()
        self.body.add(nn.BatchNorm(), nn.Activation("relu"), nn.Conv2D(4, 3, padding=1))
        self.head = nn.HybridSequential()
        self.head.add(nn.MaxPool2D(2, 2), nn.Flatten(), nn.Dropout(0.3), nn.Dense(5, activation="tanh"))

    def forward(self, x):
        x = self.first(x)
        return self.head(npx.relu(self.body(x) + x))


@pytest.fixture
def net():
    net = Residual()
    net.initialize()
    with autograd.record():
        net(normal(4, 3, 8, 8))
    net.hybridize()
    net(normal(2, 3, 8, 8))
    return net


def test_files(net, tmp_path):
    names = net.export(tmp_path / "net", epoch=7)
    assert names == (f"{tmp_path}/net-symbol.json", f"{tmp_path}/net-0007.params")
    arrays = load_arrays(names[1])
    assert {name for name in arrays if name.startswith("aux:")} == {
        "aux:body.0.running_mean",
        "aux:body.0.running_var",
    }
    parameters = net.collect_params()
    assert {name.partition(":")[2] for name in arrays} == set(parameters)
    onp.testing.assert_array_equal(arrays["arg:first.weight"], parameters["first.weight"].data().asnumpy())
    whole = json.loads(Path(names[0]).read_text())
    ops = [node["op"] for node in whole["nodes"] if node["op"] != "null"]
    assert ops == [
        "Convolution",
        "BatchNorm",
        "_npx_relu",
        "Convolution",
        "_npi_add",
        "_npx_relu",
        "Pooling",
        "_npx_reshape",
        "Dropout",
        "FullyConnected",
        "_npi_tanh",
    ]
    assert whole["attrs"]["is_np_shape"] == ["int", 1]


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_round_trip_for_any_batch_size(net, tmp_path, batch):
    graph, params = net.export(str(tmp_path / "net"))
    again = gluon.SymbolBlock.imports(graph, ["data"], params)
    x = normal(batch, 3, 8, 8)
    onp.testing.assert_allclose(again(x).asnumpy(), net(x).asnumpy(), rtol=1e-5, atol=1e-6)


def test_an_import_is_exported_again(net, tmp_path):
    graph, params = net.export(tmp_path / "net")
    again = gluon.SymbolBlock.imports(graph, ["data"], params)
    graph2, params2 = again.export(tmp_path / "again")
    assert Path(graph).read_text() == Path(graph2).read_text()
    first, second = load_arrays(params), load_arrays(params2)
    assert first.keys() == second.keys()
    assert all((first[name] == second[name]).all() for name in first)


def test_exported_networks_train_on(net, tmp_path):
    again = gluon.SymbolBlock.imports(*_files(net.export(tmp_path / "net")))
    x = normal(4, 3, 8, 8)
    gradients = []
    for block in (net, again):
        params = block.collect_params()
        npx.waitall()
        with autograd.record(train_mode=False):
            loss = (block(x) ** 2).sum()
        loss.backward()
        gradients.append({name: p.grad().asnumpy() for name, p in params.items() if p.grad_req != "null"})
    assert gradients[0].keys() == gradients[1].keys()
    for name, value in gradients[0].items():
        onp.testing.assert_allclose(gradients[1][name], value, rtol=1e-4, atol=1e-5)


def _files(names):
    return names[0], ["data"], names[1]


def test_before_a_forward():
    net = nn.Dense(2, in_units=3)
    net.initialize()
    with pytest.raises(RuntimeError, match=r"first call block\.hybridize\(\) and then run forward"):
        net.export("never")


def test_optimize_for_makes_the_graph(tmp_path):
    net = nn.Dense(2, in_units=3)
    net.initialize()
    x = normal(1, 3)
    assert net.optimize_for(x, static_alloc=True, some_option=1) is None
    again = gluon.SymbolBlock.imports(*_files(net.export(tmp_path / "f")))
    assert (again(x) == net(x)).all()
    with pytest.raises(ValueError, match="there is no backend 'oneDNN'"):
        net.optimize_for(x, backend="oneDNN")


class Function(nn.HybridBlock):
    """A function as a block."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.scale = gluon.Parameter("scale", shape=(4,), init=mx.init.Uniform(1))

    def forward(self, *args):
        return self.function(*args) if len(args) > 1 else self.function(args[0], self.scale.data())


INDEX = onp.array([2, 0])

FUNCTIONS = {
    "arithmetic": lambda x, w: (x + 1) * w - 2 / (x + 9) + (3 - x) ** 2 % 5 // 2,
    "unary": lambda x, w: np.sqrt(np.abs(np.sin(x))) + np.exp2(x) + np.log1p(np.square(w)) - np.sign(-x),
    "activations": lambda x, w: npx.relu(x) + npx.sigmoid(x) * npx.gelu(x) - npx.silu(x) + npx.softrelu(x),
    "more activations": lambda x, w: npx.leaky_relu(x, act_type="elu") + npx.mish(x) + npx.log_sigmoid(x),
    "prelu": lambda x, w: npx.leaky_relu(x, w, act_type="prelu"),
    "softmaxes": lambda x, w: npx.softmax(x) + npx.log_softmax(x, axis=0) + npx.softmax(x, temperature=2.0),
    "comparisons": lambda x, w: (x > 0).astype("float32") + (x <= w) + (x > 1) + np.logical_not(x),
    "where": lambda x, w: np.where(x > 0, x, w) + np.where(x > 1, 1.0, x) + np.where(x > 1, x, 0),
    "clip": lambda x, w: np.clip(x, -0.5, 0.5) + np.maximum(x, 0.1) - np.minimum(w, x),
    "reductions": lambda x, w: x.sum() + x.mean(1, keepdims=True) + x.max(axis=(0, 1)) - x.min() + x.prod(),
    "spread": lambda x, w: x.var(1, keepdims=True) + x.std() + np.any(x > 0) + np.argmax(x, 1, keepdims=True),
    "shapes": lambda x, w: x.reshape(-1, 2).T.reshape(2, 2, -1).transpose(0, 2, 1).swapaxes(0, 1),
    "axes": lambda x, w: np.squeeze(np.expand_dims(x, (0, 2)), 0)[:, 0] + x[None][0] + np.flip(x, 1),
    "slices": lambda x, w: x[:, 1:3] + x[::1, ::2] - x[:, -1:] + x[0, 1] - x[:, 3][:, None],
    "backwards": lambda x, w: x[:, ::-1] + x[..., 3:0:-2].sum(),
    "joins": lambda x, w: np.concatenate([x, x * 2], axis=1) + np.stack([w, w]).reshape(-1)[:8],
    "repeats": lambda x, w: np.repeat(x, 2, axis=1) + np.tile(x, (1, 2)),
    "pads": lambda x, w: np.pad(x, ((0, 0), (1, 2)), constant_values=3.0),
    "products": lambda x, w: x @ x.T + np.dot(x, w)[:, None] + np.einsum("ij,kj->ik", x, x),
    "norms": lambda x, w: npx.layer_norm(x, w, w) + npx.l2_normalization(x),
    "picks": lambda x, w: npx.pick(x, np.argmax(x, 1)) + np.take(x, np.array(INDEX), axis=1).sum(1),
    "gather": lambda x, w: npx.gather_nd(x, np.array([[0, 1], [3, 2]])) + npx.one_hot(x[:2, 0] * 0, 4).sum(1),
    "orders": lambda x, w: (
        np.sort(x, 1) + np.argsort(x, 1) + np.cumsum(x, 1) + npx.topk(x, k=4, ret_typ="value")
    ),
    "embedding": lambda x, w: npx.embedding(np.abs(x).astype("int32"), np.stack([w] * 9), 9, 4),
    "constants": lambda x, w: x * np.array([1, 2, 3, 4]) + np.arange(4) + np.eye(4)[0] + np.full((4,), 2.5),
    "copies": lambda x, w: x.copy() + np.broadcast_to(w, x.shape) - npx.stop_gradient(x),
    "sequences": lambda x, w: npx.sequence_mask(x, np.array([1, 2, 3, 2]), use_sequence_length=True),
    "integers": lambda x, w: (x * 3).astype("int32") // 2 + 1,
    "several": lambda x, w: (x + 1, [x * 2, w], x.sum()),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_operations(name, tmp_path):
    net = Function(FUNCTIONS[name])
    net.initialize()
    net.hybridize()
    x = normal(3, 4)
    wanted = net(x)
    again = gluon.SymbolBlock.imports(*_files(net.export(tmp_path / "f")))
    found = again(x)
    for one, other in zip(_flat(found), _flat(wanted), strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        onp.testing.assert_allclose(one.asnumpy(), other.asnumpy(), rtol=1e-5, atol=1e-6)


def _flat(value):
    return [each for v in value for each in _flat(v)] if isinstance(value, (list, tuple)) else [value]


def test_every_rule_names_operators_and_attributes():
    from mxnp import _core
    from mxnp.symbol import _spec
    from mxnp.symbol._trace_rules import PAIRS, PLAIN

    ops = set(_core.op_names())
    for name, rule in PLAIN.items():
        op, _, rest = rule.partition("|")
        spec = _spec.find(op.strip())
        for item in rest.split():
            theirs = item[1:].partition(":")[0] if item.startswith("=") else item.rpartition(":")[2]
            assert theirs in spec.attributes, (name, item)
        assert name in ops
    for name, stem in PAIRS.items():
        assert name in ops
        assert _spec.find(f"_npi_{stem}") or _spec.find(f"_npi_{stem}_scalar")


def test_several_inputs_are_numbered(tmp_path):
    net = Function(lambda a, b, c: a * b + c["x"])
    net.hybridize()
    net(np.ones(2), np.ones(2), {"x": np.ones(2)})
    graph, params = net.export(tmp_path / "f")
    again = gluon.SymbolBlock.imports(graph, ["data0", "data1", "data2"], params)
    assert again(np.full(2, 2), np.full(2, 3), np.full(2, 4)).tolist() == [10, 10]


def test_constants_are_left_alone_by_trainers(tmp_path):
    net = Function(lambda x, w: x * w * np.array([1, 2, 3, 4]))
    net.initialize()
    net.hybridize()
    net(normal(2, 4))
    again = gluon.SymbolBlock.imports(*_files(net.export(tmp_path / "f")))
    trainer = gluon.Trainer(again.collect_params(), "sgd", {"learning_rate": 1, "wd": 0.1})
    with autograd.record():
        loss = again(normal(2, 4)).sum()
    loss.backward()
    trainer.step(1)
    assert again.collect_params()["constant0"].data().tolist() == [1, 2, 3, 4]


def test_an_operation_without_operator_is_named(tmp_path):
    net = Function(lambda x, w: np.take_along_axis(x, np.argsort(x, 1), 1) + np.cumprod(x, 1))
    net.initialize()
    net.hybridize()
    net(normal(2, 4))
    with pytest.raises(MXNetError, match=r"no operator for mxnp's 'take_along_axis'\nhint: save_parameters"):
        net.export(tmp_path / "f")
    assert list(tmp_path.iterdir()) == []


def test_a_forward_that_needs_its_batch_size(tmp_path):
    net = Function(lambda x, w: x + np.zeros((2, 4)))
    net.initialize()
    net.hybridize()
    x = normal(2, 4)
    net(x)
    again = gluon.SymbolBlock.imports(*_files(net.export(tmp_path / "f")))
    assert (again(x) == x).all()


def test_blocks_called_with_symbols(net):
    picture = mx.sym.var("picture")
    out = net(picture)
    assert out.list_arguments()[0] == "picture"
    assert out.list_auxiliary_states() == ["body.0.running_mean", "body.0.running_var"]
    values = {name: p.data() for name, p in net.collect_params().items()}
    x = normal(2, 3, 8, 8)
    onp.testing.assert_allclose(
        out.eval(picture=x, **values)[0].asnumpy(), net(x).asnumpy(), rtol=1e-5, atol=1e-6
    )


def test_blocks_called_with_symbols_of_known_shape():
    net = nn.Dense(2, in_units=3)
    net.initialize()
    out = net(mx.sym.var("x", shape=(5, 3)).as_np_ndarray())
    assert type(out) is mx.sym.np._Symbol
    assert out.list_arguments() == ["x", "weight", "bias"]
    with pytest.raises(MXNetError, match="the shapes of the symbols are not known\nhint"):
        nn.Dense(2, in_units=3)(mx.sym.var("x"))


def test_hybrid_forward_runs_on_symbols():
    class Scale(gluon.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.gain = self.params.get("gain", shape=(3,))

        def hybrid_forward(self, F, x, gain):
            return F.broadcast_mul(x, gain, name="scaled")

    out = Scale(prefix="s_")(mx.sym.var("x"))
    assert out.list_arguments() == ["x", "s_gain"]
    assert out.list_outputs() == ["scaled_output"]


def test_infer_type_follows_the_inputs():
    class Net(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.table, self.norm = nn.Embedding(5, 3), nn.BatchNorm()
            self.first, self.last = nn.Dense(4), nn.Dense(2)

        def forward(self, x):
            return self.last(self.norm(np.tanh(self.first(x))))

    net = Net()
    net.initialize()
    net.infer_type(np.ones((2, 3), dtype="float64"))
    assert net.first.weight.dtype == net.last.bias.dtype == onp.float64
    assert net.table.weight.dtype == onp.float32, "not in the graph"
    assert net(np.ones((2, 3), dtype="float64")).dtype == onp.float64
    net.infer_type(np.ones((2, 3)))
    assert net.first.weight.dtype == onp.float32
    with pytest.raises(RuntimeError):
        Net().infer_type(np.ones((2, 3)))
