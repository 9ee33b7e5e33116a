"""Normalisation layers."""

from __future__ import annotations

from typing import Any

import numpy as onp

from mxnp import npx

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

    Parameters
    ----------
    axis : the channel axis.
    momentum : kept fraction of the running statistics.
    epsilon : added to the variance.
    center, scale : whether beta and gamma are learned; else they stay 0 and 1.
    use_global_stats : normalise by the running statistics in training too.
    beta_initializer, gamma_initializer, running_mean_initializer, running_variance_initializer : as named.
    in_channels : number of channels; 0 finds it in the first forward.

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


class LayerNorm(HybridBlock):
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
        return npx.layer_norm(
            x, self.gamma.data(device), self.beta.data(device), axis=self._axis, eps=self._epsilon
        )

    def __repr__(self) -> str:
        return (
            f"LayerNorm(eps={self._epsilon}, axis={self._axis}, center={self._center}, scale={self._scale}, "
            f"in_channels={self.gamma.shape[0]})"
        )
