"""Compiled blocks and the data of arrays: what is refused, what runs in Python, what is printed."""

from __future__ import annotations

import numpy as onp
import pytest

from gluon.compiled import block, same_bits, x_of
from mxnp import MXNetError, gluon, np


def test_data_of_a_traced_array_is_refused_with_a_hint():
    def fn(x):
        if x.sum() > 0:
            return x
        return -x

    net = block(fn)
    with pytest.raises(
        MXNetError, match=r"while its block is compiled\nhint: choose elements with np\.where"
    ):
        net(np.ones(3))
    for read in (lambda x: x.asnumpy(), lambda x: x.item(0), lambda x: float(x[0]), lambda x: x.tolist()):
        with pytest.raises(MXNetError, match="is compiled"):
            block(lambda x, read=read: (read(x * 2), x)[1])(np.ones(3))
    net.hybridize(active=False)
    assert net(-np.ones(3)).tolist() == [1, 1, 1]


def test_a_traced_array_prints_as_a_placeholder(capsys):
    def fn(x):
        y = x * 2
        print(y, f"{y}", repr(x))
        return y

    net = block(fn)
    assert net(np.ones((2, 3))).tolist() == [[2] * 3] * 2
    shown = "<traced array of shape (2, 3) and dtype float32>"
    assert capsys.readouterr().out == f"{shown} {shown} {shown}\n"


def test_constants_may_be_looked_at():
    net = block(lambda x: x * int(np.arange(3).sum()) + np.array([1.0, 2.0]).tolist()[1])
    for i in range(3):
        assert net(np.full(2, i)).tolist() == [3 * i + 2] * 2
    assert net.runs == [1]


def test_a_look_at_outside_data_runs_in_python():
    factor = np.array(2.0)
    net = block(lambda x: x * float(factor))
    assert net(np.ones(1)).tolist() == [2]
    factor[...] = 3
    assert net(np.ones(1)).tolist() == [3]
    assert net._compiled.reasons() == ["looks at the data of an array"]


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x[x > 0],
        lambda x: np.unique(x),
        lambda x: np.nonzero(x)[0],
        lambda x: np.argwhere(x > 0.2) * 2,
        lambda x: x[np.flatnonzero(x > 0)] + 1,
    ],
)
def test_sizes_that_depend_on_data(fn):
    net = block(fn)
    for i in range(3):
        x = x_of(9, seed=i)
        same_bits(net(x), fn(x))
    assert net._compiled.reasons() == ["has a result whose size depends on data"]


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: np.histogram(x, bins=3)[1],
        lambda x: np.quantile(x, x[0] * 0 + 0.5),
        lambda x: np.linspace(x[0], x[1], 3),
        lambda x: np.repeat(x, np.abs(x).astype("int32")),
        lambda x: x[np.argmax(x)] * 2,
        lambda x: np.array([x.sum(), 2 * x[0]]) + 1,
    ],
)
def test_functions_that_need_data_in_python(fn):
    net = block(fn)
    for i in range(3):
        x = x_of(9, seed=i)
        same_bits(net(x), fn(x))
    assert net._compiled.reasons() == ["needs the data of an array in Python"]


def test_functions_that_need_constant_data_are_compiled():
    net = block(lambda x: np.quantile(x, np.array([0.25, 0.5])) + np.repeat(x, np.array([0, 2] + [0] * 7)))
    for i in range(3):
        x = x_of(9, seed=i)
        same_bits(net(x), net.fn(x))
    assert net.runs == [1]


def test_a_parameter_as_an_argument():
    net = block(lambda x: x * 2 + net.w.data(), w=gluon.Parameter("w", shape=(3,)))
    for x in (net.w.data(), x_of(3), net.w.data()[:], net.w.data()):
        same_bits(net(x), x * 2 + 1)


def test_children_of_a_block_that_runs_in_python_are_compiled():
    class Net(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.inner = block(lambda x: x * 2)
            self.outer = block(lambda x: x + 1)

        def forward(self, x):
            y = self.inner(x)
            return self.outer(y[y > 0])

    net = Net()
    net.hybridize()
    for i in range(4):
        x = np.array(onp.array([i, -1, 2], "float32"))
        y = x.asnumpy() * 2
        same_bits(net(x), y[y > 0] + 1)
    assert net.inner.runs == [2]  # once in its parent's trace, once in its own
