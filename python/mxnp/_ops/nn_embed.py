"""Embeddings: rows of a table by index."""

from __future__ import annotations

from typing import Any

from mxnp._core import ndarray

from ._table import op

_EMBEDDING = op("embedding")


def embedding(
    data: Any,
    weight: Any,
    input_dim: int | None = None,
    output_dim: int | None = None,
    dtype: Any = None,
    sparse_grad: bool = False,
    **kwargs: Any,
) -> ndarray:
    """The rows of `weight` (input_dim, output_dim) at the indices `data`; an index out of range raises IndexError.

    The result has the weight's dtype; `dtype` and `sparse_grad` are accepted as MXNet's.

    >>> npx.embedding(np.array([1, 0]), np.array([[1, 2], [3, 4]]), input_dim=2, output_dim=2)
    array([[3., 4.],
           [1., 2.]])
    """
    return _EMBEDDING(data, weight, input_dim=input_dim, output_dim=output_dim)
