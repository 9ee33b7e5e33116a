"""Layers that only move elements: pixel shuffles and reflection padding."""

from __future__ import annotations

from typing import Any, ClassVar

from mxnp import npx
from mxnp.error import MXNetValueError

from ..block import HybridBlock
from ._common import device_of, spread


class _PixelShuffle(HybridBlock):
    """Groups of channels become finer spatial axes: (N, f1 f2 C, H, W) to (N, C, H f1, W f2) (Shi et al. 2016)."""

    _ndim: ClassVar[int]

    def __init__(self, factor: int | tuple[int, ...]) -> None:
        """`factor`: a number, or one per spatial axis, by which each is enlarged."""
        super().__init__()
        self._factors = spread(factor, self._ndim, self, "factor", 1)

    def forward(self, x: Any) -> Any:
        """Raises ValueError for another number of axes, or channels that the factors do not divide."""
        device_of(x, self)
        name, n, factors = type(self).__name__, self._ndim, self._factors
        if x.ndim != n + 2:
            raise MXNetValueError(f"{name}: expected an input of {n + 2} dimensions, got shape {x.shape}")
        product = 1
        for factor in factors:
            product *= factor
        if x.shape[1] % product:
            raise MXNetValueError(f"{name}: {x.shape[1]} channels cannot be split by the factors {factors}")
        # (N, C, f1, ..., fn, size1, ..., sizen) to (N, C, size1, f1, ..., sizen, fn)
        split = x.reshape((x.shape[0], x.shape[1] // product, *factors, *x.shape[2:]))
        order = [0, 1]
        for axis in range(n):
            order += [2 + n + axis, 2 + axis]
        sizes = [size * factor for size, factor in zip(x.shape[2:], factors, strict=True)]
        return split.transpose(order).reshape((x.shape[0], x.shape[1] // product, *sizes))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._factors[0] if self._ndim == 1 else self._factors})"


class PixelShuffle1D(_PixelShuffle):
    """(N, f C, W) to (N, C, W f).

    >>> nn.PixelShuffle1D(2)(np.ones((1, 8, 3))).shape
    (1, 4, 6)
    """

    _ndim = 1

    def __init__(self, factor: int | tuple[int, ...]) -> None:
        """`factor`: a number, or one per spatial axis, by which each is enlarged."""
        super().__init__(factor)


class PixelShuffle2D(_PixelShuffle):
    """(N, f1 f2 C, H, W) to (N, C, H f1, W f2).

    >>> nn.PixelShuffle2D((2, 3))(np.ones((1, 12, 3, 5))).shape
    (1, 2, 6, 15)
    """

    _ndim = 2

    def __init__(self, factor: int | tuple[int, ...]) -> None:
        """`factor`: a number, or one per spatial axis, by which each is enlarged."""
        super().__init__(factor)


class PixelShuffle3D(_PixelShuffle):
    """(N, f1 f2 f3 C, D, H, W) to (N, C, D f1, H f2, W f3).

    >>> nn.PixelShuffle3D(2)(np.ones((1, 16, 3, 4, 5))).shape
    (1, 2, 6, 8, 10)
    """

    _ndim = 3

    def __init__(self, factor: int | tuple[int, ...]) -> None:
        """`factor`: a number, or one per spatial axis, by which each is enlarged."""
        super().__init__(factor)


class ReflectionPad2D(HybridBlock):
    """Enlarges (N, C, H, W) by its own mirror image, without repeating the border.

    padding : rows and columns added on every side, or the eight numbers of `npx.pad`, of which the first four are 0.

    >>> nn.ReflectionPad2D(1)(np.arange(4).reshape(1, 1, 2, 2))[0, 0]
    array([[3., 2., 3., 2.],
           [1., 0., 1., 0.],
           [3., 2., 3., 2.],
           [1., 0., 1., 0.]])
    """

    def __init__(self, padding: int | tuple[int, ...] = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        widths = (0,) * 4 + (padding,) * 4 if isinstance(padding, int) else tuple(padding)
        if len(widths) != 8 or any(widths[:4]):
            raise MXNetValueError(
                f"ReflectionPad2D: padding must be a number, or eight of which the first four are 0, got {padding!r}"
            )
        self._padding = widths

    def forward(self, x: Any) -> Any:
        """(N, C, H + 2 padding, W + 2 padding)."""
        device_of(x, self)
        return npx.pad(x, mode="reflect", pad_width=self._padding)

    def __repr__(self) -> str:
        sides = self._padding[4:]
        return f"ReflectionPad2D({sides[0] if len(set(sides)) == 1 else self._padding})"
