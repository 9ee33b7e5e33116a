"""Normalisations: by batch, layer, group and instance, and to unit length."""

from __future__ import annotations

from typing import Any

from mxnp import _core
from mxnp._core import ndarray
from mxnp.error import MXNetValueError

from ._table import as_array, normalize_axis, op

_BATCH_NORM, _LAYER_NORM = op("batch_norm"), op("layer_norm")
_GROUP_NORM, _INSTANCE_NORM = op("group_norm"), op("instance_norm")


def batch_norm(
    x: Any,
    gamma: Any,
    beta: Any,
    running_mean: Any,
    running_var: Any,
    eps: float = 1e-3,
    momentum: float = 0.9,
    fix_gamma: bool = True,
    use_global_stats: bool = False,
    output_mean_var: bool = False,
    axis: int = 1,
    cudnn_off: bool = False,
    min_calib_range: Any = None,
    max_calib_range: Any = None,
    **kwargs: Any,
) -> Any:
    """`x` with mean 0 and variance 1 over all axes but `axis`, times `gamma` (1 where `fix_gamma`), plus `beta`.

    In training the batch's own statistics are used (the biased variance), and the running ones become
    momentum * running + (1 - momentum) * batch, in place; otherwise, or with `use_global_stats`, the running ones.
    `output_mean_var`: also the mean and 1 / sqrt(variance + eps) that were used.

    >>> x, one, zero = np.array([[1, 2], [3, 4]]), np.ones(2), np.zeros(2)
    >>> npx.batch_norm(x, one, zero, zero.copy(), one.copy(), eps=0.0)
    array([[1., 2.],
           [3., 4.]])
    """
    training = _core.is_training() and not use_global_stats
    y = _BATCH_NORM(
        x,
        gamma,
        beta,
        running_mean,
        running_var,
        eps=float(eps),
        momentum=float(momentum),
        fix_gamma=fix_gamma,
        use_global_stats=use_global_stats,
        axis=axis,
        training=_core.is_training(),
    )
    if not output_mean_var:
        return y
    a = as_array(x)
    others = tuple(i for i in range(a.ndim) if i != normalize_axis(axis, a.ndim))
    mean = a.mean(others) if training else as_array(running_mean)
    variance = a.var(others) if training else as_array(running_var)
    return [y, mean, (variance + eps) ** -0.5]


def layer_norm(
    data: Any = None,
    gamma: Any = None,
    beta: Any = None,
    axis: int | None = None,
    eps: float | None = None,
    output_mean_var: bool | None = None,
) -> Any:
    """`data` with mean 0 and variance 1 along `axis` (default -1), times `gamma`, plus `beta`; `eps` is 1e-5.

    `output_mean_var`: also the mean and the standard deviation, with the axis kept.

    >>> npx.layer_norm(np.array([[1, 3]]), np.ones(2), np.zeros(2), eps=0.0)
    array([[-1.,  1.]])
    """
    axis = -1 if axis is None else axis
    eps = 1e-5 if eps is None else float(eps)
    y = _LAYER_NORM(data, gamma, beta, axis=axis, eps=eps)
    if not output_mean_var:
        return y
    x = as_array(data)
    return [y, x.mean(axis, keepdims=True), (x.var(axis, keepdims=True) + eps) ** 0.5]


def group_norm(
    data: Any, gamma: Any, beta: Any, num_groups: int = 1, eps: float = 1e-3, output_mean_var: bool = False
) -> Any:
    """`data` (N, C, ...) with mean 0 and variance 1 over each of `num_groups` groups of channels of a sample.

    `gamma` and `beta` have one entry for each channel. `output_mean_var`: also mean and standard deviation,
    (N, num_groups).

    >>> npx.group_norm(np.ones((2, 4, 3)), np.ones(4), np.zeros(4), num_groups=2).shape
    (2, 4, 3)
    """
    y = _GROUP_NORM(data, gamma, beta, num_groups=num_groups, eps=float(eps))
    if not output_mean_var:
        return y
    x = as_array(data)
    groups = x.reshape((x.shape[0], num_groups, x.size // max(x.shape[0] * num_groups, 1)))
    return [y, groups.mean(2), (groups.var(2) + eps) ** 0.5]


def instance_norm(data: Any, gamma: Any, beta: Any, eps: float = 1e-3) -> ndarray:
    """`data` (N, C, ...) with mean 0 and variance 1 over the spatial axes of each sample and channel.

    >>> npx.instance_norm(np.ones((2, 3, 4)), np.ones(3), np.zeros(3)).shape
    (2, 3, 4)
    """
    return _INSTANCE_NORM(data, gamma, beta, eps=float(eps))


def l2_normalization(data: Any, eps: float = 1e-10, mode: str = "instance") -> ndarray:
    """`data` over the root of its sum of squares, by 'instance' (all axes but 0), 'channel' (1) or 'spatial' (2, ...).

    >>> npx.l2_normalization(np.array([[3, 4]]))
    array([[0.6, 0.8]])
    """
    x = as_array(data)
    ranges = {"instance": range(1, x.ndim), "channel": (1,), "spatial": range(2, x.ndim)}
    if mode not in ranges:
        raise MXNetValueError(f"l2_normalization: mode must be instance, channel or spatial, got {mode!r}")
    return x / ((x * x).sum(tuple(ranges[mode]), keepdims=True) + eps) ** 0.5
