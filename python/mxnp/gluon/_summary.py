"""The table that `block.summary(x)` prints. Uses blocks only through hooks and parameters."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from mxnp import np

_COLUMNS = "{:>20}  {:>42} {:>15}"


def print_summary(block: Any, inputs: tuple[Any, ...]) -> None:
    """Run the block on `inputs` and print a row per block: its kind, output shape, number of parameters."""
    table = _Table()
    handles = [b.register_forward_hook(table.add) for b in _blocks(block)]
    try:
        block(*inputs)
    finally:
        for handle in handles:
            handle.detach()
    print(table.render(inputs))


class _Table:
    """Rows gathered by forward hooks, and each parameter's size with the number of blocks run that use it."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str, int]] = []
        self.uses: dict[Any, int] = {}

    def add(self, block: Any, _inputs: tuple[Any, ...], outputs: Any) -> None:
        """The forward hook."""
        own = list(block.params.values())
        for parameter in own:
            self.uses[parameter] = self.uses.get(parameter, 0) + 1
        name = f"{type(block).__name__}-{len(self.rows) + 1}"
        self.rows.append((name, _shapes(outputs), sum(map(_size, own))))

    def render(self, inputs: tuple[Any, ...]) -> str:
        sizes = [(_size(p), uses, p.grad_req != "null") for p, uses in self.uses.items()]
        total = sum(size * uses for size, uses, _ in sizes)
        trainable = sum(size * uses for size, uses, trains in sizes if trains)
        unique = sum(size for size, _, _ in sizes)
        rows = [("Input", _shapes(inputs[0] if len(inputs) == 1 else inputs), 0), *self.rows]
        return "\n".join(
            [
                "-" * 80,
                _COLUMNS.format("Layer (type)", "Output Shape", "Param #"),
                "=" * 80,
                *(_COLUMNS.format(*row) for row in rows),
                "=" * 80,
                "Parameters in forward computation graph, duplicate included",
                f"   Total params: {total}",
                f"   Trainable params: {trainable}",
                f"   Non-trainable params: {total - trainable}",
                f"Shared params in forward computation graph: {total - unique}",
                f"Unique parameters in model: {unique}",
                "-" * 80,
            ]
        )


def _blocks(block: Any) -> Iterator[Any]:
    """Every block below `block`, and it, each once; containers have no row."""
    seen: dict[int, Any] = {}
    block.apply(lambda b: seen.setdefault(id(b), b))
    return (b for b in seen.values() if b._in_summary)


def _size(parameter: Any) -> int:
    return math.prod(parameter.shape)


def _shapes(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return str(value.shape)
    if isinstance(value, (list, tuple)):
        return ", ".join(f"[{_shapes(v)}]" if isinstance(v, (list, tuple)) else _shapes(v) for v in value)
    return type(value).__name__
