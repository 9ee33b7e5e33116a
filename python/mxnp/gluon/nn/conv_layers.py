"""Convolutions over 1, 2 and 3 spatial axes."""

from __future__ import annotations

from typing import Any, ClassVar

from mxnp import npx
from mxnp.error import MXNetValueError

from .._parameter import Parameter
from ..block import HybridBlock
from ._common import axis_size, check_layout, device_of, spread, whole
from .activations import Activation

Size = int | tuple[int, ...]


class _Conv(HybridBlock):
    """A convolution (cross-correlation) over the spatial axes of its layouts."""

    _layouts: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        channels: int,
        kernel_size: Size,
        strides: Size,
        padding: Size,
        dilation: Size,
        groups: int,
        layout: str | None,
        activation: str | None,
        use_bias: bool,
        weight_initializer: Any,
        bias_initializer: Any,
        in_channels: int,
        **kwargs: Any,
    ) -> None:
        """Compute `activation(x * weight + bias)`.

        Parameters
        ----------
        channels : number of output channels.
        kernel_size : a number, or one per spatial axis; so are strides, padding and dilation.
        groups : input and output channels are split into this many groups that do not mix.
        layout : order of the axes of input and output; the weight has O in N's and I in C's place.
        activation : name for Activation; None for none.
        use_bias : whether there is a bias.
        weight_initializer, bias_initializer : None takes the one given to `initialize`.
        in_channels : number of input channels; 0 finds it in the first forward.
        """
        super().__init__(**kwargs)
        self._layout = check_layout(layout, self._layouts, self)
        ndim = len(self._layout) - 2
        self._channels = channels = whole(channels, self, "channels")
        self._groups = whole(groups, self, "groups")
        self._kernel = spread(kernel_size, ndim, self, "kernel_size", 1)
        self._strides = spread(strides, ndim, self, "strides", 1)
        self._padding = spread(padding, ndim, self, "padding")
        self._dilation = spread(dilation, ndim, self, "dilation", 1)
        in_channels = whole(in_channels, self, "in_channels", -1)
        self.weight = Parameter(
            "weight", shape=self._weight_shape(in_channels), init=weight_initializer, allow_deferred_init=True
        )
        self.bias = (
            Parameter("bias", shape=(channels,), init=bias_initializer, allow_deferred_init=True)
            if use_bias
            else None
        )
        self.act = Activation(activation) if activation is not None else None

    def _alias(self) -> str:
        return "conv"

    def _weight_shape(self, in_channels: int) -> tuple[int, ...]:
        """The weight's shape in the layout's order; raises MXNetValueError when the groups do not divide."""
        for count, what in ((in_channels, "input"), (self._channels, "output")):
            if max(count, 0) % self._groups:
                raise MXNetValueError(
                    f"{type(self).__name__}: {count} {what} channels cannot be split into {self._groups} groups"
                )
        sizes = dict(zip(self._layout.replace("N", "").replace("C", ""), self._kernel, strict=True))
        sizes |= {"N": self._channels, "C": in_channels // self._groups}
        return tuple(sizes[axis] for axis in self._layout)

    def infer_shape(self, x: Any, *args: Any) -> None:
        """The input channels are the size of the layout's C axis."""
        self._check_axes(x)
        self.weight.shape = self._weight_shape(axis_size(x, self._layout.index("C"), self))

    def forward(self, x: Any) -> Any:
        """Input and output have the axes of `layout`."""
        device = device_of(x, self)
        if x.ndim != len(self._layout):
            self._check_axes(x)
        weight = self.weight.data(device)
        bias = None if self.bias is None else self.bias.data(device)
        y = self._convolve(
            x,
            weight,
            bias,
            kernel=self._kernel,
            stride=self._strides,
            dilate=self._dilation,
            pad=self._padding,
            num_filter=self._channels,
            num_group=self._groups,
            no_bias=bias is None,
            layout=self._layout,
        )
        return y if self.act is None else self.act(y)

    def _check_axes(self, x: Any) -> None:
        if getattr(x, "ndim", len(self._layout)) == len(self._layout):
            return
        hint = "\nhint: x[None] adds an axis for the batch" if x.ndim == len(self._layout) - 1 else ""
        raise MXNetValueError(
            f"{type(self).__name__}: expected an input of layout {self._layout}, got shape {x.shape}{hint}"
        )

    def _convolve(self, *operands: Any, **sizes: Any) -> Any:
        return npx.convolution(*operands, **sizes)

    def _in_channels(self) -> int:
        """The number of input channels, -1 where it is not known yet."""
        count = self.weight.shape[self._layout.index("C")] * self._groups
        return count if count > 0 else -1

    def __repr__(self) -> str:
        parts = [
            f"{self._in_channels()} -> {self._channels}",
            f"kernel_size={self._kernel}",
            f"stride={self._strides}",
        ]
        if any(self._padding):
            parts.append(f"padding={self._padding}")
        if any(size != 1 for size in self._dilation):
            parts.append(f"dilation={self._dilation}")
        if self._groups != 1:
            parts.append(f"groups={self._groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.act is not None:
            parts.append(repr(self.act))
        return f"{type(self).__name__}({', '.join(parts)})"


class Conv1D(_Conv):
    """1-D convolution over (N, C, W), or `layout='NWC'`.

    >>> layer = nn.Conv1D(8, kernel_size=3)
    >>> layer.initialize()
    >>> layer(np.ones((2, 3, 10))).shape
    (2, 8, 8)
    """

    _layouts = ("NCW", "NWC")

    def __init__(
        self,
        channels: int,
        kernel_size: Size,
        strides: Size = 1,
        padding: Size = 0,
        dilation: Size = 1,
        groups: int = 1,
        layout: str = "NCW",
        activation: str | None = None,
        use_bias: bool = True,
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        in_channels: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            channels,
            kernel_size,
            strides,
            padding,
            dilation,
            groups,
            layout,
            activation,
            use_bias,
            weight_initializer,
            bias_initializer,
            in_channels,
            **kwargs,
        )


class Conv2D(_Conv):
    """2-D convolution over (N, C, H, W), or `layout='NHWC'`.

    >>> layer = nn.Conv2D(8, kernel_size=3, padding=1)
    >>> layer.initialize()
    >>> layer(np.ones((2, 3, 6, 7))).shape
    (2, 8, 6, 7)
    """

    _layouts = ("NCHW", "NHWC")

    def __init__(
        self,
        channels: int,
        kernel_size: Size,
        strides: Size = (1, 1),
        padding: Size = (0, 0),
        dilation: Size = (1, 1),
        groups: int = 1,
        layout: str = "NCHW",
        activation: str | None = None,
        use_bias: bool = True,
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        in_channels: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            channels,
            kernel_size,
            strides,
            padding,
            dilation,
            groups,
            layout,
            activation,
            use_bias,
            weight_initializer,
            bias_initializer,
            in_channels,
            **kwargs,
        )


class Conv3D(_Conv):
    """3-D convolution over (N, C, D, H, W), or `layout='NDHWC'`.

    >>> nn.Conv3D(8, kernel_size=2, in_channels=3).weight.shape
    (8, 3, 2, 2, 2)
    """

    _layouts = ("NCDHW", "NDHWC")

    def __init__(
        self,
        channels: int,
        kernel_size: Size,
        strides: Size = (1, 1, 1),
        padding: Size = (0, 0, 0),
        dilation: Size = (1, 1, 1),
        groups: int = 1,
        layout: str = "NCDHW",
        activation: str | None = None,
        use_bias: bool = True,
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        in_channels: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            channels,
            kernel_size,
            strides,
            padding,
            dilation,
            groups,
            layout,
            activation,
            use_bias,
            weight_initializer,
            bias_initializer,
            in_channels,
            **kwargs,
        )


def __getattr__(name: str) -> Any:
    """The layers that MXNet has in its module of this name, and mxnp in others."""
    from mxnp.gluon import nn

    if name in nn.__all__:
        return getattr(nn, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
