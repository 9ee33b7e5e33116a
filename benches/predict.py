"""Prediction by compiled networks: time with and without folding, and the memory a call takes against the least.

`python benches/predict.py [batch ...]`. The least is what is alive at once when the calls run in their order, each
elementwise one in the memory of an operand that ends there.
"""

from __future__ import annotations

import math
import statistics
import sys
import threading
import time
from typing import Any

from mxnp import _core, autograd, gluon, np, npx
from mxnp.gluon import nn


class Residual(gluon.HybridBlock):
    """Two convolutions beside the input itself, or beside a convolution of it where shapes differ."""

    def __init__(self, channels: int, stride: int, same: bool) -> None:
        super().__init__()
        self.body = nn.HybridSequential()
        self.body.add(
            nn.Conv2D(channels, 3, stride, 1, use_bias=False),
            nn.BatchNorm(),
            nn.Activation("relu"),
            nn.Conv2D(channels, 3, 1, 1, use_bias=False),
            nn.BatchNorm(),
        )
        self.side = nn.HybridSequential()
        if not same:
            self.side.add(nn.Conv2D(channels, 1, stride, use_bias=False), nn.BatchNorm())

    def forward(self, x: Any) -> Any:
        """relu(body(x) + side(x))."""
        return np.maximum(self.body(x) + self.side(x), 0)


def resnet18() -> Any:
    """He et al. 2015, table 1."""
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(64, 7, 2, 3, use_bias=False), nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D(3, 2, 1)
    )
    before = 64
    for channels in (64, 128, 256, 512):
        net.add(
            Residual(channels, 1 if channels == 64 else 2, channels == before), Residual(channels, 1, True)
        )
        before = channels
    net.add(nn.GlobalAvgPool2D(), nn.Dense(1000))
    return net


def mobilenet() -> Any:
    """Howard et al. 2017, table 1."""
    net = nn.HybridSequential()

    def layer(channels: int, kernel: int, stride: int, groups: int = 1) -> None:
        net.add(nn.Conv2D(channels, kernel, stride, kernel // 2, groups=groups, use_bias=False))
        net.add(nn.BatchNorm(), nn.Activation("relu"))

    layer(32, 3, 2)
    before = 32
    for channels, stride in (
        (64, 1),
        (128, 2),
        (128, 1),
        (256, 2),
        (256, 1),
        (512, 2),
        *[(512, 1)] * 5,
        (1024, 2),
        (1024, 1),
    ):
        layer(before, 3, stride, before)
        layer(channels, 1, 1)
        before = channels
    net.add(nn.GlobalAvgPool2D(), nn.Dense(1000))
    return net


def least(net: Any, x: Any) -> int:
    """The bytes that are alive at once where each result lives from its call to its last use."""
    compiled = _core.Compiled()
    tracing, args, _ = compiled.begin((x,), {})
    parameters = {k: p.data() for k, p in net.collect_params().items()}
    tracing.finish(net._run_here(args, {}), list(parameters), list(parameters.values()))
    nodes, heads = compiled.graphs()[0].nodes()
    last: dict[tuple[int, int], int] = {(node, output): len(nodes) for node, output in heads}
    for i, node in enumerate(nodes):
        for source in node["inputs"]:
            if isinstance(source, tuple):
                last[source] = max(i, last.get(source, 0))
    alive: dict[tuple[int, int], int] = {}
    peak = 0
    for i, node in enumerate(nodes):
        if node["kind"] != "call":
            continue
        shape, dtype = node["outputs"][0]
        size = math.prod(shape) * dtype.itemsize
        ending = {source for source in node["inputs"] if isinstance(source, tuple) and last[source] == i}
        freed = sum(alive.pop(source, 0) for source in ending)
        in_place = _core.op(node["name"]).is_elementwise and freed >= size
        peak = max(peak, sum(alive.values()) + (freed if in_place else freed + size))
        if (i, 0) in last:
            alive[i, 0] = size
    return peak


def taken(call: Any) -> int:
    """How many bytes of buffers a call has at once, beyond those there were."""
    npx.waitall()
    before, top, done = _core.memory_stats()["live"], [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.0002):
            top[0] = max(top[0], _core.memory_stats()["live"])

    thread = threading.Thread(target=watch)
    thread.start()
    call()
    done.set()
    thread.join()
    return top[0] - before


def main() -> None:
    """Prints a line for each network and batch."""
    for make in (resnet18, mobilenet):
        for batch in map(int, sys.argv[1:] or ("1", "32")):
            net = make()
            net.initialize()
            x = np.random.uniform(size=(batch, 3, 224, 224))
            net(x).wait_to_read()
            graphs = {folds: _core.Compiled(folds=folds) for folds in (False, True)}
            times: dict[bool, list[float]] = {False: [], True: []}
            net.hybridize()

            def call(folds: bool, net: Any = net, x: Any = x, graphs: Any = graphs) -> None:
                net._compiled = graphs[folds]
                net(x).wait_to_read()

            for i in range(2 + (15 if batch == 1 else 5)):
                for folds, found in times.items():
                    begun = time.perf_counter()
                    call(folds)
                    if i > 1:
                        found.append(time.perf_counter() - begun)
            plain, folded = (statistics.median(times[folds]) * 1e3 for folds in (False, True))
            megabytes = [
                n / 2**20 for n in (least(net, x), max(taken(lambda: call(False)) for _ in range(3)))
            ]
            print(
                f"{make.__name__} batch {batch}: {plain:.1f} ms, folded {folded:.1f} ms; "
                f"{megabytes[1]:.0f} MB taken, at least {megabytes[0]:.0f}",
                flush=True,
            )


if __name__ == "__main__":
    with autograd.predict_mode():
        main()
