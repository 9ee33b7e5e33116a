"""What arrays keep alive, and what they share: loans to other libraries, the tape's cycles, gradients of one's own."""

from __future__ import annotations

import gc

import numpy as onp
import pytest
from tests.test_interop_process import run_python

import mxnp as mx
from mxnp import _core, autograd, np, npx

BIG = (256, 256)


def live() -> int:
    gc.collect()
    npx.waitall()
    return _core.memory_stats()["live"]


@pytest.mark.skipif(_core.engine() == "naive", reason="nothing is pending in the naive engine")
@pytest.mark.parametrize("lend", [onp.asarray, memoryview, onp.from_dlpack, lambda x: x.__dlpack__()])
def test_calls_are_lazy_again_after_the_last_loan(lend) -> None:
    x = np.zeros(3)
    first, second = lend(x), lend(x)
    x += 1
    assert x.is_ready(), "the array is lent: its calls are finished at once"
    del first
    x += 1
    assert x.is_ready(), "one loan is left"
    del second
    x += 1
    assert not x.is_ready(), "nobody else sees the memory any more"
    assert x.tolist() == [3, 3, 3]


def test_imported_memory_stays_shared() -> None:
    source = onp.zeros(3)
    x = np.from_dlpack(source)
    view = onp.asarray(x)
    del view
    x += 1
    assert source.tolist() == [1, 1, 1]


def test_a_gradient_with_history_of_its_own_array_is_freed() -> None:
    before = live()
    for _ in range(3):
        x = np.ones(BIG)
        x.attach_grad()
        with autograd.record():
            y = x * 2
        autograd.mark_variables([x], [y])
        assert x.grad is y
        del x, y
    assert live() == before


class Doubled(autograd.Function):
    def forward(self, x):
        return x * 2

    def backward(self, dy):
        dy[:] = dy * 2
        return dy


def test_a_function_that_holds_its_result_is_freed_by_backward() -> None:
    x = np.ones(BIG)
    x.attach_grad()
    before = live()
    for _ in range(3):
        function = Doubled()
        with autograd.record():
            function.result = function(x)
        function.result.backward()
        del function
    assert live() == before


def test_a_function_may_write_to_its_head_gradients() -> None:
    x = np.ones(3)
    x.attach_grad()
    with autograd.record():
        h = x * 3
        y = Doubled()(h) + h
    y.backward()
    assert x.grad.tolist() == [9, 9, 9]
    with autograd.record():
        y = Doubled()(x).sum()
    y.backward()
    assert x.grad.tolist() == [2, 2, 2], "a broadcast head gradient is writable too"


def test_gradients_returned_are_arrays_of_their_own() -> None:
    a, b, head = np.ones(3), np.ones(3), np.ones(3)
    for x in (a, b):
        x.attach_grad()
    with autograd.record():
        y = a + b
        total = a.sum()
    first, second = autograd.grad(y, [a, b], head_grads=head)
    first[:] = 5
    assert head.tolist() == second.tolist() == [1, 1, 1]
    (spread,) = autograd.grad(total, [a])
    spread[0] = 7
    assert spread.tolist() == [7, 1, 1]


def test_the_pool_keeps_no_cache_for_each_size_in_passing() -> None:
    done = run_python(
        """
        from mxnp import _core, np
        most = 0
        for k in range(24):
            x = np.ones(int((8 << 20) * 1.19**k), dtype="int8")
            x.wait_to_read()
            del x
            stats = _core.memory_stats()
            most = max(most, stats["live"] + stats["cached"] - 2 * stats["peak"])
        print(most <= 256 << 20)
        """
    )
    assert done.stdout == "True\n", done.stderr


def test_training_keeps_no_memory() -> None:
    net = mx.gluon.nn.Sequential()
    net.add(mx.gluon.nn.Dense(16, activation="relu"), mx.gluon.nn.Dropout(0.2), mx.gluon.nn.BatchNorm())
    net.add(mx.gluon.nn.Dense(4))
    net.initialize()
    trainer = mx.gluon.Trainer(net.collect_params(), "adam")
    loss_of = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    x, y = np.ones((8, 5)), np.zeros(8)

    def steps(n: int) -> int:
        for _ in range(n):
            with autograd.record():
                loss = loss_of(net(x), y)
            loss.backward()
            trainer.step(8)
        del loss
        return live()

    assert steps(3) == steps(40)
