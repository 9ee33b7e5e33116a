"""What tests of compiled blocks share."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as onp

from mxnp import gluon, np
from mxnp.gluon import nn

Pair = namedtuple("Pair", ["left", "right"])


class Fn(gluon.HybridBlock):
    """A block of a function; counts how often Python runs it."""

    def __init__(self, fn: Any, **params: gluon.Parameter) -> None:
        super().__init__()
        self.fn = fn
        self.runs = [0]
        for name, parameter in params.items():
            setattr(self, name, parameter)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        self.runs[0] += 1
        return self.fn(*args, **kwargs)


def block(fn, active=True, **params):
    made = Fn(fn, **params)
    made.initialize(init="ones")
    made.hybridize(active)
    return made


def mlp():
    net = nn.HybridSequential()
    net.add(nn.Dense(16, activation="relu"), nn.BatchNorm(), nn.Dropout(0.3), nn.Dense(4))
    return net


def same_bits(a, b):
    a, b = (x.asnumpy() if isinstance(x, np.ndarray) else x for x in (a, b))
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    assert a.tobytes() == b.tobytes()


def x_of(*shape, seed=0):
    return np.array(onp.random.default_rng(seed).standard_normal(shape).astype("float32"))
