"""The workloads of benches/run.py, written once for every library; prints seconds per call as JSON.

A workload is a function that gets a `Library` and returns what to call, or None where the library has no such
thing. Making the inputs is not timed, and a call ends with the value computed: asynchronous libraries are waited for.
"""

from __future__ import annotations

import importlib
import json
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy

from library import WORKLOADS, Library, workload


@workload("add 4")
def add_small(lib: Library) -> Callable[[], Any]:
    """The overhead of one call: pending results are waited for once in a thousand."""
    a, b = lib.normal(4), lib.normal(4)

    def thousand() -> Any:
        for _ in range(1000):
            c = a + b
        return c

    thousand.calls = 1000  # type: ignore[attr-defined]
    return thousand


@workload("add 1M")
def add_large(lib: Library) -> Callable[[], Any]:
    """Memory bandwidth."""
    a, b = lib.normal(1 << 20), lib.normal(1 << 20)
    return lambda: a + b


@workload("exp 1M")
def exp(lib: Library) -> Callable[[], Any]:
    """A transcendental kernel."""
    a = lib.normal(1 << 20)
    return partial(lib.np.exp, a)


@workload("chain of 6 on 1M")
def chain(lib: Library) -> Callable[[], Any]:
    """What fusion is for."""
    a, b = lib.normal(1 << 20), lib.normal(1 << 20)
    return lambda: lib.np.tanh((a * 2 + b) * a - b / 3)


@workload("chain with sum on 1M")
def chain_sum(lib: Library) -> Callable[[], Any]:
    """A fused pass that ends in a reduction."""
    a, b = lib.normal(1 << 20), lib.normal(1 << 20)
    return lambda: ((a - b) * (a - b)).sum()


@workload("sum rows 4096x256")
def sum_rows(lib: Library) -> Callable[[], Any]:
    """A reduction over the last axis."""
    a = lib.normal(4096, 256)
    return lambda: a.sum(1)


@workload("sum columns 4096x1024")
def sum_columns(lib: Library) -> Callable[[], Any]:
    """A reduction over the first axis."""
    a = lib.normal(4096, 1024)
    return lambda: a.sum(0)


@workload("argmax rows 4096x1024")
def argmax_rows(lib: Library) -> Callable[[], Any]:
    """The place of an extreme."""
    a = lib.normal(4096, 1024)
    return lambda: a.argmax(1)


def product(name: str, left: tuple[int, ...], right: tuple[int, ...], turned: str = "") -> None:
    """Register a product of matrices of these shapes; `turned` names the operands that are transposed first."""

    def row(lib: Library) -> Callable[[], Any]:
        a, b = lib.normal(*left), lib.normal(*right)
        return partial(lib.np.matmul, a.T if "a" in turned else a, b.T if "b" in turned else b)

    workload(name)(row)


# Square products, where numpy and torch are at their best.
for size in (64, 256, 512, 1024, 2048):
    product(f"matmul {size}", (size, size), (size, size))
# A dense layer: forward, and the gradients of data and weight.
product("dense 128x784x256", (128, 784), (256, 784), "b")
product("dense data 128x784x256", (128, 256), (256, 784))
product("dense weight 128x784x256", (128, 256), (128, 784), "a")
# Few rows: serving one sample.
product("dense 1x768x768", (1, 768), (768, 768), "b")
product("dense 8x784x256", (8, 784), (256, 784), "b")
# Batches, as attention has them, and many small ones.
product("matmul 96 of 128x64x128", (96, 128, 64), (96, 64, 128))
product("matmul 1000 of 16", (1000, 16, 16), (1000, 16, 16))


def dense_relu(name: str, rows: int, inputs: int, outputs: int) -> None:
    """Register a dense layer with bias and activation: what follows the product joins it."""

    def row(lib: Library) -> Callable[[], Any]:
        x, w, b = lib.normal(rows, inputs), lib.normal(outputs, inputs), lib.normal(outputs)
        if lib.name == "torch":
            functions = lib.np.nn.functional
            return lambda: functions.relu(functions.linear(x, w, b))
        if lib.record is None:
            return lambda: lib.np.maximum(x @ w.T + b, 0)
        return lambda: lib.npx.relu(lib.npx.fully_connected(x, w, b, num_hidden=outputs))

    workload(name)(row)


dense_relu("dense relu 128x1024x1024", 128, 1024, 1024)
dense_relu("dense relu 64x256x256", 64, 256, 256)


@workload("convolution relu 16x64x56x56")
def convolution_relu(lib: Library) -> Callable[[], Any] | None:
    """A 3x3 convolution with bias and activation."""
    x, w, b = lib.normal(16, 64, 56, 56), lib.normal(64, 64, 3, 3), lib.normal(64)
    if lib.name == "torch":
        functions = lib.np.nn.functional
        return lambda: functions.relu(functions.conv2d(x, w, b, padding=1))
    if lib.record is None:
        return None
    keywords = {"kernel": (3, 3), "pad": (1, 1), "num_filter": 64}
    return lambda: lib.npx.relu(lib.npx.convolution(x, w, b, **keywords))


@workload("transpose copy 1024")
def transpose(lib: Library) -> Callable[[], Any]:
    """A strided read."""
    a = lib.normal(1024, 1024)
    return lambda: a.T + 0


@workload("softmax 1024x1000")
def softmax(lib: Library) -> Callable[[], Any]:
    """Written with ops in NumPy, a function elsewhere."""
    a = lib.normal(1024, 1000)
    if lib.name == "numpy":
        return lambda: (e := lib.np.exp(a - a.max(1, keepdims=True))) / e.sum(1, keepdims=True)
    if lib.name == "torch":
        return lambda: lib.np.softmax(a, 1)
    return lambda: lib.npx.softmax(a, axis=-1)


@workload("step of a 784-256-10 MLP, 256")
def train_step(lib: Library) -> Callable[[], Any] | None:
    """Forward, backward and update of a small network by hand."""
    x, w1, w2 = lib.normal(256, 784), lib.normal(784, 256) * 0.05, lib.normal(256, 10) * 0.05
    if lib.name == "torch":
        w1.requires_grad_(), w2.requires_grad_()

        def step() -> Any:
            w1.grad = w2.grad = None
            ((lib.np.relu(x @ w1) @ w2) ** 2).mean().backward()
            with lib.np.no_grad():
                w1.sub_(0.01 * w1.grad)
                w2.sub_(0.01 * w2.grad)
            return w2

        return step
    if lib.record is None:
        return None
    w1.attach_grad()
    w2.attach_grad()

    def step_mx() -> Any:
        with lib.record():
            loss = (lib.np.dot(lib.npx.relu(lib.np.dot(x, w1)), w2) ** 2).mean()
        loss.backward()
        w1[:] = w1 - 0.01 * w1.grad
        w2[:] = w2 - 0.01 * w2.grad
        return w2

    return step_mx


def gluon_step(lib: Library, batch: int, compiled: bool) -> Callable[[], Any] | None:
    """Forward, backward and SGD of a 784-256-10 network by Gluon, or by PyTorch's modules."""
    x = lib.normal(batch, 784)
    labels = lib.array(numpy.random.default_rng(1).integers(0, 10, batch))
    if lib.name == "torch":
        nn = lib.np.nn
        net = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
        optimizer = lib.np.optim.SGD(net.parameters(), lr=0.01)

        def step() -> Any:
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x), labels).backward()
            optimizer.step()
            return net[2].weight

        return step
    if lib.record is None:
        return None
    gluon = __import__(lib.name).gluon
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(256, activation="relu"), gluon.nn.Dense(10))
    net.initialize()
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    if compiled:
        net.hybridize(static_alloc=True, static_shape=True)
        loss_of.hybridize()
    net(x)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01})

    def step_mx() -> Any:
        with lib.record():
            loss = loss_of(net(x), labels)
        loss.backward()
        trainer.step(batch)
        return net[1].weight.data()

    return step_mx


for _batch in (8, 128):
    for _kind, _compiled in (("eager", False), ("compiled", True)):
        workload(f"Gluon step of an MLP, {_batch}, {_kind}")(
            partial(gluon_step, batch=_batch, compiled=_compiled)
        )


for _module in ("heart", "moving", "orders", "places"):
    importlib.import_module(_module)  # registers more


def seconds(run: Callable[[], Any], wait: Callable[[Any], Any]) -> float:
    """Median seconds of one call, over about a third of a second after as much warming up."""
    times: list[float] = []
    end = time.perf_counter() + 0.45
    while time.perf_counter() < end or len(times) < 7:
        start = time.perf_counter()
        wait(run())
        times.append(time.perf_counter() - start)
    return statistics.median(times[len(times) // 4 :]) / getattr(run, "calls", 1)


def main() -> None:
    """Run the workloads named on the command line, or all."""
    library, *names = sys.argv[1:]
    lib, results = Library(library), {}
    for name, function in WORKLOADS.items():
        if not names or any(part in name for part in names):
            run = function(lib)
            if run is not None:
                results[name] = seconds(run, lib.wait)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
