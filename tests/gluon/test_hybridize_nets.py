"""Networks compiled and not: training steps, states and predictions are the same bits."""

from __future__ import annotations

import numpy as onp
import pytest

import mxnp as mx
from gluon.compiled import same_bits, x_of
from mxnp import autograd, gluon, np, npx
from mxnp.gluon import nn


@pytest.fixture(autouse=True)
def without_folding():
    """Folding normalisations into weights rounds in another way: `test_hybridize_folding` is about that."""
    before = mx.engine.set_folding(False)
    yield
    mx.engine.set_folding(before)


def lenet():
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(4, 3, padding=1),
        nn.BatchNorm(),
        nn.Activation("relu"),
        nn.MaxPool2D(2, 2),
        nn.Conv2D(6, 3, activation="tanh"),
        nn.AvgPool2D(2, 2),
        nn.Dropout(0.2),
        nn.Dense(5),
    )
    return net


class Residual(gluon.HybridBlock):
    """Two paths, one of them the input itself, several outputs on the way."""

    def __init__(self, channels):
        super().__init__()
        self.body = nn.HybridSequential()
        for _ in range(2):
            self.body.add(
                nn.Conv2D(channels, 3, padding=1, use_bias=False), nn.BatchNorm(), nn.Activation("relu")
            )
        self.skip = nn.Conv2D(channels, 1)

    def forward(self, x):
        return npx.relu(self.body(x) + self.skip(x))


def residual():
    net = nn.HybridSequential()
    net.add(Residual(4), Residual(4), nn.GlobalAvgPool2D(), nn.Dense(5))
    return net


class Attention(gluon.HybridBlock):
    """Self-attention with a mask made in forward, layer normalisation and a feed-forward part."""

    def __init__(self, size=8, heads=2):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Dense(3 * size, flatten=False)
        self.out = nn.Dense(size, flatten=False)
        self.norm = nn.LayerNorm()
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = (
            part.reshape(n, t, self.heads, c // self.heads).transpose(0, 2, 1, 3)
            for part in np.split(self.qkv(x), 3, axis=-1)
        )
        scores = np.matmul(q, k.transpose(0, 1, 3, 2)) / (c // self.heads) ** 0.5
        future = np.arange(t)[None] > np.arange(t)[:, None]
        scores = np.where(future, -1e9, scores)
        mixed = np.matmul(self.drop(npx.softmax(scores, axis=-1)), v).transpose(0, 2, 1, 3).reshape(n, t, c)
        return self.norm(x + self.out(mixed))


class Tagger(gluon.HybridBlock):
    """An embedding, attention, a recurrence over time and a classifier of every step."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.attention = Attention()
        self.cell = nn.Dense(8)
        self.top = nn.Dense(5)

    def forward(self, x):
        x = self.attention(self.embed(x))
        step = lambda e, h: (np.tanh(self.cell(np.concatenate([e, h], axis=1))),) * 2  # noqa: E731
        outs, _ = npx.foreach(step, x.swapaxes(0, 1), np.zeros((x.shape[0], 8)))
        return self.top(outs[-1] + outs.mean(0))


IMAGES = [x_of(4, 3, 8, 8, seed=i).asnumpy() for i in range(3)]
WORDS = [onp.random.default_rng(i).integers(0, 20, (4, 6)).astype("float32") for i in range(3)]


@pytest.mark.parametrize(("make", "batches"), [(lenet, IMAGES), (residual, IMAGES), (Tagger, WORDS)])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_training(make, batches, optimizer):
    results = []
    for active in (False, True):
        np.random.seed(1)
        net, loss_of = make(), gluon.loss.SoftmaxCrossEntropyLoss()
        net.initialize(init="xavier")
        net.hybridize(active)
        loss_of.hybridize(active)
        trainer = gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 0.05})
        seen = []
        for epoch in range(3):
            for batch in batches:
                x, y = np.array(batch), np.array([0, 1, 2, 3 + epoch % 2])
                with autograd.record():
                    loss = loss_of(net(x), y)
                loss.backward()
                trainer.step(4)
                seen.append(loss)
            seen.append(net(x))
        results.append(seen + [p.data() for p in net.collect_params().values()])
        if active:
            assert len(net._compiled.graphs()) == 2
            assert net._compiled.reasons() == []
    for eager, compiled in zip(*results, strict=True):
        same_bits(eager, compiled)


def test_replicas_on_several_devices():
    devices = [mx.cpu(0), mx.cpu(1)]
    results = []
    for active in (False, True):
        np.random.seed(1)
        net = lenet()
        net.initialize(init="xavier", device=devices)
        net.hybridize(active)
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
        for batch in IMAGES:
            parts = gluon.utils.split_and_load(np.array(batch), devices)
            with autograd.record():
                losses = [(net(part) ** 2).sum() for part in parts]
            autograd.backward(losses)
            trainer.step(4)
        results.append([a for p in net.collect_params().values() for a in p.list_data()])
        assert [a.device for a in results[-1][:2]] == devices
    for eager, compiled in zip(*results, strict=True):
        same_bits(eager, compiled)


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_cast(dtype):
    net = lenet()
    net.initialize()
    net.hybridize()
    x = np.array(IMAGES[0])
    net(x)
    net.cast(dtype)
    x = x.astype(dtype)
    got = net(x)
    assert got.dtype == dtype
    same_bits(net(x), got)
    net.hybridize(active=False)
    same_bits(net(x), got)


def test_modes_of_default_dtypes():
    class Ones(gluon.HybridBlock):
        def forward(self, x):
            return x + np.ones(3), np.ones(3) * 2

    net = Ones()
    net.hybridize()
    x = np.array(onp.ones(3, "float32"))
    assert [y.dtype.name for y in net(x)] == ["float32", "float32"]
    npx.set_np(dtype=True)
    try:
        assert [y.dtype.name for y in net(x)] == ["float64", "float64"]
    finally:
        npx.set_np(dtype=False)
    assert [y.dtype.name for y in net(x)] == ["float32", "float32"]
    assert len(net._compiled.graphs()) == 2


def test_files_change_what_a_graph_computes(tmp_path):
    a, b = lenet(), lenet()
    x = np.array(IMAGES[0])
    for net in (a, b):
        net.initialize(init="xavier")
        net.hybridize()
        net(x)
    a.save_parameters(tmp_path / "a.params")
    b.load_parameters(tmp_path / "a.params")
    same_bits(a(x), b(x))
    assert len(b._compiled.graphs()) == 1


def test_features_of_an_inner_layer():
    net = lenet()
    net.initialize()
    net.hybridize()
    x = np.array(IMAGES[0])
    whole, part = net(x), net[:4]
    part.hybridize()
    features = part(x)
    rest = net[4:]
    rest.hybridize()
    same_bits(rest(features), whole)
    same_bits(net(x), whole)
