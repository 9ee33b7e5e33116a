"""The table of operators: every row can be called as it says, and what 1.x's conventions mean in numbers."""

import inspect

import numpy as onp
import pytest

import mxnp as mx
from mxnp import np
from mxnp.symbol import _spec
from mxnp.symbol._numpy_rules import NUMPY

RNG = onp.random.default_rng(0)
A = RNG.normal(size=(3, 4)).astype("float32")
X = RNG.normal(size=(2, 3, 4)).astype("float32")
IMG = RNG.normal(size=(2, 4, 6, 6)).astype("float32")
I3 = onp.array([0, 2, 1], "float32")
SPECS = {_spec.find(name).name: _spec.find(name) for name in list(_spec.names())}


@pytest.mark.parametrize("name", sorted(SPECS))
def test_rows_take_what_they_say(name):
    spec = SPECS[name]
    attrs = {a.name: a.default for a in spec.attributes.values()}
    if spec.legacy:
        attrs["legacy"] = True
    if spec.graphs:
        attrs["graphs"] = ()
    inputs = [None] * (2 if spec.variadic else len(spec.inputs))
    inspect.signature(spec.run).bind(*inputs, **attrs)
    for alias in spec.aliases:
        assert _spec.find(alias) is spec


@pytest.mark.parametrize("name", sorted(NUMPY))
def test_numpy_rules_name_arguments_and_attributes(name):
    op, inputs, attributes = (part.split() for part in NUMPY[name].split("|"))
    arguments = inspect.signature(getattr(np, name)).parameters
    spec = _spec.find(op[0])
    for argument in inputs:
        assert argument.lstrip("*") in arguments
    for pair in attributes:
        argument, _, attribute = pair.partition(":")
        assert argument in arguments or "kwargs" in arguments
        assert (attribute or argument) in spec.attributes


def softmax(x, axis=-1):
    e = onp.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def pooled(x, size, stride, reduce):
    windows = onp.lib.stride_tricks.sliding_window_view(x, (size, size), (2, 3))
    return reduce(windows[:, :, ::stride, ::stride], (4, 5))


# Expression over symbols; the same with NumPy.
ROWS = {
    "s.FullyConnected(x, w, num_hidden=5, no_bias=True)": lambda v: X.reshape(2, 12) @ v["w"].T,
    "s.Reshape(x, shape=(0, -1))": lambda v: X.reshape(2, 12),
    "s.Reshape(x, shape=(-3, 0))": lambda v: X.reshape(6, 4),
    "s.Reshape(x, shape=(0, 0, -4, 2, -1))": lambda v: X.reshape(2, 3, 2, 2),
    "s.Reshape(x, shape=(-2, 1))": lambda v: X.reshape(2, 3, 4, 1),
    "s.Reshape(x, shape=(-1, 0), reverse=True)": lambda v: X.reshape(6, 4),
    "s.Reshape(x, shape=(-4, -1, 2, -2), reverse=False)": lambda v: X.reshape(1, 2, 3, 4),
    "s.sum(x, axis=1, exclude=True)": lambda v: X.sum((0, 2)),
    "s.mean(x)": lambda v: X.mean(),
    "s.norm(x)": lambda v: onp.sqrt((X**2).sum()).reshape(1),
    "s.argmax(a, axis=1)": lambda v: A.argmax(1).astype("float32"),
    "s.broadcast_greater(a, row)": lambda v: (v["row"] < A).astype("float32"),
    "a > 0": lambda v: (A > 0).astype("float32"),
    "s.take(a, far)": lambda v: A[[2, 0]],
    "s.pick(a, i)": lambda v: A[[0, 1, 2], [0, 2, 1]],
    "s.one_hot(i, depth=3, on_value=2.0)": lambda v: 2 * onp.eye(3)[[0, 2, 1]],
    "s.topk(a, k=2)": lambda v: onp.argsort(-A, 1)[:, :2],
    "s.sort(a, is_ascend=False)": lambda v: -onp.sort(-A, -1),
    "s.where(i, a, s.zeros_like(a))": lambda v: A * [[0], [1], [1]],
    "s.softmax(x, axis=1, temperature=2.0)": lambda v: softmax(X / 2, 1),
    "s.SoftmaxOutput(a, i)": lambda v: softmax(A),
    "s.LeakyReLU(a)": lambda v: onp.where(A > 0, A, 0.25 * A),
    "s.Activation(a, act_type='softsign')": lambda v: A / (1 + onp.abs(A)),
    "s.hard_sigmoid(a)": lambda v: onp.clip(0.2 * A + 0.5, 0, 1),
    "s.BatchNorm(img, ch, ch, mean, ones)": lambda v: (
        (IMG - v["mean"].reshape(4, 1, 1)) / onp.sqrt(1 + 1e-3) + v["ch"].reshape(4, 1, 1)
    ),
    "s.Pooling(img, kernel=(3, 3), stride=(2, 2), pooling_convention='full')": lambda v: pooled(
        onp.pad(IMG, ((0, 0), (0, 0), (0, 1), (0, 1)), constant_values=-onp.inf), 3, 2, onp.max
    ),
    "s.Pooling(img, kernel=(2, 2), stride=(2, 2), pool_type='avg')": lambda v: pooled(IMG, 2, 2, onp.mean),
    "s.Pooling(img, global_pool=True, pool_type='avg')": lambda v: IMG.mean((2, 3), keepdims=True),
    "s.UpSampling(img, scale=2, sample_type='nearest', num_args=1)": lambda v: IMG.repeat(2, 2).repeat(2, 3),
    "s.Crop(img, offset=(1, 2), h_w=(3, 4), num_args=1)": lambda v: IMG[:, :, 1:4, 2:6],
    "s.slice_axis(x, axis=-1, begin=-3, end=None)": lambda v: X[..., -3:],
    "s.split(x, num_outputs=3, axis=1, squeeze_axis=True)[1]": lambda v: X[:, 1],
    "s.split_v2(a, (1, 3), axis=1)[1]": lambda v: A[:, 1:3],
    "s.dot(x, a, transpose_b=True)": lambda v: X @ A.T,
    "s.linalg.gemm2(x, a, transpose_b=True, alpha=2.0)": lambda v: 2 * X @ A.T,
    "s.LRN(img, nsize=3, alpha=0.1, beta=0.5, knorm=1.0)": lambda v: (
        IMG
        / onp.sqrt(
            1
            + 0.1
            / 3
            * onp.lib.stride_tricks.sliding_window_view(
                onp.pad(IMG**2, ((0, 0), (1, 1), (0, 0), (0, 0))), 3, 1
            ).sum(-1)
        )
    ),
    "s.L2Normalization(a)": lambda v: A / onp.sqrt((A**2).sum(1, keepdims=True)),
    "s.contrib.AdaptiveAvgPooling2D(img, output_size=4)": lambda v: onp.stack(
        [
            onp.stack([IMG[:, :, r, c].mean((2, 3)) for c in windows(6, 4)], -1)
            for r, _ in [(r, None) for r in windows(6, 4)]
        ],
        -2,
    ),
    "s.contrib.BilinearResize2D(img, height=11, width=11)": lambda v: linear(linear(IMG, 2), 3),
    "s.contrib.div_sqrt_dim(a)": lambda v: A / 2,
    "s.depth_to_space(img, block_size=2)": lambda v: (
        IMG.reshape(2, 2, 2, 1, 6, 6).transpose(0, 3, 4, 1, 5, 2).reshape(2, 1, 12, 12)
    ),
    "s.arange(1, 7, 2, repeat=2)": lambda v: onp.array([1, 1, 3, 3, 5, 5]),
    "s.clip(a, -0.5, 0.5)": lambda v: onp.clip(A, -0.5, 0.5),
    "s.round(half)": lambda v: onp.array([1, -1, 2, -3]),
    "s.SequenceLast(t, length, use_sequence_length=True)": lambda v: v["t"][[1, 2, 0], [0, 1, 2]],
}


def windows(size, count):
    return [slice(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]


def linear(x, axis):
    """Twice as many points, less one: the old ones, and the middles between them."""
    x = onp.moveaxis(x, axis, -1)
    out = onp.repeat(x, 2, -1)[..., :-1]
    out[..., 1::2] = (x[..., 1:] + x[..., :-1]) / 2
    return onp.moveaxis(out, -1, axis)


VALUES = {
    "a": A,
    "x": X,
    "img": IMG,
    "i": I3,
    "far": onp.array([7, -3], "float32"),
    "row": A[:1] * 0.5,
    "w": RNG.normal(size=(5, 12)).astype("float32"),
    "ch": RNG.normal(size=4).astype("float32"),
    "mean": RNG.normal(size=4).astype("float32"),
    "ones": onp.ones(4, "float32"),
    "half": onp.array([0.5, -0.5, 1.5, -2.5], "float32"),
    "t": RNG.normal(size=(4, 3, 2)).astype("float32"),
    "length": onp.array([2, 3, 1], "float32"),
}


@pytest.mark.parametrize("text", ROWS)
def test_against_numpy(text):
    graph = eval(text, {"s": mx.sym, **{name: mx.sym.var(name) for name in VALUES}})
    graph = mx.sym.load_json(graph.tojson())
    given = {name: np.array(VALUES[name], dtype="float32") for name in graph.list_inputs()}
    found = graph.eval(**given)[0].asnumpy()
    wanted = onp.asarray(ROWS[text](VALUES))
    assert found.shape == wanted.shape
    onp.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    shapes = {name: VALUES[name].shape for name in graph.list_inputs()}
    assert graph.infer_shape(**shapes)[1] == [wanted.shape]


@pytest.mark.parametrize(
    ("text", "slope"),
    [
        ("s.SoftmaxOutput(a, i)", lambda p: p - onp.eye(4)[[0, 2, 1]]),
        (
            "s.SoftmaxOutput(a, i, grad_scale=2.0, normalization='batch')",
            lambda p: (p - onp.eye(4)[[0, 2, 1]]) * 2 / 3,
        ),
        (
            "s.SoftmaxOutput(a, i, use_ignore=True, ignore_label=2, normalization='valid')",
            lambda p: (p - onp.eye(4)[[0, 2, 1]]) * [[0.5], [0], [0.5]],
        ),
        ("s.LinearRegressionOutput(a, s.ones_like(a))", lambda p: (p - 1) / 4),
        ("s.MAERegressionOutput(a, s.ones_like(a), grad_scale=4.0)", lambda p: onp.sign(p - 1)),
        ("s.LogisticRegressionOutput(a, s.ones_like(a))", lambda p: (p - 1) / 4),
        ("s.MakeLoss(a, grad_scale=3.0)", lambda p: onp.full((3, 4), 3)),
        ("s.make_loss(a)", lambda p: onp.ones((3, 4))),
        ("s.BlockGrad(a)", lambda p: onp.zeros((3, 4))),
    ],
)
def test_output_layers_have_gradients_of_their_own(text, slope):
    graph = eval(text, {"s": mx.sym, "a": mx.sym.var("a"), "i": mx.sym.var("i")})
    given = {n: np.array(VALUES[n]) for n in graph.list_arguments()}
    grads = {n: np.zeros_like(value) for n, value in given.items()}
    executor = graph.bind(mx.cpu(), given, grads)
    outputs = executor.forward(is_train=True)
    executor.backward([np.full(y.shape, 7) for y in outputs])
    onp.testing.assert_allclose(grads["a"].asnumpy(), slope(outputs[0].asnumpy()), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "text",
    [
        "np.sum(a, axis=1, keepdims=True)",
        "np.var(a, axis=0, ddof=1)",
        "np.argmax(a, 1)",
        "np.transpose(x, (2, 0, 1))",
        "np.concatenate([a, a], axis=1)",
        "np.split(a, 2, axis=1)[1]",
        "np.where(a > 0, a, 0.0)",
        "np.clip(a, -1, 1)",
        "np.einsum('ij,kj->ik', a, a)",
        "np.tensordot(a, a, ((0,), (0,)))",
        "np.pad(a, ((1, 0), (0, 2)))",
        "np.repeat(a, 2, axis=1)",
        "np.take(a, i, axis=1)",
        "np.maximum(a, 0.5)",
        "np.subtract(1, a)",
        "np.matmul(x, a.T)",
        "np.squeeze(a[:1])",
        "np.cumsum(a, axis=1)",
        "np.stack([a, a], axis=1)",
        "np.arange(4) * a",
        "np.full((4,), 2.5) + a",
        "a[1]",
        "x[:, 1:3, -1]",
        "x[0, :, ::2]",
        "a.reshape(-1, 2)",
        "x.transpose(2, 0, 1)",
        "a.mean(axis=0) - a.T[0, 0]",
        "(a @ a.T) ** 2 / 3",
        "2 // (a + 5) % 3",
        "~(a > 0)",
        "abs(-a)",
    ],
)
def test_numpy_symbols_do_what_numpy_does(text):
    arrays = {"a": np.array(A), "x": np.array(X), "i": np.array(I3)}
    symbols = {name: mx.sym.var(name).as_np_ndarray() for name in arrays}
    graph = eval(text, {"np": mx.sym.np, **symbols})
    wanted = eval(text, {"np": np, **arrays})
    graph = mx.sym.load_json(graph.tojson())
    found = graph.eval(**{name: arrays[name] for name in graph.list_inputs()})[0]
    assert found.shape == wanted.shape
    onp.testing.assert_allclose(found.asnumpy(), wanted.asnumpy(), rtol=1e-5, atol=1e-6)


def test_draws_draw_anew():
    graph = mx.sym.Group(
        [mx.sym.random.uniform(shape=(1000,)), mx.sym.np.random.normal(1.0, 2.0, size=(1000,))]
    )
    first, second = graph.eval(), graph.eval()
    assert not (first[0] == second[0]).all()
    assert 0.4 < first[0].mean().item() < 0.6
    assert 0.7 < first[1].mean().item() < 1.3
    shuffled = mx.sym.shuffle(mx.sym.var("x")).eval(x=np.arange(100))[0]
    assert sorted(shuffled.tolist()) == list(range(100))


def test_full_reductions_of_1_keep_one_axis():
    mx.npx.set_np_shape(False)
    try:
        x = mx.sym.sum(mx.sym.var("x"), name="s")
    finally:
        mx.npx.set_np_shape(True)
    assert x.eval(x=np.array(A))[0].shape == (1,)
    assert mx.sym.load_json(x.tojson()).eval(x=np.array(A))[0].shape == (1,)
    assert mx.sym.sum(mx.sym.var("x")).eval(x=np.array(A))[0].shape == ()
