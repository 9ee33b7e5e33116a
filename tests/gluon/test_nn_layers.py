"""Layers against NumPy: values, shapes found in the first forward, gradients, printing."""

import math

import numpy as onp
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from gluon.training import shapes
from mxnp import autograd, np
from mxnp.device import cpu
from mxnp.gluon import nn

RTOL = 2e-5


def sample(*shape):
    """Fixed numbers between -1 and 1 with no pattern a layer could hide behind."""
    return onp.sin(onp.arange(math.prod(shape), dtype="float32") * 2.3 + 0.7).reshape(shape)


def run(layer, x, training=False):
    """Initialise, fill every learned parameter with sample numbers, and run on the NumPy array `x`."""
    layer.initialize()
    layer(np.array(x))
    for parameter in layer.collect_params().values():
        if parameter.grad_req != "null":
            parameter.set_data(np.array(sample(*parameter.shape)))
    with autograd.record() if training else autograd.pause():
        return layer(np.array(x)).asnumpy()


def weights(layer):
    """The layer's own parameters as NumPy arrays."""
    return {name: p.data().asnumpy() for name, p in layer.params.items()}


def convolve(x, weight, strides, padding, dilation, groups):
    """Cross-correlation of (N, C, ...) with (O, C/groups, ...) in float64."""
    ndim = x.ndim - 2
    x = onp.pad(x.astype("float64"), [(0, 0), (0, 0)] + [(p, p) for p in padding])
    reach = tuple((k - 1) * d + 1 for k, d in zip(weight.shape[2:], dilation, strict=True))
    windows = sliding_window_view(x, reach, axis=tuple(range(2, 2 + ndim)))
    pick = (slice(None),) * 2 + tuple(slice(None, None, s) for s in strides)
    windows = windows[pick + tuple(slice(None, None, d) for d in dilation)]
    axes = list(range(2 + ndim, 2 + 2 * ndim))
    parts = [
        onp.tensordot(part, kernel, axes=([1, *axes], [1, *range(2, 2 + ndim)]))
        for part, kernel in zip(onp.split(windows, groups, 1), onp.split(weight, groups, 0), strict=True)
    ]
    return onp.moveaxis(onp.concatenate(parts, axis=-1), -1, 1)


# Dense and Embedding ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "flatten", "in_units"),
    [((2, 3), True, 3), ((2, 3, 4), True, 12), ((2, 3, 4), False, 4), ((4,), False, 4)],
)
@pytest.mark.parametrize("use_bias", [True, False])
def test_dense(shape, flatten, in_units, use_bias):
    layer = nn.Dense(5, flatten=flatten, use_bias=use_bias)
    x = sample(*shape)
    y = run(layer, x)
    assert shapes(layer) == {"weight": (5, in_units)} | ({"bias": (5,)} if use_bias else {})
    w = weights(layer)
    rows = x.reshape(shape[0], -1) if flatten else x
    onp.testing.assert_allclose(y, rows @ w["weight"].T + w.get("bias", 0), rtol=RTOL, atol=1e-6)


def test_dense_activation_and_bias_starts_at_zero():
    layer = nn.Dense(3, activation="relu", in_units=2)
    layer.initialize(init="ones")
    onp.testing.assert_array_equal(layer.bias.data().asnumpy(), [0, 0, 0])
    onp.testing.assert_array_equal(
        layer(np.array([[1.0, 2.0], [-1.0, -2.0]])).asnumpy(), [[3, 3, 3], [0, 0, 0]]
    )


def test_dense_gradients():
    layer = nn.Dense(2, in_units=3)
    layer.initialize()
    x = sample(4, 3)
    with autograd.record():
        loss = layer(np.array(x)).sum()
    loss.backward()
    onp.testing.assert_allclose(layer.weight.grad().asnumpy(), onp.tile(x.sum(0), (2, 1)), rtol=RTOL)
    onp.testing.assert_array_equal(layer.bias.grad().asnumpy(), [4, 4])


def test_embedding_takes_float_indices():
    layer = nn.Embedding(5, 2)
    layer.initialize()
    table = layer.weight.data().asnumpy()
    indices = [[0, 4], [2, 2]]
    for dtype in ("float32", "int32"):
        y = layer(np.array(indices, dtype=dtype))
        onp.testing.assert_array_equal(y.asnumpy(), table[onp.array(indices)])
    with autograd.record():
        loss = layer(np.array(indices, dtype="int32")).sum()
    loss.backward()
    onp.testing.assert_array_equal(layer.weight.grad().asnumpy()[:, 0], [1, 0, 2, 0, 1])
    assert nn.Embedding(5, 2, sparse_grad=True).weight.grad_stype == "row_sparse"


# Convolution and pooling --------------------------------------------------------------------------------------


@pytest.mark.parametrize("ndim", [1, 2])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"strides": 2, "padding": 1},
        {"dilation": 2, "padding": 2, "use_bias": False},
        {"groups": 2, "strides": 1, "activation": "tanh"},
    ],
    ids=str,
)
def test_convolution(ndim, options):
    layer = (nn.Conv1D, nn.Conv2D)[ndim - 1](6, kernel_size=3, **options)
    x = sample(2, 4, *(9, 8)[:ndim])
    y = run(layer, x)
    groups = options.get("groups", 1)
    assert shapes(layer)["weight"] == (6, 4 // groups, *(3,) * ndim)
    w = weights(layer)
    spread = {"strides": 1, "padding": 0, "dilation": 1} | options
    expected = convolve(
        x, w["weight"], *((spread[name],) * ndim for name in ("strides", "padding", "dilation")), groups
    )
    if "bias" in w:
        expected = expected + w["bias"].reshape(-1, *(1,) * ndim)
    if "activation" in options:
        expected = onp.tanh(expected)
    onp.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


def test_convolution_weights_follow_the_layout():
    assert nn.Conv2D(8, (3, 5), in_channels=4, layout="NHWC").weight.shape == (8, 3, 5, 4)
    assert nn.Conv2D(8, (3, 5), in_channels=4, groups=2).weight.shape == (8, 2, 3, 5)
    assert nn.Conv1D(8, 3).weight.shape == (8, -1, 3)
    assert nn.Conv3D(8, 3, in_channels=2).weight.shape == (8, 2, 3, 3, 3)


def windows(x, size, strides, padding, fill):
    """All windows of (N, C, H, W), with the window's axes last."""
    x = onp.pad(x, [(0, 0), (0, 0), (padding,) * 2, (padding,) * 2], constant_values=fill)
    return sliding_window_view(x, size, axis=(2, 3))[:, :, :: strides[0], :: strides[1]]


@pytest.mark.parametrize(("size", "strides", "padding"), [(2, None, 0), ((3, 2), 1, 0), (3, 2, 1)])
def test_pooling(size, strides, padding):
    x = sample(2, 3, 7, 6)
    sizes = (size, size) if isinstance(size, int) else size
    steps = sizes if strides is None else (strides, strides)
    y = run(nn.MaxPool2D(size, strides, padding), x)
    onp.testing.assert_array_equal(y, windows(x, sizes, steps, padding, -onp.inf).max((-2, -1)))
    y = run(nn.AvgPool2D(size, strides, padding), x)
    onp.testing.assert_allclose(y, windows(x, sizes, steps, padding, 0).mean((-2, -1)), rtol=RTOL, atol=1e-6)
    y = run(nn.AvgPool2D(size, strides, padding, count_include_pad=False), x)
    counts = windows(onp.ones_like(x), sizes, steps, padding, 0).sum((-2, -1))
    expected = windows(x, sizes, steps, padding, 0).sum((-2, -1)) / counts
    onp.testing.assert_allclose(y, expected, rtol=RTOL, atol=1e-6)


def test_ceil_mode_keeps_the_last_window():
    x = onp.arange(5, dtype="float32").reshape(1, 1, 5)
    onp.testing.assert_array_equal(run(nn.MaxPool1D(2), x), [[[1, 3]]])
    onp.testing.assert_array_equal(run(nn.MaxPool1D(2, ceil_mode=True), x), [[[1, 3, 4]]])


def test_global_pooling():
    x = sample(2, 3, 4, 5)
    onp.testing.assert_array_equal(run(nn.GlobalMaxPool2D(), x), x.max((2, 3), keepdims=True))
    onp.testing.assert_allclose(
        run(nn.GlobalAvgPool2D(), x), x.mean((2, 3), keepdims=True), rtol=RTOL, atol=1e-6
    )
    onp.testing.assert_array_equal(run(nn.GlobalMaxPool1D(), x[0]), x[0].max(2, keepdims=True))


# Normalisation and dropout ------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [1, -1])
def test_batch_norm_in_training_and_after(axis):
    x = sample(4, 3, 5) * 3 + 1
    layer = nn.BatchNorm(axis=axis, momentum=0.9, epsilon=1e-3)
    y = run(layer, x, training=True)
    w = weights(layer)
    axes = tuple(i for i in range(3) if i != axis % 3)
    line = [-1 if i == axis % 3 else 1 for i in range(3)]
    mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    gamma, beta = w["gamma"].reshape(line), w["beta"].reshape(line)
    onp.testing.assert_allclose(y, (x - mean) / onp.sqrt(var + 1e-3) * gamma + beta, rtol=1e-4, atol=1e-4)


def test_batch_norm_running_statistics():
    layer = nn.BatchNorm(momentum=0.75, in_channels=3)
    layer.initialize()
    held = layer.running_mean.data()
    x = sample(4, 3, 5) * 3 + 1
    with autograd.record():
        loss = layer(np.array(x)).sum()
    loss.backward()
    mean, var = x.mean((0, 2)), x.var((0, 2))
    onp.testing.assert_allclose(held.asnumpy(), 0.25 * mean, rtol=1e-4, atol=1e-6)
    onp.testing.assert_allclose(layer.running_var.data().asnumpy(), 0.75 + 0.25 * var, rtol=1e-4)
    y = layer(np.array(x)).asnumpy()
    expected = (x - 0.25 * mean[:, None]) / onp.sqrt(0.75 + 0.25 * var[:, None] + 1e-5)
    onp.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


def test_batch_norm_options():
    layer = nn.BatchNorm(center=False, scale=False, in_channels=2)
    assert {name: p.grad_req for name, p in layer.params.items()} == dict.fromkeys(
        ("gamma", "beta", "running_mean", "running_var"), "null"
    )
    frozen = nn.BatchNorm(use_global_stats=True, in_channels=3)
    frozen.initialize()
    x = sample(4, 3)
    with autograd.record():
        y = frozen(np.array(x))
    onp.testing.assert_allclose(y.asnumpy(), x / onp.sqrt(1 + 1e-5), rtol=1e-4)
    relu = run(nn.BatchNormReLU(), sample(4, 3) * 3, training=True)
    assert (relu >= 0).all()
    assert relu.any()


@pytest.mark.parametrize("axis", [-1, 1])
def test_layer_norm(axis):
    x = sample(2, 3, 4) * 2 + 1
    layer = nn.LayerNorm(axis=axis)
    y = run(layer, x)
    w = weights(layer)
    line = [-1 if i == axis % 3 else 1 for i in range(3)]
    mean, var = x.mean(axis, keepdims=True), x.var(axis, keepdims=True)
    expected = (x - mean) / onp.sqrt(var + 1e-5) * w["gamma"].reshape(line) + w["beta"].reshape(line)
    onp.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)
    assert nn.LayerNorm(scale=False).gamma.grad_req == "null"


def test_dropout_acts_in_training_only():
    layer = nn.Dropout(0.5)
    x = np.ones((50, 40))
    onp.testing.assert_array_equal(layer(x).asnumpy(), onp.ones((50, 40)))
    with autograd.record():
        y = layer(x).asnumpy()
    assert set(onp.unique(y)) == {0.0, 2.0}
    with autograd.train_mode():
        rows = nn.Dropout(0.5, axes=(1,))(x).asnumpy()
    assert (rows == rows[:, :1]).all()
    assert set(onp.unique(rows)) == {0.0, 2.0}
    with autograd.record(train_mode=False):
        onp.testing.assert_array_equal(layer(x).asnumpy(), onp.ones((50, 40)))
    assert nn.Dropout(0)(x) is x


# Activations and functions ------------------------------------------------------------------------------------

X = onp.linspace(-3, 3, 13, dtype="float32")
ERF = onp.array([math.erf(v / math.sqrt(2)) for v in X])
ACTIVATIONS = [
    (nn.Activation("relu"), onp.maximum(X, 0)),
    (nn.Activation("sigmoid"), 1 / (1 + onp.exp(-X))),
    (nn.Activation("tanh"), onp.tanh(X)),
    (nn.LeakyReLU(0.1), onp.where(X > 0, X, 0.1 * X)),
    (nn.ELU(1.5), onp.where(X > 0, X, 1.5 * onp.expm1(X))),
    (nn.SELU(), 1.0507009873554805 * onp.where(X > 0, X, 1.6732632423543772 * onp.expm1(X))),
    (nn.GELU(), X * (1 + ERF) / 2),
    (nn.SiLU(), X / (1 + onp.exp(-X))),
    (nn.Swish(2.0), X / (1 + onp.exp(-2 * X))),
    (nn.PReLU(), onp.where(X > 0, X, 0.25 * X)),
    (nn.Identity(), X),
    (nn.Lambda("tanh"), onp.tanh(X)),
    (nn.Lambda("relu"), onp.maximum(X, 0)),
    (nn.Lambda(lambda x: x * 2), X * 2),
    (nn.HybridLambda("tanh"), onp.tanh(X)),
    (nn.HybridLambda(lambda x: x + 1), X + 1),
    (nn.HybridLambda(lambda F, x: F.relu(x)), onp.maximum(X, 0)),
]


@pytest.mark.parametrize(("layer", "expected"), ACTIVATIONS, ids=[repr(layer) for layer, _ in ACTIVATIONS])
def test_elementwise_layers(layer, expected):
    layer.initialize(force_reinit=True)
    onp.testing.assert_allclose(layer(np.array(X)).asnumpy(), expected, rtol=2e-5, atol=1e-6)


def test_prelu_learns_a_slope_per_channel():
    layer = nn.PReLU(in_channels=2)
    layer.initialize()
    layer.alpha.set_data(np.array([0.5, 2.0]))
    y = layer(np.array([[-1.0, -1.0], [3.0, 3.0]]))
    onp.testing.assert_array_equal(y.asnumpy(), [[-0.5, -2], [3, 3]])


def test_flatten():
    for shape in [(2, 3, 4), (5,), (0, 3), (2, 0, 3)]:
        assert nn.Flatten()(np.zeros(shape)).shape == (shape[0], math.prod(shape[1:]))


# Devices and printing -----------------------------------------------------------------------------------------


def test_layers_use_the_replica_where_the_input_is():
    net = nn.HybridSequential()
    net.add(nn.Conv2D(2, 3), nn.BatchNorm(), nn.LayerNorm(), nn.Dense(3, activation="relu"))
    net.initialize(ctx=[cpu(0), cpu(1)])
    x = np.array(sample(2, 3, 5, 5))
    first = net(x)
    second = net(x.copyto(cpu(1)))
    assert second.device == cpu(1)
    onp.testing.assert_array_equal(first.asnumpy(), second.asnumpy())
    with pytest.raises(RuntimeError, match=r"'0.weight' was not initialized on device cpu\(2\)|cpu\(2\)"):
        net(x.copyto(cpu(2)))


@pytest.mark.parametrize(
    ("layer", "text"),
    [
        (nn.Dense(3), "Dense(-1 -> 3, linear)"),
        (nn.Dense(3, "relu", in_units=2), "Dense(2 -> 3, Activation(relu))"),
        (nn.Embedding(4, 5), "Embedding(4 -> 5, float32)"),
        (nn.Dropout(0.5), "Dropout(p = 0.5, axes=())"),
        (nn.Flatten(), "Flatten"),
        (
            nn.Conv2D(2, 3, padding=1, in_channels=4),
            "Conv2D(4 -> 2, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))",
        ),
        (
            nn.Conv2D(4, 3, dilation=2, groups=2, use_bias=False, activation="relu"),
            (
                "Conv2D(-1 -> 4, kernel_size=(3, 3), stride=(1, 1), dilation=(2, 2), groups=2, bias=False, "
                "Activation(relu))"
            ),
        ),
        (
            nn.MaxPool2D(),
            (
                "MaxPool2D(size=(2, 2), stride=(2, 2), padding=(0, 0), ceil_mode=False, global_pool=False, "
                "pool_type=max, layout=NCHW)"
            ),
        ),
        (
            nn.GlobalAvgPool1D(),
            (
                "GlobalAvgPool1D(size=(1,), stride=(1,), padding=(0,), ceil_mode=True, global_pool=True, "
                "pool_type=avg, layout=NCW)"
            ),
        ),
        (
            nn.BatchNorm(),
            "BatchNorm(axis=1, eps=1e-05, momentum=0.9, fix_gamma=False, use_global_stats=False, in_channels=-1)",
        ),
        (nn.LayerNorm(), "LayerNorm(eps=1e-05, axis=-1, center=True, scale=True, in_channels=-1)"),
        (nn.Lambda("tanh"), "Lambda(tanh)"),
        (nn.LeakyReLU(0.1), "LeakyReLU(0.1)"),
        (nn.SiLU(), "SiLU()"),
    ],
)
def test_repr(layer, text):
    assert repr(layer) == text


# Bad input ----------------------------------------------------------------------------------------------------
