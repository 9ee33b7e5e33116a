"""Products of matrices on CUDA (cuBLAS through cupy)."""

from __future__ import annotations

from typing import Any

from ._row import Row


def matmul(xp: Any, a: Any, b: Any) -> Any:
    """Products over the last two axes, the others broadcast."""
    return xp.matmul(a, b)


def dot(xp: Any, a: Any, b: Any) -> Any:
    """NumPy's dot."""
    return xp.dot(a, b)


ROWS: dict[str, Row] = {"matmul": matmul, "dot": dot}
