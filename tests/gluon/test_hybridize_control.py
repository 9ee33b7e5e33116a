"""foreach, while_loop and cond in compiled blocks: values, gradients and draws of eager code, for any data."""

from __future__ import annotations

import numpy as onp
import pytest

from gluon.compiled import block, same_bits, x_of
from mxnp import autograd, np, npx


def compare(fn, inputs, runs=None):
    """Calls a block of `fn` with each of the inputs, twice over; outputs and gradients are those of `fn`."""
    net = block(fn)
    for arrays in [*inputs, *inputs]:
        found = []
        for run in (net, fn):
            np.random.seed(1)
            leaves = [np.array(a) for a in arrays]
            for leaf in leaves:
                leaf.attach_grad()
            with autograd.record():
                outs = run(*leaves)
                outs = outs if isinstance(outs, (list, tuple)) else [outs]
                total = sum(o.sum() for o in outs)
            total.backward()
            found.append([*outs, *(leaf.grad for leaf in leaves)])
        for got, want in zip(*found, strict=True):
            same_bits(got, want)
    if runs is not None:
        assert net.runs == [runs]
    return net


def some(n, *shape):
    return [[x_of(*shape, seed=i).asnumpy()] for i in range(n)]


def test_foreach_is_unrolled():
    def fn(xs, s):
        outs, (last,) = npx.foreach(lambda x, s: (np.tanh(x + s[0]) * x, [x * s[0]]), xs, [s])
        return outs, last

    compare(fn, [[x_of(4, 3, seed=i).asnumpy(), x_of(3, seed=9 + i).asnumpy()] for i in range(3)], runs=1)


def test_foreach_of_nested_lists():
    def fn(a, b):
        (double, [total]), _ = npx.foreach(lambda x, s: ([x[0] * 2, [x[0] + x[1][0]]], s), [a, [b]], [])
        return double, total

    compare(fn, [[x_of(3, 2, seed=i).asnumpy(), x_of(3, 2, seed=7 + i).asnumpy()] for i in range(2)], runs=1)


def test_foreach_without_slices():
    outs, state = npx.foreach(lambda x, s: ([x + s, x.sum()], s + 1), np.zeros((0, 2)), np.ones(2))
    assert [o.shape for o in outs] == [(0, 2), (0,)]
    assert state.tolist() == [1, 1]
    with pytest.raises(ValueError, match="one length"):
        npx.foreach(lambda x, s: (x[0], s), [np.zeros(2), np.zeros(3)], [])


def test_steps_of_another_form_are_refused():
    for count in (0, 2):
        with pytest.raises(ValueError, match=f"while_loop: expected 1 new loop variables, got {count}"):
            npx.while_loop(lambda i: i < 2, lambda i, count=count: (i, [i] * count), np.zeros(()), 3)
    with pytest.raises(
        ValueError, match=r"foreach: each step must give the same number of outputs, got \[1, 2\]"
    ):
        npx.foreach(lambda x, s: ([x] * (1 + int(x)), s), np.arange(2), [])


def test_cond_takes_the_branch_of_each_call():
    def fn(x):
        y = x * 2
        return npx.cond(lambda y: y.sum() > 0, np.exp, lambda y: y * y, [y])

    net = compare(fn, some(6, 3), runs=2)
    assert len(net._compiled.graphs()) == 2
    assert net._compiled.reasons() == []


def test_random_draws_before_a_branch_are_those_of_eager_code():
    def fn(x):
        y = x + np.random.normal(size=(3,))
        z = npx.cond(lambda y: y.sum() > 0, lambda y: y * np.random.uniform(size=(3,)), np.negative, [y])
        return z + np.random.uniform(size=(3,))

    compare(fn, some(8, 3), runs=2)
    found = []
    for active in (False, True):
        np.random.seed(4)
        net = block(fn, active)
        found.append([net(np.zeros(3)).asnumpy() for _ in range(12)])
    for a, b in zip(*found, strict=True):
        assert a.tobytes() == b.tobytes()


def test_while_loop_steps_as_often_as_each_call_needs():
    def fn(x):
        outs, (total, _) = npx.while_loop(
            lambda t, i: np.abs(t).sum() < 6, lambda t, i: (t * i, [t * 1.5, i + 1]), [x, np.array(1.0)], 5
        )
        return outs, total

    compare(fn, some(5, 3))


def test_while_loop_without_a_step():
    outs, i = npx.while_loop(lambda i: i < 0, lambda i: ([i * 1.0], i + 1), np.array(0), max_iterations=3)
    assert outs[0].tolist() == [0, 0, 0]
    assert i == 0


def test_too_many_ways_run_in_python():
    def fn(x):
        for i in range(4):
            x = npx.cond(x[i] > 0, lambda x: x * 2, lambda x: x - 1, [x])
        return x

    draw = onp.random.default_rng(0)
    inputs = [[draw.standard_normal(4).astype("float32")] for _ in range(40)]
    net = compare(fn, inputs)
    assert net._compiled.reasons() == ["branches by data in too many ways"]


def test_a_branch_after_a_write_to_an_array_from_outside():
    seen = np.zeros(1)

    def fn(x):
        with autograd.pause():
            seen[...] += 1
        return npx.cond(x.sum() > 0, lambda x: x * 2, lambda x: -x, [x])

    net = block(fn)
    for i, value in enumerate((1, -1, 2, -2)):
        assert net(np.array([value])).item() == (2 * value if value > 0 else -value)
        assert seen.item() == i + 1
    assert net._compiled.reasons() == ["branches by data after it wrote to an array from outside"]


def test_a_condition_of_constants_is_no_branch():
    net = block(lambda x: npx.cond(np.array(1.0), lambda x: x * 2, lambda x: -x, [x]))
    assert net(np.ones(2)).tolist() == [2, 2]
    (graph,) = net._compiled.graphs()
    assert graph.num_calls == 1
