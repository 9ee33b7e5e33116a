"""Layers name what they were given and cannot take: sizes, names, shapes, inputs that are no arrays."""

import inspect

import numpy as onp
import pytest

from gluon.training import shapes
from mxnp import np
from mxnp.error import MXNetError
from mxnp.gluon import nn


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.Conv2D(3, (3,)), "kernel_size must be a number or 2 numbers"),
        (lambda: nn.Conv1D(3, 3, padding=(1, 1)), "padding must be a number or 1 numbers"),
        (lambda: nn.Conv2D(3, 3, layout="CHWN"), "layout must be one of"),
        (lambda: nn.MaxPool2D(layout="NCW"), "layout must be one of"),
        (lambda: nn.Conv2D(3, 3, groups=2), "3 output channels cannot be split into 2 groups"),
        (lambda: nn.Conv2D(4, 3, groups=2, in_channels=3), "3 input channels cannot be split"),
        (lambda: nn.Conv2D(4, 3, groups=0), "Conv2D: groups must be at least 1, got 0"),
        (lambda: nn.Dropout(1.5), "rate must be a probability"),
        (lambda: nn.LeakyReLU(-1), "alpha must be at least 0"),
        (lambda: nn.Lambda("nonesuch"), "function 'nonesuch'"),
        (lambda: nn.HybridLambda(3), "expected a function"),
    ],
)
def test_bad_arguments(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("name", [name for name in nn.__all__ if isinstance(getattr(nn, name), type)])
def test_missing_arguments_are_those_of_the_layer(name):
    layer = getattr(nn, name)
    required = [
        p
        for p in inspect.signature(layer).parameters.values()
        if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD
    ]
    if required:
        with pytest.raises(TypeError, match=rf"^{name}\.__init__\(\) missing {len(required)} required"):
            layer()


@pytest.mark.parametrize(
    ("layer", "shape", "message"),
    [
        (nn.Dense(3), (), r"Dense: axis -1 is out of range for an input of shape \(\)"),
        (nn.Conv2D(3, 3), (2, 3, 4), r"Conv2D: expected an input of layout NCHW, got shape \(2, 3, 4\)"),
        (nn.BatchNorm(), (3,), r"BatchNorm: axis 1 is out of range for an input of shape \(3,\)"),
        (nn.LayerNorm(axis=2), (3, 4), "LayerNorm: axis 2 is out of range"),
        (nn.Flatten(), (), "Flatten: axis 0 is out of range"),
    ],
)
def test_inputs_of_the_wrong_shape(layer, shape, message):
    layer.initialize(force_reinit=True)
    before = shapes(layer)
    with pytest.raises(ValueError, match=message):
        layer(np.ones(shape))
    assert shapes(layer) == before


@pytest.mark.parametrize("x", [onp.ones((2, 3), dtype="float32"), [[1.0, 2.0]], 3])
@pytest.mark.parametrize(
    "layer", [nn.Dense(3), nn.Dense(3, in_units=3), nn.BatchNorm(), nn.MaxPool2D()], ids=repr
)
def test_inputs_that_are_no_arrays(layer, x):
    layer.initialize(force_reinit=True)
    with pytest.raises(TypeError, match=r"expected an mxnp array, got .*\nhint: np.array"):
        layer(x)


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda: nn.Dense("3"), TypeError, "Dense: units must be an integer, got '3'"),
        (lambda: nn.Dense(2.5), TypeError, "Dense: units must be an integer, got 2.5"),
        (lambda: nn.Dense(0), ValueError, "Dense: units must be at least 1, got 0"),
        (lambda: nn.Dense(3, in_units=None), TypeError, "Dense: in_units must be an integer"),
        (
            lambda: nn.Dense(3, activation="rely"),
            ValueError,
            "activation must be one of .*relu.*, got 'rely'",
        ),
        (lambda: nn.Embedding(0, 3), ValueError, "Embedding: input_dim must be at least 1"),
        (lambda: nn.Embedding(3, "a"), TypeError, "Embedding: output_dim must be an integer"),
        (lambda: nn.Conv2D(0, 3), ValueError, "Conv2D: channels must be at least 1"),
        (lambda: nn.Conv2D(3, "x"), TypeError, "Conv2D: kernel_size must be an integer, got 'x'"),
        (lambda: nn.Conv2D(3, (3, 0)), ValueError, "Conv2D: kernel_size must be at least 1, got 0"),
        (lambda: nn.Conv2D(3, 3, strides=0), ValueError, "Conv2D: strides must be at least 1"),
        (lambda: nn.Conv2D(3, 3, padding=-1), ValueError, "Conv2D: padding must be at least 0"),
        (lambda: nn.Conv2D(3, 3, groups=0), ValueError, "Conv2D: groups must be at least 1"),
        (lambda: nn.MaxPool2D(0), ValueError, "MaxPool2D: pool_size must be at least 1"),
        (lambda: nn.AvgPool1D(2, strides=0), ValueError, "AvgPool1D: strides must be at least 1"),
    ],
)
def test_sizes_that_are_none(make, kind, text):
    with pytest.raises(kind, match=text) as caught:
        make()
    assert isinstance(caught.value, MXNetError)


def test_sizes_may_be_numpys_integers():
    assert repr(nn.Dense(onp.int64(3), in_units=onp.int32(2))) == "Dense(2 -> 3, linear)"
    assert nn.Conv1D(np.array(2, dtype="int64"), 3).weight.shape == (2, -1, 3)


def test_a_forgotten_batch_axis_is_named():
    layer = nn.Conv2D(2, 3, in_channels=1)
    layer.initialize()
    text = r"Conv2D: expected an input of layout NCHW, got shape \(1, 8, 8\)\nhint: x\[None\] adds an axis"
    with pytest.raises(ValueError, match=text):
        layer(np.ones((1, 8, 8)))
