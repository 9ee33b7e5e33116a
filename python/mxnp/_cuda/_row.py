"""What a CUDA row is. Nothing in this package imports cupy: every row is given its array module as `xp`.

A row is called as `row(xp, *inputs, **attrs)`: inputs have the dtypes that the op's `infer` gave, attributes are the
core's keywords (those left out take the core's defaults, repeated in the row's signature). It gives one array or a
tuple; the caller converts it to the dtypes that `infer` gave.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Row = Callable[..., Any]


@dataclass(frozen=True)
class CpuOnly:
    """The statement that an op runs on the CPU only, and why."""

    why: str

    def __call__(self, xp: Any, *inputs: Any, **attrs: Any) -> Any:
        """Refuse, saying why."""
        raise NotImplementedError(f"this op runs on the CPU only: {self.why}")


def cpu_only(why: str) -> CpuOnly:
    """A row that says why there is no CUDA form."""
    return CpuOnly(why)


def named(*names: str, **renamed: str) -> dict[str, Row]:
    """Rows of elementwise ops that cupy has by the same name, or by the one given: `named('exp', rint='rint')`."""
    wanted = {name: name for name in names} | renamed
    return {op: _call(function) for op, function in wanted.items()}


def _call(function: str) -> Row:
    def row(xp: Any, *inputs: Any) -> Any:
        return getattr(xp, function)(*inputs)

    row.__name__ = row.__qualname__ = function
    row.__doc__ = f"`xp.{function}`."
    return row


def axes(axis: Any) -> Any:
    """An axis attribute as cupy takes it: a tuple, or None."""
    return axis if axis is None or isinstance(axis, int) else tuple(axis)
