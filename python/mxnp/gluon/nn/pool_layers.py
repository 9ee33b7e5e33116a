"""Pooling over 1, 2 and 3 spatial axes: windows, and whole images."""

from __future__ import annotations

from typing import Any, ClassVar

from mxnp import npx

from ..block import HybridBlock
from ._common import check_layout, device_of, spread

Size = int | tuple[int, ...]


class _Pool(HybridBlock):
    """Reduces windows of the spatial axes."""

    _pool_type: ClassVar[str]
    _layouts: ClassVar[tuple[str, ...]]
    _global: ClassVar[bool] = False

    def __init__(
        self,
        pool_size: Size,
        strides: Size | None,
        padding: Size,
        layout: str | None,
        ceil_mode: bool,
        count_include_pad: bool = True,
        **kwargs: Any,
    ) -> None:
        """Parameters
        ----------
        pool_size : size of a window, a number or one per spatial axis; so are strides and padding.
        strides : distance of windows; None for the size of a window.
        padding : what is put around the input: -inf for maxima, zeros for means.
        layout : order of the axes of input and output.
        ceil_mode : whether a last window that the input only partly fills counts.
        count_include_pad : for means, whether the padding counts as elements.
        """
        super().__init__(**kwargs)
        self._layout = check_layout(layout, self._layouts, self)
        ndim = len(self._layout) - 2
        self._size = spread(pool_size, ndim, self, "pool_size", 1)
        self._strides = self._size if strides is None else spread(strides, ndim, self, "strides", 1)
        self._padding = spread(padding, ndim, self, "padding")
        self._ceil_mode = ceil_mode
        self._count_include_pad = count_include_pad

    def _alias(self) -> str:
        return "pool"

    def forward(self, x: Any) -> Any:
        """Input and output have the axes of `layout`."""
        device_of(x, self)
        return npx.pooling(
            x,
            kernel=self._size,
            stride=self._strides,
            pad=self._padding,
            pool_type=self._pool_type,
            pooling_convention="full" if self._ceil_mode else "valid",
            global_pool=self._global,
            count_include_pad=self._count_include_pad,
            layout=self._layout,
        )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(size={self._size}, stride={self._strides}, padding={self._padding}, "
            f"ceil_mode={self._ceil_mode}, global_pool={self._global}, pool_type={self._pool_type}, "
            f"layout={self._layout})"
        )


class _Pool1D(_Pool):
    _layouts = ("NCW", "NWC")


class _Pool2D(_Pool):
    _layouts = ("NCHW", "NHWC")


class _Pool3D(_Pool):
    _layouts = ("NCDHW", "NDHWC")


class MaxPool1D(_Pool1D):
    """The largest element of each window of (N, C, W).

    >>> nn.MaxPool1D()(np.ones((2, 3, 4))).shape
    (2, 3, 2)
    """

    _pool_type = "max"

    def __init__(
        self,
        pool_size: Size = 2,
        strides: Size | None = None,
        padding: Size = 0,
        layout: str = "NCW",
        ceil_mode: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(pool_size, strides, padding, layout, ceil_mode, **kwargs)


class MaxPool2D(_Pool2D):
    """The largest element of each window of (N, C, H, W).

    >>> nn.MaxPool2D()(np.ones((2, 3, 4, 4))).shape
    (2, 3, 2, 2)
    """

    _pool_type = "max"

    def __init__(
        self,
        pool_size: Size = (2, 2),
        strides: Size | None = None,
        padding: Size = 0,
        layout: str = "NCHW",
        ceil_mode: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(pool_size, strides, padding, layout, ceil_mode, **kwargs)


class MaxPool3D(_Pool3D):
    """The largest element of each window of (N, C, D, H, W).

    >>> nn.MaxPool3D()(np.ones((2, 3, 4, 4, 4))).shape
    (2, 3, 2, 2, 2)
    """

    _pool_type = "max"

    def __init__(
        self,
        pool_size: Size = (2, 2, 2),
        strides: Size | None = None,
        padding: Size = 0,
        ceil_mode: bool = False,
        layout: str = "NCDHW",
        **kwargs: Any,
    ) -> None:
        super().__init__(pool_size, strides, padding, layout, ceil_mode, **kwargs)


class AvgPool1D(_Pool1D):
    """The mean of each window of (N, C, W).

    >>> nn.AvgPool1D()(np.ones((2, 3, 4))).shape
    (2, 3, 2)
    """

    _pool_type = "avg"

    def __init__(
        self,
        pool_size: Size = 2,
        strides: Size | None = None,
        padding: Size = 0,
        layout: str = "NCW",
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(pool_size, strides, padding, layout, ceil_mode, count_include_pad, **kwargs)


class AvgPool2D(_Pool2D):
    """The mean of each window of (N, C, H, W).

    >>> nn.AvgPool2D()(np.ones((2, 3, 4, 4))).shape
    (2, 3, 2, 2)
    """

    _pool_type = "avg"

    def __init__(
        self,
        pool_size: Size = (2, 2),
        strides: Size | None = None,
        padding: Size = 0,
        ceil_mode: bool = False,
        layout: str = "NCHW",
        count_include_pad: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(pool_size, strides, padding, layout, ceil_mode, count_include_pad, **kwargs)


class AvgPool3D(_Pool3D):
    """The mean of each window of (N, C, D, H, W).

    >>> nn.AvgPool3D()(np.ones((2, 3, 4, 4, 4))).shape
    (2, 3, 2, 2, 2)
    """

    _pool_type = "avg"

    def __init__(
        self,
        pool_size: Size = (2, 2, 2),
        strides: Size | None = None,
        padding: Size = 0,
        ceil_mode: bool = False,
        layout: str = "NCDHW",
        count_include_pad: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(pool_size, strides, padding, layout, ceil_mode, count_include_pad, **kwargs)


class _GlobalPool(_Pool):
    """Reduces all spatial axes to size 1."""

    _global = True

    def __init__(self, layout: str | None = None, **kwargs: Any) -> None:
        """`layout`: order of the axes of input and output."""
        super().__init__(1, None, 0, layout, True, **kwargs)


class GlobalMaxPool1D(_GlobalPool, _Pool1D):
    """The largest element of each channel: (N, C, W) to (N, C, 1).

    >>> nn.GlobalMaxPool1D()(np.ones((2, 3, 4))).shape
    (2, 3, 1)
    """

    _pool_type = "max"


class GlobalMaxPool2D(_GlobalPool, _Pool2D):
    """The largest element of each channel: (N, C, H, W) to (N, C, 1, 1).

    >>> nn.GlobalMaxPool2D()(np.ones((2, 3, 4, 4))).shape
    (2, 3, 1, 1)
    """

    _pool_type = "max"


class GlobalMaxPool3D(_GlobalPool, _Pool3D):
    """The largest element of each channel: (N, C, D, H, W) to (N, C, 1, 1, 1).

    >>> nn.GlobalMaxPool3D()(np.ones((2, 3, 4, 4, 4))).shape
    (2, 3, 1, 1, 1)
    """

    _pool_type = "max"


class GlobalAvgPool1D(_GlobalPool, _Pool1D):
    """The mean of each channel: (N, C, W) to (N, C, 1).

    >>> nn.GlobalAvgPool1D()(np.ones((2, 3, 4))).shape
    (2, 3, 1)
    """

    _pool_type = "avg"


class GlobalAvgPool2D(_GlobalPool, _Pool2D):
    """The mean of each channel: (N, C, H, W) to (N, C, 1, 1).

    >>> nn.GlobalAvgPool2D()(np.ones((2, 3, 4, 4))).shape
    (2, 3, 1, 1)
    """

    _pool_type = "avg"


class GlobalAvgPool3D(_GlobalPool, _Pool3D):
    """The mean of each channel: (N, C, D, H, W) to (N, C, 1, 1, 1).

    >>> nn.GlobalAvgPool3D()(np.ones((2, 3, 4, 4, 4))).shape
    (2, 3, 1, 1, 1)
    """

    _pool_type = "avg"
