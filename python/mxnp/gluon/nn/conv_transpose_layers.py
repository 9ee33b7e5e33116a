"""Transposed convolutions over 1, 2 and 3 spatial axes: the layers that undo the shapes of convolutions."""

from __future__ import annotations

from typing import Any, ClassVar

from mxnp import npx
from mxnp.error import MXNetValueError

from ._common import spread
from .conv_layers import Size, _Conv


class _ConvTranspose(_Conv):
    """The gradient of a convolution with respect to its input, as a layer (Zeiler et al. 2010)."""

    _layouts: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        channels: int,
        kernel_size: Size,
        strides: Size,
        padding: Size,
        output_padding: Size,
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
        """Each spatial size becomes (size - 1) stride - 2 padding + dilation (kernel - 1) + 1 + output_padding.

        Parameters
        ----------
        channels : number of output channels.
        kernel_size : a number, or one per spatial axis; so are strides, padding, output_padding and dilation.
        output_padding : rows added at the end of each axis, fewer than the stride; it picks one of the sizes that a
            convolution of this stride maps to the input's.
        groups : input and output channels are split into this many groups that do not mix.
        layout : order of the axes of input and output; the weight has shape (in_channels, channels / groups, *kernel).
        activation : name for Activation; None for none.
        use_bias : whether there is a bias.
        weight_initializer, bias_initializer : None takes the one given to `initialize`.
        in_channels : number of input channels; 0 finds it in the first forward.
        """
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
        self._output_padding = spread(output_padding, len(self._layout) - 2, self, "output_padding")
        for added, stride in zip(self._output_padding, self._strides, strict=True):
            if not 0 <= added < stride:
                raise MXNetValueError(
                    f"{type(self).__name__}: output_padding must be less than the stride, got {added} for {stride}"
                )

    def _weight_shape(self, in_channels: int) -> tuple[int, ...]:
        """Input channels come first: (in_channels, channels / groups, *kernel)."""
        out, _, *kernel = super()._weight_shape(in_channels)
        return (in_channels, out // self._groups, *kernel)

    def _convolve(self, *operands: Any, **sizes: Any) -> Any:
        sizes["adj"] = self._output_padding
        return npx.deconvolution(*operands, **sizes)

    def _in_channels(self) -> int:
        return self.weight.shape[0] if self.weight.shape[0] > 0 else -1


class Conv1DTranspose(_ConvTranspose):
    """1-D transposed convolution over (N, C, W).

    >>> layer = nn.Conv1DTranspose(8, kernel_size=4, strides=2, padding=1)
    >>> layer.initialize()
    >>> layer(np.ones((2, 3, 10))).shape
    (2, 8, 20)
    """

    _layouts = ("NCW",)

    def __init__(
        self,
        channels: int,
        kernel_size: Size,
        strides: Size = 1,
        padding: Size = 0,
        output_padding: Size = 0,
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
            output_padding,
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


class Conv2DTranspose(_ConvTranspose):
    """2-D transposed convolution over (N, C, H, W).

    >>> layer = nn.Conv2DTranspose(8, kernel_size=4, strides=2, padding=1)
    >>> layer.initialize()
    >>> layer(np.ones((2, 3, 6, 7))).shape
    (2, 8, 12, 14)
    """

    _layouts = ("NCHW",)

    def __init__(
        self,
        channels: int,
        kernel_size: Size,
        strides: Size = (1, 1),
        padding: Size = (0, 0),
        output_padding: Size = (0, 0),
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
            output_padding,
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


class Conv3DTranspose(_ConvTranspose):
    """3-D transposed convolution over (N, C, D, H, W).

    >>> layer = nn.Conv3DTranspose(8, kernel_size=2, strides=2)
    >>> layer.initialize()
    >>> layer(np.ones((1, 3, 2, 3, 4))).shape
    (1, 8, 4, 6, 8)
    """

    _layouts = ("NCDHW",)

    def __init__(
        self,
        channels: int,
        kernel_size: Size,
        strides: Size = (1, 1, 1),
        padding: Size = (0, 0, 0),
        output_padding: Size = (0, 0, 0),
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
            output_padding,
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
