"""Running sums and products on CUDA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._row import Row, cpu_only


def _scan(name: str) -> Row:
    def row(xp: Any, x: Any, *, axis: int | None = None, dtype: Any = None, reverse: bool = False) -> Any:
        run: Callable[..., Any] = getattr(xp, name)
        if axis is None:
            x, axis = x.reshape(-1), 0
        wide = "float32" if x.dtype.itemsize == 2 and x.dtype.kind not in "iu" else x.dtype
        if reverse:
            x = xp.flip(x, axis)
        y = run(x, axis, dtype=wide).astype(x.dtype)
        return xp.flip(y, axis) if reverse else y

    row.__name__ = row.__qualname__ = name
    row.__doc__ = f"`xp.{name}`, from the end where `reverse`."
    return row


ROWS: dict[str, Row] = {
    "cumsum": _scan("cumsum"),
    "cumprod": _scan("cumprod"),
    "_recurrence": cpu_only("a recurrence needs a scan of pairs, which cupy does not have"),
}
