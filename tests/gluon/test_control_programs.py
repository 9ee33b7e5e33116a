"""Random functions of branches and loops within each other: eager, compiled, and written to a file and read again."""

from __future__ import annotations

import random

import numpy as onp
import pytest

import mxnp as mx
from mxnp import autograd, gluon, np, npx
from mxnp.gluon import nn

UNARY = (
    np.tanh,
    np.negative,
    npx.softmax,
    lambda x: x * 0.5,
    lambda x: np.abs(x) + 0.1,
    lambda x: x[::-1],
    lambda x: x + np.arange(3),
    lambda x: np.where(x > 0, x, x * 0.3),
    lambda x: np.zeros_like(x) + x,
    lambda x: np.concatenate([x[1:], x[:1]]),
)
BINARY = (
    np.add,
    np.subtract,
    np.multiply,
    np.maximum,
    lambda a, b: a * np.tanh(b),
    lambda a, b: a / (b * b + 1),
)
LEAVES = ("unary", "binary", "dense")


def chosen(rng, depth):
    """A random function of the network and a list of arrays (3,), which gives one such array."""
    kinds = {"unary": unary, "binary": binary, "dense": dense, "cond": branch, "while": loop, "each": each}
    kind = rng.choice([*kinds, "chain", "chain"] if depth else LEAVES)
    return chain(rng, depth) if kind == "chain" else kinds[kind](rng, depth)


def unary(rng, depth):
    function, i = rng.choice(UNARY), rng.randrange(9)
    return lambda net, xs: function(xs[i % len(xs)])


def binary(rng, depth):
    function, i, j = rng.choice(BINARY), rng.randrange(9), rng.randrange(9)
    return lambda net, xs: function(xs[i % len(xs)], xs[j % len(xs)])


def dense(rng, depth):
    name, i = rng.choice(("first", "second")), rng.randrange(9)
    return lambda net, xs: np.tanh(getattr(net, name)(xs[i % len(xs)].reshape(1, 3)).reshape(3))


def chain(rng, depth):
    functions = [chosen(rng, depth - 1) for _ in range(rng.randrange(2, 4))]

    def run(net, xs):
        xs = list(xs)
        for function in functions:
            xs.append(function(net, xs))
        return xs[-1]

    return run


def branch(rng, depth):
    then, other, i, style = chosen(rng, depth - 1), chosen(rng, depth - 1), rng.randrange(9), rng.randrange(3)
    bound = rng.uniform(-1, 1)

    def run(net, xs):
        if style == 0:
            holds = xs[i % len(xs)].sum() > bound
            return npx.cond(holds, lambda *a: then(net, list(a)), lambda *a: other(net, list(a)), xs)
        if style == 1:
            return npx.cond(
                lambda *a: a[i % len(a)].sum() > bound,
                lambda *a: then(net, xs),
                lambda *a: other(net, xs),
                xs,
            )
        return npx.cond(
            lambda: xs[i % len(xs)].max() > bound,
            lambda: [then(net, xs), xs[0]],
            lambda: [xs[-1], other(net, xs)],
            [],
        )[0]

    return run


def loop(rng, depth):
    body, i, several = chosen(rng, depth - 1), rng.randrange(9), rng.random() < 0.5
    scale, most = rng.uniform(0.5, 4), rng.randrange(1, 5)

    def run(net, xs):
        def step(n, s):
            y = body(net, [s, *xs])
            return [y, n] if several else y * 2, [n + 1, y + s * 0.5]

        def holds(n, s):
            return n < np.abs(xs[i % len(xs)]).sum() / scale

        steps, (n, s) = npx.while_loop(holds, step, [np.zeros(()), xs[0]], most)
        return s + (steps[0] if several else steps).sum(axis=0) * n

    return run


def each(rng, depth):
    body, i, adds = chosen(rng, depth - 1), rng.randrange(9), rng.random() < 0.5

    def run(net, xs):
        def step(row, states):
            y = body(net, [row, *states, *xs[:2]])
            return y, [states[0] + y if adds else y]

        steps, (last,) = npx.foreach(step, np.stack(list(xs)[:3]), [xs[i % len(xs)]])
        return last + steps.max(axis=0)

    return run


class Program(nn.HybridBlock):
    """A random function of two arrays, with two layers."""

    def __init__(self, seed):
        super().__init__()
        self.function = chosen(random.Random(seed), 3)
        self.first, self.second = nn.Dense(3, in_units=3), nn.Dense(3, in_units=3)

    def forward(self, x, y):
        return self.function(self, [x, y]) + x * y * 0.1


def run(net, arrays):
    """The result and the gradients of inputs and parameters, those of a file's constants left out."""
    net.zero_grad()
    leaves = [np.array(a) for a in arrays]
    for leaf in leaves:
        leaf.attach_grad()
    with autograd.record(train_mode=False):
        result = net(*leaves)
        loss = (result * result).sum()
    loss.backward()
    found = {"result": result, "x": leaves[0].grad, "y": leaves[1].grad}
    found.update({name: p.grad() for name, p in net.collect_params().items() if p.lr_mult})
    return {name: array.asnumpy() for name, array in found.items()}


@pytest.mark.parametrize("seed", range(60))
def test_programs(seed, tmp_path):
    net = Program(seed)
    mx.random.seed(seed)
    net.initialize(mx.init.Normal(0.7))
    draw = onp.random.default_rng(seed)
    inputs = [draw.normal(size=(2, 3)).astype("float32") for _ in range(4)]
    wanted = [run(net, arrays) for arrays in inputs]
    net.hybridize()
    for arrays, eager in zip([*inputs, *inputs], [*wanted, *wanted], strict=True):
        for name, array in run(net, arrays).items():
            onp.testing.assert_array_equal(array, eager[name], name)
    graph, params = net.export(tmp_path / "net")
    again = gluon.SymbolBlock.imports(graph, ["data0", "data1"], params)
    for active in (False, True):
        again.hybridize(active)
        for arrays, eager in zip(inputs, wanted, strict=True):
            for name, array in run(again, arrays).items():
                # Gradients may be summed in another order.
                size = max(1, onp.abs(eager[name]).max())
                onp.testing.assert_allclose(array, eager[name], rtol=1e-4, atol=1e-4 * size, err_msg=name)
