"""Layers without spatial structure: fully_connected, dropout."""

from __future__ import annotations

from typing import Any

import numpy as onp

from mxnp import _core
from mxnp._core import ndarray
from mxnp.error import MXNetTypeError, MXNetValueError

from ._table import as_array, op

_FULLY_CONNECTED, _DROPOUT = op("fully_connected"), op("dropout")


def fully_connected(
    x: Any,
    weight: Any,
    bias: Any = None,
    num_hidden: int | None = None,
    no_bias: bool = True,
    flatten: bool = True,
    **kwargs: Any,
) -> ndarray:
    """x weight.T + bias: rows of features to `num_hidden` outputs; the bias counts only where `no_bias` is False.

    `flatten`: all axes of `x` but the first become one; else the layer works along the last axis.

    >>> npx.fully_connected(np.ones((2, 3)), np.ones((4, 3)), num_hidden=4).shape
    (2, 4)
    """
    if no_bias:
        return _FULLY_CONNECTED(x, weight, num_hidden=num_hidden, no_bias=True, flatten=flatten)
    if bias is None:
        raise MXNetTypeError("fully_connected: no_bias=False needs a bias")
    return _FULLY_CONNECTED(x, weight, bias, num_hidden=num_hidden, no_bias=False, flatten=flatten)


def dropout(
    data: Any,
    p: float = 0.5,
    mode: str = "training",
    axes: Any = None,
    cudnn_off: bool = False,
    **kwargs: Any,
) -> ndarray:
    """In training mode (or with mode='always') elements become 0 with probability `p`, the others are divided by 1 - p.

    Along `axes` one decision counts for all.

    >>> npx.dropout(np.array([1, 2]), p=0.5)
    array([1., 2.])
    """
    shared = () if axes is None else (axes,) if isinstance(axes, int) else tuple(axes)
    return _DROPOUT(data, p=float(p), mode=mode, axes=shared, training=_core.is_training())


def batch_flatten(data: Any) -> ndarray:
    """All axes but the first as one.

    >>> npx.batch_flatten(np.ones((2, 3, 4))).shape
    (2, 12)
    """
    x = as_array(data)
    if not x.ndim:
        raise MXNetValueError("batch_flatten: expected an array of at least one dimension, got a 0-d one")
    return x.reshape((x.shape[0], int(onp.prod(x.shape[1:]))))
