"""Embeddings on CUDA: indices are checked on the device first, as those of `index`."""

from __future__ import annotations

from typing import Any

from ._row import Row


def embedding(
    xp: Any,
    indices: Any,
    weight: Any,
    *,
    input_dim: int | None = None,
    output_dim: int | None = None,
    dtype: Any = None,
    sparse_grad: bool = False,
) -> Any:
    """A row of the weight for each index."""
    return xp.take(weight, indices, 0)


ROWS: dict[str, Row] = {"embedding": embedding}
