"""Compiled blocks in prediction: normalisations become part of the weights before them, and what is made of parameters
alone is computed once; both anew when a parameter was written.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as onp
import pytest

import mxnp as mx
from gluon.compiled import block, same_bits, x_of
from mxnp import autograd, gluon, np, npx
from mxnp.gluon import nn


def normalised(layer, **options):
    """A layer and its normalisation, with numbers that show in the result."""
    net = nn.HybridSequential()
    net.add(layer, nn.BatchNorm(**options), nn.Activation("relu"))
    return net


def filled(net, x):
    """The network, initialised, its statistics moved by some training."""
    net.initialize(mx.init.Normal(0.5))
    with autograd.record():
        net(x)
    for name, parameter in net.collect_params().items():
        if name.endswith(("gamma", "beta")):
            values = onp.random.default_rng(len(name)).uniform(0.5, 2, parameter.shape)
            parameter.set_data(np.array(values.astype(parameter.dtype)))
    return net


NETS = {
    "convolution": (lambda: normalised(nn.Conv2D(4, 3, use_bias=False)), (2, 3, 6, 6)),
    "convolution with bias": (lambda: normalised(nn.Conv2D(4, 3)), (2, 3, 6, 6)),
    "groups": (lambda: normalised(nn.Conv2D(4, 3, groups=2)), (2, 4, 6, 6)),
    "depthwise": (lambda: normalised(nn.Conv2D(4, 3, groups=4, use_bias=False)), (2, 4, 6, 6)),
    "one axis": (lambda: normalised(nn.Conv1D(4, 3)), (2, 3, 6)),
    "fixed gamma": (lambda: normalised(nn.Conv2D(4, 3), scale=False), (2, 3, 6, 6)),
    "no beta": (lambda: normalised(nn.Conv2D(4, 3), center=False), (2, 3, 6, 6)),
    "dense": (lambda: normalised(nn.Dense(4)), (2, 3)),
    "dense, last axis": (lambda: normalised(nn.Dense(4, flatten=False), axis=2), (2, 3, 5)),
}


def calls(net):
    (graph,) = [g for g in net._compiled.graphs() if not g.is_training]
    return graph.num_calls


@pytest.mark.parametrize(("make", "shape"), NETS.values(), ids=NETS)
def test_normalisation_becomes_part_of_the_weights(make, shape):
    x = x_of(*shape)
    net = filled(make(), x)
    eager = net(x)
    net.hybridize()
    first, second = net(x), net(x)
    same_bits(first, eager)  # it is traced while it runs
    onp.testing.assert_allclose(second.asnumpy(), eager.asnumpy(), rtol=1e-5, atol=1e-5)
    assert calls(net) == 2, "the layer and the activation"


@pytest.mark.parametrize("layer", [lambda: nn.Conv2D(4, 3), lambda: nn.Dense(4)])
def test_the_second_of_two_normalisations_stays(layer):
    x = x_of(2, 3, 6, 6)
    net = nn.HybridSequential()
    net.add(layer(), nn.BatchNorm(), nn.BatchNorm(), nn.BatchNorm())
    filled(net, x)
    eager = net(x)
    net.hybridize()
    net(x)
    onp.testing.assert_allclose(net(x).asnumpy(), eager.asnumpy(), rtol=1e-5, atol=1e-5)
    assert calls(net) == 3


def test_folding_can_be_turned_off():
    x = x_of(2, 3, 6, 6)
    net = filled(normalised(nn.Conv2D(4, 3)), x)
    eager = net(x)
    net.hybridize()
    net(x), net(x)
    before = mx.engine.set_folding(False)
    try:
        net(x)
        same_bits(net(x), eager)
        assert calls(net) == 3
    finally:
        assert mx.engine.set_folding(before) is False


def test_training_and_recording_are_not_folded():
    x = x_of(2, 3, 6, 6)
    nets = [filled(normalised(nn.Conv2D(4, 3)), x) for _ in range(2)]
    for name, parameter in nets[1].collect_params().items():
        parameter.set_data(nets[0].collect_params()[name].data())
    nets[1].hybridize()
    for train_mode in (True, False, True, False):
        results = []
        for net in nets:
            with autograd.record(train_mode):
                y = net(x)
            y.backward()
            results.append([y, *(p.grad() for p in net.collect_params().values() if p.grad_req != "null")])
        for a, b in zip(*results, strict=True):
            same_bits(a, b)


WRITES = {
    "set_data": lambda p: p.set_data(p.data() * 2 + 1),
    "in place": lambda p: p.data().__iadd__(1),
    "a slice": lambda p: p.data().__setitem__(slice(0, 1), 3),
    "a view": lambda p: p.data()[1:].__setitem__(0, 4),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize(
    "name", ["0.weight", "0.bias", "1.gamma", "1.beta", "1.running_mean", "1.running_var"]
)
def test_a_written_parameter_is_seen(name, write):
    x = x_of(2, 3, 6, 6)
    net = filled(normalised(nn.Conv2D(4, 3)), x)
    net.hybridize()
    before = [net(x).asnumpy() for _ in range(3)][-1]
    write(net.collect_params()[name])
    after = [net(x).asnumpy() for _ in range(2)][-1]
    net.hybridize(False)
    onp.testing.assert_allclose(after, net(x).asnumpy(), rtol=1e-5, atol=1e-5)
    assert (after != before).any()


def pushed(net, x):
    """How many tasks a call makes."""
    mx.npx.waitall()
    before = mx._core.engine_stats()["pushed"]
    net(x).wait_to_read()
    return mx._core.engine_stats()["pushed"] - before


def test_training_between_predictions_is_seen():
    x = x_of(4, 3, 6, 6)
    net = filled(normalised(nn.Conv2D(4, 3)), x)
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1e-3})
    for _ in range(3):
        predicted = net(x)
        with autograd.record():
            loss = net(x).sum()
        loss.backward()
        trainer.step(1)
        net.hybridize(False, clear=False)
        expected = net(x)
        net.hybridize(True, clear=False)
        onp.testing.assert_allclose(net(x).asnumpy(), expected.asnumpy(), rtol=1e-5, atol=1e-5)
        assert (predicted != expected).any()


def test_foreign_code_may_write_to_a_parameter_at_any_time():
    x = x_of(2, 3, 6, 6)
    net = filled(normalised(nn.Conv2D(4, 3)), x)
    net.hybridize()
    net(x), net(x)
    memory = onp.from_dlpack(net.collect_params()["1.gamma"].data())
    for value in (2.0, 3.0):
        memory[0] = value
        found = net(x).asnumpy()
        net.hybridize(False, clear=False)
        onp.testing.assert_allclose(found, net(x).asnumpy(), rtol=1e-5, atol=1e-5)
        net.hybridize(True, clear=False)
    del memory


def test_what_cannot_be_folded_is_left():
    class Twice(gluon.HybridBlock):
        """The convolution's result is used beside the normalised one."""

        def __init__(self):
            super().__init__()
            self.layer, self.norm = nn.Conv2D(4, 3), nn.BatchNorm()

        def forward(self, x):
            y = self.layer(x)
            return self.norm(y) + y

    class First(gluon.HybridBlock):
        """There is an activation between the two."""

        def __init__(self):
            super().__init__()
            self.layer, self.norm = nn.Conv2D(4, 3, activation="relu"), nn.BatchNorm()

        def forward(self, x):
            return self.norm(self.layer(x))

    x = x_of(2, 3, 6, 6)
    for net in (Twice(), First(), normalised(nn.Conv2D(4, 3), axis=2)):
        filled(net, x)
        eager = net(x)
        net.hybridize()
        net(x)
        same_bits(net(x), eager)


def test_half_types_are_not_folded():
    net = normalised(nn.Conv2D(4, 3))
    net.cast("float16")
    x = x_of(2, 3, 6, 6).astype("float16")
    filled(net, x)
    eager = net(x)
    net.hybridize()
    net(x)
    same_bits(net(x), eager)


def test_what_is_made_of_parameters_alone_is_kept():
    weight = gluon.Parameter("weight", shape=(3, 3))
    net = block(lambda x: np.dot(x, np.tanh(net.weight.data() * 2).T) + x, weight=weight)
    x = x_of(2, 3)
    for _ in range(2):
        for _ in range(3):
            found = net(x)
        expected = np.dot(x, np.tanh(net.weight.data() * 2).T) + x
        same_bits(found, expected)
        weight.data()[0] = 0.25
    assert calls(net) == 2, "the product and the sum"


def test_weights_are_made_once():
    x = x_of(2, 3, 6, 6)
    net = filled(normalised(nn.Conv2D(4, 3)), x)
    net.hybridize()
    net(x), net(x)
    usual = pushed(net, x)
    assert pushed(net, x) == usual
    net.collect_params()["0.weight"].data()[:] *= 2
    assert pushed(net, x) > usual
    assert pushed(net, x) == usual


def test_what_is_given_out_or_large_is_made_anew():
    weight = gluon.Parameter("weight", shape=(3,))
    net = block(
        lambda x: (net.weight.data() * 2, x + np.broadcast_to(net.weight.data(), (50, 3)) * 2), weight=weight
    )
    x = x_of(50, 3)
    for _ in range(3):
        given, _ = net(x)
        given[:] = 7
    given, total = net(x)
    assert given.tolist() == [2, 2, 2]
    same_bits(total, x + 2)


def test_an_export_has_the_normalisation(tmp_path):
    x = x_of(2, 3, 6, 6)
    net = filled(normalised(nn.Conv2D(4, 3)), x)
    net.hybridize()
    for _ in range(3):
        eager = net(x)
    files = net.export(tmp_path / "net")
    assert '"BatchNorm"' in Path(files[0]).read_text()
    loaded = gluon.SymbolBlock.imports(files[0], "data", files[1])
    onp.testing.assert_allclose(loaded(x).asnumpy(), eager.asnumpy(), rtol=1e-5, atol=1e-5)


def test_threads_predict_while_another_trains():
    x = x_of(2, 3, 6, 6)
    net = filled(normalised(nn.Conv2D(4, 3)), x)
    net.hybridize()
    net(x)
    gamma = net.collect_params()["1.gamma"].data()

    def predict():
        return all(onp.isfinite(net(x).asnumpy()).all() for _ in range(200))

    with ThreadPoolExecutor(3) as pool:
        predicted = [pool.submit(predict) for _ in range(3)]
        for i in range(200):
            gamma[:] = i % 5
        assert all(each.result() for each in predicted)
    net(x)
    same_bits(net(x), net(x))


def test_prediction_writes_no_statistics():
    """So that threads which predict with one network do not wait for each other."""
    x, one, zero = x_of(2, 3), onp.ones(3, "float32"), onp.zeros(3, "float32")
    for array in (one, zero):
        array.flags.writeable = False
    one, zero = (np.array(array, copy=False) for array in (one, zero))
    onp.testing.assert_allclose(npx.batch_norm(x, one, zero, zero, one, eps=0.0).asnumpy(), x.asnumpy())
    with autograd.train_mode(), pytest.raises(ValueError, match="read-only"):
        npx.batch_norm(x, one, zero, zero, one)


def test_an_epsilon_of_nothing_is_not_folded():
    """A scale of infinity in the weights would make NaN of products with zero."""
    net = normalised(nn.Conv2D(2, 1, in_channels=3), epsilon=0.0)
    x = x_of(2, 3, 4, 4)
    filled(net, x)
    net[1].running_var.set_data(np.zeros(2))
    eager = net(x)
    net.hybridize()
    net(x)
    same_bits(net(x), eager)
    assert np.isinf(eager).any()
