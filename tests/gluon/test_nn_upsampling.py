"""Transposed convolutions, group and instance normalisation, pixel shuffles and reflection padding."""

import numpy as onp
import pytest

import mxnp as mx
from mxnp import autograd, np
from mxnp.error import MXNetError
from mxnp.gluon import nn


def drawn(*shape):
    return np.random.normal(size=shape, dtype="float64")


def made(layer, dtype="float64"):
    layer.initialize(mx.init.Normal(1))
    layer.cast(dtype)
    return layer


CASES = [
    pytest.param(
        nn.Conv1D, nn.Conv1DTranspose, (9,), {"kernel_size": 3, "strides": 2, "padding": 1}, id="1d"
    ),
    pytest.param(nn.Conv2D, nn.Conv2DTranspose, (5, 6), {"kernel_size": 3, "padding": (1, 0)}, id="2d"),
    pytest.param(nn.Conv2D, nn.Conv2DTranspose, (7, 9), {"kernel_size": (3, 2), "dilation": 2}, id="dilated"),
    pytest.param(
        nn.Conv2D, nn.Conv2DTranspose, (8, 8), {"kernel_size": 3, "strides": 2, "groups": 2}, id="groups"
    ),
    pytest.param(nn.Conv3D, nn.Conv3DTranspose, (4, 3, 5), {"kernel_size": 2, "strides": (2, 1, 2)}, id="3d"),
]


@pytest.mark.parametrize(("plain", "transposed", "sizes", "options"), CASES)
def test_a_transposed_convolution_is_the_adjoint(plain, transposed, sizes, options):
    """<conv(x), y> = <x, conv_transpose(y)> for the same weight, with the output padding that gives x's sizes."""
    down = made(plain(4, in_channels=6, use_bias=False, **options))
    x = drawn(2, 6, *sizes)
    y = drawn(*down(x).shape)
    small = transposed(6, in_channels=4, use_bias=False, **options)
    shape = made(small)(y).shape
    padding = tuple(a - b for a, b in zip(x.shape[2:], shape[2:], strict=True))
    up = made(transposed(6, in_channels=4, use_bias=False, output_padding=padding, **options))
    up.weight.set_data(down.weight.data())
    assert up(y).shape == x.shape
    onp.testing.assert_allclose(float((down(x) * y).sum()), float((x * up(y)).sum()), rtol=1e-10)


def test_a_transposed_convolution_finds_its_channels():
    layer = nn.Conv2DTranspose(6, 3, strides=2, groups=2, activation="relu")
    assert repr(layer) == (
        "Conv2DTranspose(-1 -> 6, kernel_size=(3, 3), stride=(2, 2), groups=2, Activation(relu))"
    )
    layer.initialize(mx.init.One())
    y = layer(np.ones((1, 4, 2, 2)))
    assert layer.weight.shape == (4, 3, 3, 3)
    assert y.shape == (1, 6, 5, 5)
    assert float(y[0, 0, 2, 2]) == 8  # four pixels meet there, each with two channels of its group
    assert repr(layer).startswith("Conv2DTranspose(4 -> 6,")


def test_the_bias_is_added_once_to_each_output():
    layer = nn.Conv1DTranspose(2, 2, in_channels=1, bias_initializer=mx.init.Constant([1, 2]))
    layer.initialize(mx.init.One())
    assert layer(np.zeros((1, 1, 2))).tolist() == [[[1, 1, 1], [2, 2, 2]]]


def test_gradients_of_a_transposed_convolution():
    layer = made(nn.Conv2DTranspose(3, 2, strides=2, in_channels=2))
    mx.test_utils.check_numeric_gradient(layer, [drawn(2, 2, 3, 3)])


def normalised(x, axes):
    x = x.asnumpy()
    return (x - x.mean(axes, keepdims=True)) / onp.sqrt(x.var(axes, keepdims=True) + 1e-5)


@pytest.mark.parametrize("groups", [1, 2, 6])
def test_group_norm(groups):
    layer, x = nn.GroupNorm(groups), drawn(3, 6, 4, 5)
    layer.initialize()
    layer.cast("float64")
    wanted = normalised(x.reshape(3, groups, -1), (2,)).reshape(x.shape)
    onp.testing.assert_allclose(layer(x).asnumpy(), wanted, rtol=1e-8)
    layer.gamma.set_data(np.arange(6, dtype="float64"))
    layer.beta.set_data(np.full(6, 0.5, dtype="float64"))
    scale = onp.arange(6.0).reshape(6, 1, 1)
    onp.testing.assert_allclose(layer(x).asnumpy(), wanted * scale + 0.5, rtol=1e-8)
    assert repr(layer) == f"GroupNorm(eps=1e-05, num_groups={groups}, center=True, scale=True, in_channels=6)"


@pytest.mark.parametrize(("axis", "others"), [(1, (2, 3)), (-1, (1, 2)), (2, (1, 3))])
def test_instance_norm_along_any_axis(axis, others):
    layer, x = nn.InstanceNorm(axis=axis, scale=True), drawn(2, 3, 4, 5)
    layer.initialize()
    layer.cast("float64")
    onp.testing.assert_allclose(layer(x).asnumpy(), normalised(x, others), rtol=1e-8)
    assert layer.gamma.shape == (x.shape[axis],)


def test_what_a_normalisation_learns():
    learned = {
        name: [p.grad_req for p in (layer.gamma, layer.beta)]
        for name, layer in {
            "group": nn.GroupNorm(),
            "instance": nn.InstanceNorm(),
            "fixed": nn.GroupNorm(center=False, scale=False),
        }.items()
    }
    assert learned == {"group": ["write"] * 2, "instance": ["null", "write"], "fixed": ["null"] * 2}
    layer, x = nn.GroupNorm(2, in_channels=4), np.random.normal(size=(2, 4, 3))
    layer.initialize()
    with autograd.record():
        loss = (layer(x) ** 2).sum()
    loss.backward()
    assert float(np.abs(layer.gamma.grad()).sum()) > 0


def test_batch_norm_of_one_device():
    x = np.random.normal(size=(4, 3, 2))
    layers = [nn.BatchNorm(in_channels=3, momentum=0.5), nn.SyncBatchNorm(in_channels=3, momentum=0.5)]
    for layer in layers:
        layer.initialize()
        with autograd.record():
            layer(x)
    assert np.array_equal(layers[0].running_mean.data(), layers[1].running_mean.data())
    assert np.array_equal(layers[0](x), layers[1](x))
    with pytest.raises(
        NotImplementedError, match="SyncBatchNorm: a batch on 2 devices has not arrived\nhint: "
    ):
        nn.SyncBatchNorm(num_devices=2)


@pytest.mark.parametrize(
    ("layer", "factors", "sizes"),
    [
        (nn.PixelShuffle1D, (3,), (4,)),
        (nn.PixelShuffle2D, (2, 3), (4, 5)),
        (nn.PixelShuffle3D, (2, 1, 3), (2, 3, 4)),
    ],
    ids=["1d", "2d", "3d"],
)
def test_pixel_shuffles(layer, factors, sizes):
    """Element (f, p) of the channels f and places p stands at p * factor + f."""
    product = int(onp.prod(factors))
    x = onp.arange(2 * 4 * product * onp.prod(sizes), dtype="float32").reshape(2, 4 * product, *sizes)
    y = layer(factors if len(factors) > 1 else factors[0])(np.array(x)).asnumpy()
    assert y.shape == (2, 4, *(s * f for s, f in zip(sizes, factors, strict=True)))
    split = x.reshape(2, 4, *factors, *sizes)
    for f in onp.ndindex(*factors):
        picked = y[(slice(None), slice(None), *(slice(a, None, b) for a, b in zip(f, factors, strict=True)))]
        onp.testing.assert_array_equal(picked, split[(slice(None), slice(None), *f)])


@pytest.mark.parametrize("padding", [1, (0, 0, 0, 0, 1, 2, 0, 3)])
def test_reflection_padding(padding):
    x = onp.arange(48.0).reshape(1, 2, 4, 6)
    top, bottom, left, right = (padding,) * 4 if isinstance(padding, int) else padding[4:]
    wanted = onp.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), mode="reflect")
    onp.testing.assert_array_equal(nn.ReflectionPad2D(padding)(np.array(x)).asnumpy(), wanted)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (lambda: nn.Conv2DTranspose(4, 3, output_padding=1), "output_padding must be less than the stride"),
        (
            lambda: nn.Conv2DTranspose(4, 3, groups=3, in_channels=4),
            "Conv2DTranspose: 4 input channels cannot",
        ),
        (lambda: nn.Conv2DTranspose(4, 3, layout="NHWC"), "layout must be one of"),
        (lambda: nn.PixelShuffle2D(0), "PixelShuffle2D: factor must be at least 1, got 0"),
        (lambda: nn.PixelShuffle2D(2)(np.ones((1, 6, 2, 2))), "6 channels cannot be split by the factors"),
        (lambda: nn.PixelShuffle1D(2)(np.ones((1, 6, 2, 2))), "expected an input of 3 dimensions"),
        (lambda: nn.ReflectionPad2D((1, 2)), "padding must be a number, or eight"),
        (lambda: made(nn.GroupNorm(3), "float32")(np.ones((1, 4, 2))), "group"),
    ],
)
def test_misuse_is_named(wrong, text):
    with pytest.raises(ValueError, match=text) as caught:
        wrong()
    assert isinstance(caught.value, MXNetError)
