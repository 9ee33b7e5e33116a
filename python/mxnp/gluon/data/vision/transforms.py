"""Transforms of images, as blocks: Compose, HybridCompose, ToTensor, Normalize, Cast.

Each also has `_for_batch`, by which a loader may apply it to many samples in one call (None: not possible).
"""

from __future__ import annotations

from typing import Any

import numpy as onp

from mxnp._missing import refuse as _refuse
from mxnp.error import MXNetValueError
from mxnp.gluon.block import Block, HybridBlock
from mxnp.gluon.data.batchify import is_mxnp

__all__ = ["Cast", "Compose", "HybridCompose", "Normalize", "ToTensor"]


class _Chain(Block):
    """What Compose and HybridCompose share: transforms in order."""

    def _set(self, transforms: list) -> None:
        self._transforms = list(transforms)
        for i, transform in enumerate(self._transforms):
            if not callable(transform):
                raise TypeError(
                    f"Compose: transform {i} is a {type(transform).__name__}, which cannot be called"
                )
            if isinstance(transform, Block):
                self.register_child(transform)

    def forward(self, x: Any, *args: Any) -> Any:
        """Apply the transforms one after the other to `x`; further arguments are passed through."""
        for transform in self._transforms:
            x = transform(x)
        return (x, *args) if args else x

    def _for_batch(self, x: Any) -> Any | None:
        for transform in self._transforms:
            whole = getattr(transform, "_for_batch", None)
            x = whole(x) if whole is not None else None
            if x is None:
                return None
        return x

    def __len__(self) -> int:
        return len(self._transforms)

    def __getitem__(self, key: int) -> Any:
        return self._transforms[key]


class Compose(_Chain):
    """Apply several transforms (blocks or functions) in order.

    >>> augment = Compose([ToTensor(), Normalize(0.5, 0.5)])
    """

    def __init__(self, transforms: list):
        super().__init__()
        self._set(transforms)


class HybridCompose(_Chain, HybridBlock):
    """As Compose, for transforms that are hybrid blocks; hybridized at construction, as MXNet's.

    >>> chain = HybridCompose([ToTensor(), Normalize(0.5, 0.25)])
    >>> chain(np.full((2, 2, 1), 255, dtype="uint8")).shape
    (1, 2, 2)
    """

    def __init__(self, transforms: list):
        super().__init__()
        self._set(transforms)
        for i, transform in enumerate(self._transforms):
            if not isinstance(transform, HybridBlock):
                raise TypeError(
                    f"HybridCompose: transform {i} is a {type(transform).__name__}, not a HybridBlock"
                )
        self.hybridize()


class _ImageTransform(HybridBlock):
    """A hybrid block that also takes NumPy arrays, which is what some data sets hold."""

    def __call__(self, *args: Any) -> Any:
        return super().__call__(*map(_as_mxnp, args))


class ToTensor(_ImageTransform):
    """An image (height, width, channels) of 0 to 255 as float32 (channels, height, width) of 0 to 1; batches too.

    Raises ValueError for another number of axes.

    >>> image = ToTensor()(np.full((2, 3, 1), 51, dtype="uint8"))
    >>> image.shape, float(image[0, 0, 0].round(4))
    ((1, 2, 3), 0.20000000298023224)
    """

    def forward(self, x: Any) -> Any:
        """Move the channels first and divide by 255."""
        if x.ndim not in (3, 4):
            raise MXNetValueError(
                f"ToTensor: expected (H, W, C) or (N, H, W, C), got an array of shape {x.shape}"
            )
        return (x.astype("float32") / 255).transpose((2, 0, 1) if x.ndim == 3 else (0, 3, 1, 2))

    def _for_batch(self, x: Any) -> Any | None:
        if x.ndim != 4:
            return None
        if isinstance(x, onp.ndarray):
            # Straight into the new layout: the same float32 division, without a copy of the batch in between.
            return onp.divide(x.transpose(0, 3, 1, 2), onp.float32(255), dtype=onp.float32, order="C")
        return self(x)


class Normalize(_ImageTransform):
    """Subtract `mean` from and divide by `std` each channel of a float image (C, H, W), or of a batch of them.

    Each is one number, or one for every channel.

    Raises ValueError for integers, and where the number of channels differs.

    >>> Normalize(mean=(0.5, 0.0), std=0.5)(np.ones((2, 1, 1))).flatten()
    array([1., 2.])
    """

    def __init__(self, mean: float | tuple = 0.0, std: float | tuple = 1.0):
        super().__init__()
        self._mean = onp.asarray(mean, onp.float32).reshape(-1, 1, 1)
        self._std = onp.asarray(std, onp.float32).reshape(-1, 1, 1)

    def forward(self, x: Any) -> Any:
        """Normalize `x`."""
        self._check(x)
        return (x - _operand(self._mean, x.dtype)) / _operand(self._std, x.dtype)

    def _for_batch(self, x: Any) -> Any | None:
        if x.ndim != 4:
            return None
        self._check(x)
        if isinstance(x, onp.ndarray) and x.dtype == onp.float32:
            return (x - self._mean) / self._std
        return self(x)

    def _check(self, x: Any) -> None:
        if x.ndim not in (3, 4) or not onp.issubdtype(x.dtype, onp.floating):
            raise MXNetValueError(
                f"Normalize: expected a float image (C, H, W) or (N, C, H, W), got {x.dtype} of shape {x.shape}\n"
                "hint: ToTensor() comes before Normalize()"
            )
        for name, value in (("mean", self._mean), ("std", self._std)):
            if len(value) not in (1, x.shape[-3]):
                raise MXNetValueError(f"Normalize: {name} has {len(value)} values for {x.shape[-3]} channels")


class Cast(_ImageTransform):
    """Convert to another dtype. Several arguments give a tuple.

    >>> Cast("float16")(np.ones(2)).dtype
    dtype('float16')
    """

    def __init__(self, dtype: Any = "float32"):
        super().__init__()
        self._dtype = dtype

    def forward(self, *args: Any) -> Any:
        """Each argument as an array of the dtype."""
        done = tuple(x.astype(self._dtype) for x in args)
        return done[0] if len(done) == 1 else done

    def _for_batch(self, x: Any) -> Any:
        return self(x)


def _operand(value: onp.ndarray, dtype: Any) -> Any:
    """One number as a Python scalar; several as an array of the image's dtype, one for each channel."""
    if value.size == 1:
        return float(value.item())
    from mxnp import np

    return np.array(value, dtype=dtype)


def _as_mxnp(x: Any) -> Any:
    if is_mxnp(x) or type(x).__name__ == "Symbol":
        return x
    from mxnp import np

    x = onp.asarray(x)
    return np.array(x, dtype=x.dtype)


__getattr__ = _refuse(__name__)
