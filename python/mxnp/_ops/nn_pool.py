"""Pooling over one to three spatial axes."""

from __future__ import annotations

from typing import Any

from mxnp._core import ndarray
from mxnp.error import MXNetTypeError

from ._table import op
from .nn_conv import _sizes

_POOLING = op("pooling")


def pooling(
    data: Any = None,
    kernel: Any = None,
    stride: Any = None,
    pad: Any = None,
    pool_type: str = "max",
    pooling_convention: str = "valid",
    global_pool: bool = False,
    cudnn_off: bool = False,
    p_value: int | None = None,
    count_include_pad: bool | None = None,
    layout: str | None = None,
    **kwargs: Any,
) -> ndarray:
    """The maximum ('max'), mean ('avg'), sum ('sum') or p-norm ('lp') of each window of `kernel`, moved by `stride`.

    `pooling_convention`: 'valid' rounds the number of windows down, 'full' up, 'same' takes as many as strides fit.
    `global_pool`: one window over all. `count_include_pad` (default True): whether padding counts in a mean.

    >>> npx.pooling(np.ones((1, 1, 4, 4)), kernel=(2, 2), stride=(2, 2)).shape
    (1, 1, 2, 2)
    """
    if data is None:
        raise MXNetTypeError("pooling: expected data")
    return _POOLING(
        data,
        kernel=_sizes(kernel),
        stride=_sizes(stride),
        pad=_sizes(pad),
        pool_type=pool_type,
        pooling_convention=pooling_convention,
        global_pool=global_pool,
        p_value=p_value,
        count_include_pad=True if count_include_pad is None else count_include_pad,
        layout=layout,
    )
