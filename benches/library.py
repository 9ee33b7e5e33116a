"""What the workloads need of a library, and the table they register in."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy


class Library:
    """What the workloads need of a library: `np` (NumPy-like), `array`, `wait`, `jit` where it compiles functions, and
    the names that differ.
    """

    def __init__(self, name: str):
        self.name = name
        self.np: Any
        self.array: Callable[[Any], Any]
        self.wait: Callable[[Any], Any] = lambda x: x
        self.record: Any = None
        self.jit: Any = None
        module = __import__(name)
        self.version: str = module.__version__
        if name == "numpy":
            self.np, self.array = numpy, numpy.array
        elif name in {"mxnp", "mxnet"}:
            module.npx.set_np()
            self.np, self.npx = module.np, module.npx
            self.array = lambda x: self.np.array(x, dtype=x.dtype)
            self.wait = lambda x: x.wait_to_read()
            self.record = module.autograd.record
        elif name == "torch":
            module.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
            self.np, self.array = module, module.from_numpy
        elif name == "jax":
            self.np, self.jit = module.numpy, module.jit
            self.array, self.wait = self.np.asarray, module.block_until_ready
        else:
            raise SystemExit(f"benches: {name} is not known here; add it to Library")

    def normal(self, *shape: int) -> Any:
        """Standard normal float32 numbers, the same in every library."""
        numbers = numpy.random.default_rng(0).standard_normal(shape, dtype="float32")
        return self.array(numbers)


def trained(lib: Library, make: Callable[[Any], Any], x: Any) -> Callable[[], Any] | None:
    """A function of `x` forward and backward, with a head of ones; none in NumPy."""
    if lib.name == "numpy":
        return None
    if lib.name == "torch":
        x.requires_grad_()

        def step() -> Any:
            x.grad = None
            y = make(x)
            y.backward(lib.np.ones_like(y))
            return x.grad

        return step
    x.attach_grad()

    def step_mx() -> Any:
        with lib.record():
            y = make(x)
        y.backward()
        return x.grad

    return step_mx


Workload = Callable[[Library], Callable[[], Any] | None]
WORKLOADS: dict[str, Workload] = {}


def workload(name: str) -> Callable[[Workload], Workload]:
    """Register under the name that the table shows."""

    def register(function: Workload) -> Workload:
        assert name not in WORKLOADS, f"two workloads are called {name!r}"
        WORKLOADS[name] = function
        return function

    return register
