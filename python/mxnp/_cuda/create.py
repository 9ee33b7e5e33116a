"""Creation on CUDA."""

from __future__ import annotations

from typing import Any

from ._row import Row


def full(xp: Any, value: Any, *, shape: Any, dtype: Any) -> Any:
    """An array full of one value."""
    return xp.broadcast_to(value.astype(dtype), tuple(shape)).copy()


def arange(
    xp: Any,
    *,
    num: int,
    dtype: Any,
    start: float = 0.0,
    step: float = 1.0,
    int_start: int = 0,
    int_step: int = 1,
) -> Any:
    """`num` numbers, `step` apart: counted in integers for an integer dtype, else in doubles."""
    if xp.dtype(dtype).kind in "iu":
        return (int_start + int_step * xp.arange(num)).astype(dtype)
    return (start + step * xp.arange(num)).astype(dtype)


def linspace(xp: Any, *, start: float, stop: float, dtype: Any, num: int = 50, endpoint: bool = True) -> Any:
    """`num` numbers from `start` to `stop`."""
    return xp.linspace(start, stop, num, endpoint=endpoint, dtype=dtype)


def eye(xp: Any, *, n: int, m: int, dtype: Any, k: int = 0) -> Any:
    """Ones on diagonal `k`."""
    return xp.eye(n, m, k, dtype=dtype)


ROWS: dict[str, Row] = {"full": full, "arange": arange, "linspace": linspace, "eye": eye}
