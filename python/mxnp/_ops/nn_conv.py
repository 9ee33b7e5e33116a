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


def _run(
    kind: Any,
    operands: tuple[Any, Any, Any],
    sizes: dict[str, Any],
    num_filter: int,
    num_group: int,
    no_bias: bool,
    layout: str | None,
) -> ndarray:
    """One of the two ops, its sizes spelled with a number for each axis."""
    return kind(
        *_inputs(kind.name, *operands, no_bias),
        **{name: _sizes(value) for name, value in sizes.items()},
        num_filter=num_filter,
        num_group=num_group,
        no_bias=no_bias,
        layout=layout,
    )


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
    sizes = {"kernel": kernel, "stride": stride, "dilate": dilate, "pad": pad}
    return _run(_CONVOLUTION, (data, weight, bias), sizes, num_filter, num_group, no_bias, layout)


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
    sizes = {"kernel": kernel, "stride": stride, "dilate": dilate, "pad": pad}
    sizes |= {"adj": adj, "target_shape": target_shape}
    return _run(_DECONVOLUTION, (data, weight, bias), sizes, num_filter, num_group, no_bias, layout)
