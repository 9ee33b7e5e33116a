"""Training leaves nothing behind: after a warm-up, live values, the pool, plans, Python objects and resident memory
are what they were, however many steps follow. By default some hundred steps of small networks; `--slow` runs 10,000.
"""

from __future__ import annotations

import gc
import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as onp
import pytest

from mxnp import _core, autograd, gluon, np, npx
from mxnp.gluon import nn

BATCH, BATCHES = 8, 10


@dataclass
class Usage:
    """What a process holds."""

    live: int  # bytes that values own
    pool: int  # bytes that the pool keeps in all
    plans: int
    objects: int  # that Python's collector knows
    resident: int

    @classmethod
    def now(cls) -> Usage:
        npx.waitall()
        gc.collect()
        stats = _core.memory_stats()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return cls(
            stats["live"],
            stats["live"] + stats["cached"],
            _core.engine_stats()["plans"],
            len(gc.get_objects()),
            pages * os.sysconf("SC_PAGESIZE"),
        )

    def __sub__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, f.name) - getattr(other, f.name) for f in fields(self)))


def mlp() -> gluon.HybridBlock:
    net = nn.HybridSequential()
    net.add(nn.Flatten(), nn.Dense(32, activation="relu"), nn.BatchNorm(), nn.Dropout(0.2), nn.Dense(10))
    return net


def lenet() -> gluon.HybridBlock:
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3, padding=1, activation="tanh"), nn.MaxPool2D(2, 2))
    net.add(nn.Conv2D(6, 3, activation="relu"), nn.AvgPool2D(2, 2), nn.Dense(16, activation="sigmoid"))
    net.add(nn.Dense(10))
    return net


class Training:
    """A network, its trainer and its data, and epochs of ten batches; the last batch is smaller."""

    def __init__(self, make: Any, is_hybrid: bool, optimizer: str, workers: int) -> None:
        rng = onp.random.default_rng(0)
        images = rng.standard_normal((BATCH * BATCHES - 3, 1, 12, 12), dtype="float32")
        labels = rng.integers(0, 10, len(images)).astype("int32")
        dataset = gluon.data.ArrayDataset(images, labels)
        self.loader = gluon.data.DataLoader(dataset, BATCH, shuffle=True, num_workers=workers)
        self.net, self.loss_of = make(), gluon.loss.SoftmaxCrossEntropyLoss()
        self.net.initialize()
        if is_hybrid:
            self.net.hybridize(static_alloc=True, static_shape=True)
            self.loss_of.hybridize()
        options = {"learning_rate": 0.01, **({"momentum": 0.9} if optimizer == "sgd" else {})}
        self.trainer = gluon.Trainer(self.net.collect_params(), optimizer, options)
        self.metric = gluon.metric.Accuracy()

    def epoch(self) -> None:
        self.metric.reset()
        for images, labels in self.loader:
            with autograd.record():
                scores = self.net(images)
                loss = self.loss_of(scores, labels)
            loss.backward()
            self.trainer.step(len(labels))
            self.metric.update([labels], [scores])
        assert onp.isfinite(loss.mean().item())


def grown(training: Training, epochs: int, warm_up: int) -> Usage:
    """What is held after so many epochs more than after a warm-up."""
    for _ in range(warm_up):
        training.epoch()
    before = Usage.now()
    for _ in range(epochs):
        training.epoch()
    return Usage.now() - before


def check(more: Usage, steps: int) -> None:
    """Nothing stays alive; over many steps, nothing else adds up either."""
    print(more)
    assert more.live == 0
    assert more.objects <= 20
    if steps < 1000:
        return
    # Where a flush cuts a step, how many tasks run at a time, and with that the pool, depend on the scheduler.
    if _core.engine() != "naive":  # which plans each call for itself
        assert more.plans <= steps // 20
    assert more.pool <= 1 << 20
    assert more.resident <= 8 << 20


KINDS = [
    pytest.param(make, is_hybrid, optimizer, workers, id=f"{make.__name__}-{way}-{optimizer}-{workers}")
    for make, optimizer, workers in ((mlp, "sgd", 0), (mlp, "adam", 0), (lenet, "sgd", 0), (lenet, "adam", 2))
    for way, is_hybrid in (("eager", False), ("hybrid", True))
]


@pytest.mark.parametrize(("make", "is_hybrid", "optimizer", "workers"), KINDS)
def test_some_hundred_steps(make, is_hybrid, optimizer, workers):
    check(grown(Training(make, is_hybrid, optimizer, workers), epochs=20, warm_up=10), 20 * BATCHES)


@pytest.mark.slow
@pytest.mark.parametrize(("make", "is_hybrid", "optimizer", "workers"), KINDS)
def test_ten_thousand_steps(make, is_hybrid, optimizer, workers):
    check(grown(Training(make, is_hybrid, optimizer, workers), epochs=1000, warm_up=20), 1000 * BATCHES)


def test_a_leak_would_be_seen():
    """What the check is made of answers to an array and an object that stay."""
    training = Training(mlp, False, "sgd", 0)
    kept: list[Any] = []
    plain = training.epoch

    def leaking() -> None:
        plain()
        kept.append([np.ones((3,)) * 2, {}])

    training.epoch = leaking  # type: ignore[method-assign]
    more = grown(training, epochs=30, warm_up=3)
    assert more.live >= 30 * 12
    assert more.objects >= 30
