"""Activation layers: elementwise, shape and dtype unchanged."""

from __future__ import annotations

from typing import Any

from mxnp import initializer, npx
from mxnp._ops.nn_act import ACTIVATIONS
from mxnp.error import MXNetValueError

from .._parameter import Parameter
from ..block import HybridBlock
from ._common import device_of


class Activation(HybridBlock):
    """An activation by name: 'relu', 'sigmoid', 'tanh', 'softrelu', 'softsign', 'log_sigmoid', 'mish'.

    >>> nn.Activation("relu")(np.array([-1, 2])).tolist()
    [0.0, 2.0]
    """

    def __init__(self, activation: str, **kwargs: Any) -> None:
        if activation not in ACTIVATIONS:
            raise MXNetValueError(
                f"Activation: activation must be one of {', '.join(sorted(ACTIVATIONS))}, got {activation!r}"
            )
        self._act_type = activation  # before the base: it names the block
        super().__init__(**kwargs)

    def _alias(self) -> str:
        return self._act_type

    def forward(self, x: Any) -> Any:
        """The activation of `x`."""
        return npx.activation(x, act_type=self._act_type)

    def __repr__(self) -> str:
        return f"Activation({self._act_type})"


class LeakyReLU(HybridBlock):
    """`x` where positive, `alpha * x` elsewhere; alpha is at least 0.

    >>> nn.LeakyReLU(0.5)(np.array([-1, 2])).tolist()
    [-0.5, 2.0]
    """

    def __init__(self, alpha: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if alpha < 0:
            raise MXNetValueError(f"LeakyReLU: alpha must be at least 0, got {alpha!r}")
        self._alpha = alpha

    def forward(self, x: Any) -> Any:
        """The activation of `x`."""
        return npx.leaky_relu(x, act_type="leaky", slope=self._alpha)

    def __repr__(self) -> str:
        return f"LeakyReLU({self._alpha})"


class PReLU(HybridBlock):
    """LeakyReLU with a learned slope: one, or one per channel (axis 1) with `in_channels` of them.

    alpha_initializer : of the slopes; by default they start as 0.25 (He et al. 2015).

    >>> layer = nn.PReLU()
    >>> layer.initialize()
    >>> layer(np.array([-1, 2])).tolist()
    [-0.25, 2.0]
    """

    def __init__(self, alpha_initializer: Any = None, in_channels: int = 1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if alpha_initializer is None:
            alpha_initializer = initializer.Constant(0.25)
        self.alpha = Parameter("alpha", shape=(in_channels,), init=alpha_initializer)

    def forward(self, x: Any) -> Any:
        """The activation of `x`."""
        return npx.leaky_relu(x, gamma=self.alpha.data(device_of(x, self)), act_type="prelu")


class ELU(HybridBlock):
    """`x` where positive, `alpha * (exp(x) - 1)` elsewhere (Clevert et al. 2016).

    >>> nn.ELU()(np.array([0, 2])).tolist()
    [0.0, 2.0]
    """

    def __init__(self, alpha: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._alpha = alpha

    def forward(self, x: Any) -> Any:
        """The activation of `x`."""
        return npx.leaky_relu(x, act_type="elu", slope=self._alpha)


class SELU(HybridBlock):
    """The self-normalising ELU of Klambauer et al. 2017.

    >>> nn.SELU()(np.array([0])).tolist()
    [0.0]
    """

    def forward(self, x: Any) -> Any:
        """The activation of `x`."""
        return npx.leaky_relu(x, act_type="selu")


class GELU(HybridBlock):
    """`x` times the normal distribution function of `x` (Hendrycks and Gimpel 2016), with erf.

    >>> nn.GELU()(np.array([0])).tolist()
    [0.0]
    """

    def forward(self, x: Any) -> Any:
        """The activation of `x`."""
        return npx.leaky_relu(x, act_type="gelu")


class Swish(HybridBlock):
    """`x * sigmoid(beta * x)` (Ramachandran et al. 2017).

    >>> nn.Swish()(np.array([0])).tolist()
    [0.0]
    """

    def __init__(self, beta: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._beta = beta

    def forward(self, x: Any) -> Any:
        """The activation of `x`."""
        return x * npx.sigmoid(x if self._beta == 1.0 else self._beta * x)


class SiLU(Swish):
    """`x * sigmoid(x)`.

    >>> nn.SiLU()(np.array([0])).tolist()
    [0.0]
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(1.0, **kwargs)
