"""Convolutions and their transposes, over one to three spatial axes."""

from __future__ import annotations

from typing import Any

from mxnp._core import ndarray
from mxnp.error import MXNetTypeError

from ._table import op

_CONVOLUTION, _DECONVOLUTION = op("convolution"), op("deconvolution")


def _sizes(value: Any) -> tuple[int, ...]:
    """An attribute with one number for each spatial axis; none for the default."""
    return () if value is None else (value,) if isinstance(value, int) else tuple(value)


def _inputs(name: str, data: Any, weight: Any, bias: Any, no_bias: bool) -> tuple:
    if data is None or weight is None:
        raise MXNetTypeError(f"{name}: expected data and weight")
    if no_bias:
        return data, weight
    if bias is None:
        raise MXNetTypeError(f"{name}: expected a bias\nhint: pass no_bias=True for none")
    return data, weight, bias


def convolution(
    data: Any = None,
    weight: Any = None,
    bias: Any = None,
    kernel: Any = None,
    stride: Any = None,
    dilate: Any = None,
    pad: Any = None,
    num_filter: int = 1,
    num_group: int = 1,
    workspace: int = 1024,
    no_bias: bool = False,
    cudnn_tune: Any = None,
    cudnn_off: bool = False,
    layout: str | None = None,
) -> ndarray:
    """Cross-correlation of `data` (N, C, spatial axes) with `weight` (num_filter, C / num_group, kernel), plus `bias`.

    Each spatial size becomes (size + 2 pad - dilate (kernel - 1) - 1) // stride + 1.

    >>> x, w = np.ones((1, 1, 3, 3)), np.ones((2, 1, 2, 2))
    >>> npx.convolution(x, w, kernel=(2, 2), num_filter=2, no_bias=True).shape
    (1, 2, 2, 2)
    """
    return _CONVOLUTION(
        *_inputs("convolution", data, weight, bias, no_bias),
        kernel=_sizes(kernel),
        stride=_sizes(stride),
        dilate=_sizes(dilate),
        pad=_sizes(pad),
        num_filter=num_filter,
        num_group=num_group,
        no_bias=no_bias,
        layout=layout,
    )


def deconvolution(
    data: Any = None,
    weight: Any = None,
    bias: Any = None,
    kernel: Any = None,
    stride: Any = None,
    dilate: Any = None,
    pad: Any = None,
    adj: Any = None,
    target_shape: Any = None,
    num_filter: int = 1,
    num_group: int = 1,
    workspace: int = 1024,
    no_bias: bool = False,
    cudnn_tune: Any = None,
    cudnn_off: bool = False,
    layout: str | None = None,
) -> ndarray:
    """The transpose of a convolution: `weight` has shape (C, num_filter / num_group, kernel).

    Each spatial size becomes (size - 1) stride - 2 pad + dilate (kernel - 1) + 1 + adj.

    >>> x, w = np.ones((1, 2, 3, 3)), np.ones((2, 1, 2, 2))
    >>> npx.deconvolution(x, w, kernel=(2, 2), num_filter=1, no_bias=True).shape
    (1, 1, 4, 4)
    """
    return _DECONVOLUTION(
        *_inputs("deconvolution", data, weight, bias, no_bias),
        kernel=_sizes(kernel),
        stride=_sizes(stride),
        dilate=_sizes(dilate),
        pad=_sizes(pad),
        adj=_sizes(adj),
        target_shape=_sizes(target_shape),
        num_filter=num_filter,
        num_group=num_group,
        no_bias=no_bias,
        layout=layout,
    )
