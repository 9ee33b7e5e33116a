"""Normalisation layers."""

from __future__ import annotations

from typing import Any

import numpy as onp

from mxnp import npx
from mxnp.error import MXNetNotImplementedError

from .._parameter import Parameter, _as_dtype
from ..block import HybridBlock
from ._common import axis_size, device_of


def _vector(name: str, size: int, init: Any, learned: bool) -> Parameter:
    """One number per channel; `size` 0 is found in the first forward."""
    return Parameter(name, shape=(size,), init=init, allow_deferred_init=True, differentiable=learned)


class BatchNorm(HybridBlock):
    """Normalises each channel over the batch in training, and by running statistics otherwise.

    The variance is the biased one; running statistics keep the fraction `momentum` of themselves at each training
    forward.

    >>> layer = nn.BatchNorm()
    >>> layer.initialize()
    >>> layer(np.ones((2, 3, 4))).shape
    (2, 3, 4)
    """

    def __init__(
        self,
        axis: int = 1,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = True,
        use_global_stats: bool = False,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        running_mean_initializer: Any = "zeros",
        running_variance_initializer: Any = "ones",
        in_channels: int = 0,
        **kwargs: Any,
    ) -> None:
        """Parameters
        ----------
        axis : the channel axis.
        momentum : kept fraction of the running statistics.
        epsilon : added to the variance.
        center, scale : whether beta and gamma are learned; else they stay 0 and 1.
        use_global_stats : normalise by the running statistics in training too.
        beta_initializer, gamma_initializer, running_mean_initializer, running_variance_initializer : as named.
        in_channels : number of channels; 0 finds it in the first forward.
        """
        super().__init__(**kwargs)
        self._axis = axis
        self._options: dict[str, Any] = {
            "eps": epsilon,
            "momentum": momentum,
            "fix_gamma": not scale,
            "use_global_stats": use_global_stats,
        }
        self.gamma = _vector("gamma", in_channels, gamma_initializer, scale)
        self.beta = _vector("beta", in_channels, beta_initializer, center)
        self.running_mean = _vector("running_mean", in_channels, running_mean_initializer, False)
        self.running_var = _vector("running_var", in_channels, running_variance_initializer, False)

    def infer_shape(self, x: Any, *args: Any) -> None:
        """Every parameter has one element per channel."""
        for parameter in self.params.values():
            parameter.shape = (axis_size(x, self._axis, self),)

    def cast(self, dtype: Any) -> None:
        """As Block.cast; for dtypes narrower than float32 the parameters stay, or become, float32."""
        dtype = _as_dtype(dtype)
        super().cast(onp.dtype("float32") if dtype.itemsize < 4 else dtype)

    def forward(self, x: Any) -> Any:
        """Same shape as `x`."""
        device = device_of(x, self)
        return npx.batch_norm(
            x,
            self.gamma.data(device),
            self.beta.data(device),
            self.running_mean.data(device),
            self.running_var.data(device),
            axis=self._axis,
            **self._options,
        )

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={value}" for name, value in self._options.items())
        return f"{type(self).__name__}(axis={self._axis}, {options}, in_channels={self.gamma.shape[0]})"


class BatchNormReLU(BatchNorm):
    """BatchNorm followed by relu.

    >>> layer = nn.BatchNormReLU()
    >>> layer.initialize()
    >>> layer(np.ones((2, 3, 4))).shape
    (2, 3, 4)
    """

    def forward(self, x: Any) -> Any:
        """Same shape as `x`."""
        return npx.relu(super().forward(x))


class SyncBatchNorm(BatchNorm):
    """BatchNorm whose statistics are those of the batch on all devices; here: of one device.

    num_devices : how many devices share a batch. More than one raises MXNetNotImplementedError.

    >>> layer = nn.SyncBatchNorm()
    >>> layer.initialize()
    >>> layer(np.ones((2, 3, 4))).shape
    (2, 3, 4)
    """

    def __init__(
        self,
        in_channels: int = 0,
        num_devices: int | None = None,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = True,
        use_global_stats: bool = False,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        running_mean_initializer: Any = "zeros",
        running_variance_initializer: Any = "ones",
        **kwargs: Any,
    ) -> None:
        if num_devices is not None and num_devices > 1:
            raise MXNetNotImplementedError(
                f"SyncBatchNorm: a batch on {num_devices} devices has not arrived\n"
                "hint: BatchNorm normalises the part of the batch on each device by itself"
            )
        super().__init__(
            1,
            momentum,
            epsilon,
            center,
            scale,
            use_global_stats,
            beta_initializer,
            gamma_initializer,
            running_mean_initializer,
            running_variance_initializer,
            in_channels,
            **kwargs,
        )


class _Affine(HybridBlock):
    """A normalisation along given axes, then scaled by gamma and shifted by beta, each of the size of one axis."""

    def __init__(
        self,
        axis: int,
        epsilon: float,
        center: bool,
        scale: bool,
        beta_initializer: Any,
        gamma_initializer: Any,
        in_channels: int,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._axis = axis
        self._epsilon = epsilon
        self._center = center
        self._scale = scale
        self.gamma = _vector("gamma", in_channels, gamma_initializer, scale)
        self.beta = _vector("beta", in_channels, beta_initializer, center)

    def infer_shape(self, x: Any, *args: Any) -> None:
        """Gamma and beta have the size of `axis`."""
        for parameter in self.params.values():
            parameter.shape = (axis_size(x, self._axis, self),)

    def forward(self, x: Any) -> Any:
        """Same shape as `x`."""
        device = device_of(x, self)
        return self._normalize(x, self.gamma.data(device), self.beta.data(device))

    def _normalize(self, x: Any, gamma: Any, beta: Any) -> Any:
        raise NotImplementedError

    def _shown(self) -> str:
        """What the layer shows between its epsilon and what all have."""
        return f"axis={self._axis}"

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(eps={self._epsilon}, {self._shown()}, center={self._center}, "
            f"scale={self._scale}, in_channels={self.gamma.shape[0]})"
        )


class LayerNorm(_Affine):
    """Normalises each sample along `axis`, then scales by gamma and shifts by beta (Ba et al. 2016).

    Parameters
    ----------
    axis : the axis normalised over.
    epsilon : added to the variance.
    center, scale : whether beta and gamma are learned; else they stay 0 and 1.
    beta_initializer, gamma_initializer : as named.
    in_channels : size of that axis; 0 finds it in the first forward.

    >>> layer = nn.LayerNorm()
    >>> layer.initialize()
    >>> layer(np.ones((2, 3))).shape
    (2, 3)
    """

    def __init__(
        self,
        axis: int = -1,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        in_channels: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            axis, epsilon, center, scale, beta_initializer, gamma_initializer, in_channels, **kwargs
        )

    def _normalize(self, x: Any, gamma: Any, beta: Any) -> Any:
        return npx.layer_norm(x, gamma, beta, axis=self._axis, eps=self._epsilon)


class GroupNorm(_Affine):
    """Normalises each sample over groups of its channels (axis 1) and all later axes (Wu and He 2018).

    Parameters
    ----------
    num_groups : into how many groups the channels are split; 1 normalises over all of them.
    epsilon : added to the variance.
    center, scale : whether beta and gamma are learned; else they stay 0 and 1.
    beta_initializer, gamma_initializer : as named; both have one number per channel.
    in_channels : number of channels; 0 finds it in the first forward.

    >>> layer = nn.GroupNorm(num_groups=2)
    >>> layer.initialize()
    >>> layer(np.ones((2, 4, 3))).shape
    (2, 4, 3)
    """

    def __init__(
        self,
        num_groups: int = 1,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        in_channels: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            1, epsilon, center, scale, beta_initializer, gamma_initializer, in_channels, **kwargs
        )
        self._num_groups = num_groups

    def _normalize(self, x: Any, gamma: Any, beta: Any) -> Any:
        return npx.group_norm(x, gamma, beta, num_groups=self._num_groups, eps=self._epsilon)

    def _shown(self) -> str:
        return f"num_groups={self._num_groups}"


class InstanceNorm(_Affine):
    """Normalises each channel of each sample over the axes that are neither (Ulyanov et al. 2016).

    Parameters
    ----------
    axis : the channel axis.
    epsilon : added to the variance.
    center, scale : whether beta and gamma are learned; else they stay 0 and 1. By default gamma is not.
    beta_initializer, gamma_initializer : as named.
    in_channels : number of channels; 0 finds it in the first forward.

    >>> layer = nn.InstanceNorm()
    >>> layer.initialize()
    >>> layer(np.array([[[1.0, 3.0]]])).round(2)
    array([[[-1.,  1.]]])
    """

    def __init__(
        self,
        axis: int = 1,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = False,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        in_channels: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            axis, epsilon, center, scale, beta_initializer, gamma_initializer, in_channels, **kwargs
        )

    def _normalize(self, x: Any, gamma: Any, beta: Any) -> Any:
        if self._axis == 1:
            return npx.instance_norm(x, gamma, beta, eps=self._epsilon)
        y = npx.instance_norm(x.swapaxes(1, self._axis), gamma, beta, eps=self._epsilon)
        return y.swapaxes(1, self._axis)
