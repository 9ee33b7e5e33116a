"""MXNet 1.x's `F`, the namespace of operators that `hybrid_forward` receives."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mxnp import np, npx
from mxnp.device import Device


class _Operators:
    """`F.np` and `F.npx` are the namespaces; any other name is looked up in npx, then in np."""

    np = np
    npx = npx
    random = np.random
    linalg = np.linalg

    def __getattr__(self, name: str) -> Any:
        for space in (npx, np):
            if hasattr(space, name):
                return getattr(space, name)
        raise AttributeError(
            f"F has no operator '{name}': neither npx nor np has it\n"
            "hint: 1.x's own names (FullyConnected) are np's and npx's today (F.npx.fully_connected)"
        )

    def __repr__(self) -> str:
        return "<operators of mxnp: npx, np>"


F = _Operators()


def device_of_first(values: Iterable[Any]) -> Device | None:
    """The device of the first array in nested arguments; None without one."""
    for value in values:
        if isinstance(value, np.ndarray):
            return value.device
        if isinstance(value, (list, tuple)) and (device := device_of_first(value)) is not None:
            return device
    return None
