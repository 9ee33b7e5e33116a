"""What the workloads need of a library, and the table they register in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy


class Library:
    """What the workloads need of a library: `np` (NumPy-like), `array`, `wait`, and the names that differ."""

    def __init__(self, name: str):
        self.name = name
        self.wait: Callable[[Any], Any] = lambda x: x
        self.record: Any = None
        if name == "numpy":
            self.np, self.array = numpy, numpy.array
        elif name in {"mxnp", "mxnet"}:
            module = __import__(name)
            module.npx.set_np()
            self.np, self.array, self.npx = module.np, module.np.array, module.npx
            self.wait = lambda x: x.wait_to_read()
            self.record = module.autograd.record
        elif name == "torch":
            import torch

            self.np, self.array = torch, torch.from_numpy
        else:
            raise SystemExit(f"benches: {name} is not known here; add it to Library")

    def normal(self, *shape: int) -> Any:
        """Standard normal float32 numbers, the same in every library."""
        numbers = numpy.random.default_rng(0).standard_normal(shape, dtype="float32")
        return self.array(numbers)


Workload = Callable[[Library], Callable[[], Any] | None]
WORKLOADS: dict[str, Workload] = {}


def workload(name: str) -> Callable[[Workload], Workload]:
    """Register under the name that the table shows."""

    def register(function: Workload) -> Workload:
        assert name not in WORKLOADS, f"two workloads are called {name!r}"
        WORKLOADS[name] = function
        return function

    return register
