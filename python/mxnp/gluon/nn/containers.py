"""Blocks that hold blocks: one after the other, or side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

from mxnp import np

from ..block import Block, HybridBlock


class _Container:
    """The list behaviour of containers; mixed into a Block."""

    _children: Any
    _in_summary = False

    def add(self, *blocks: Block) -> None:
        """Append blocks."""
        for block in blocks:
            self.register_child(block)  # type: ignore[attr-defined]

    def __len__(self) -> int:
        return len(self._children)

    def __iter__(self) -> Iterator[Block]:
        return (block for _, block in self._children.blocks())

    def __getitem__(self, key: int | slice) -> Any:
        selected: Any = list(self)[key]
        if not isinstance(key, slice):
            return selected
        part = self._empty()
        part.add(*selected)
        return part

    def _empty(self) -> Any:
        raise NotImplementedError


class _Chain(_Container):
    """Runs its blocks one after the other."""

    def forward(self, x: Any, *args: Any) -> Any:
        """Each block gets what the one before gave: a tuple or list is spread over its arguments."""
        for block in self:
            x = block(x, *args)
            x, args = (x[0], tuple(x[1:])) if isinstance(x, (tuple, list)) else (x, ())
        return (x, *args) if args else x


class Sequential(_Chain, Block):
    """A chain of blocks. Has `len`, indexing and iteration; a slice is a Sequential of the same blocks.

    >>> net = nn.Sequential()
    >>> net.add(nn.Dense(16, activation="relu"), nn.Dense(10))
    >>> net.initialize()
    >>> net(np.ones((2, 4))).shape
    (2, 10)
    >>> net[1:]
    Sequential(
      (0): Dense(16 -> 10, linear)
    )
    """

    def _empty(self) -> Sequential:
        return Sequential()


class HybridSequential(_Chain, HybridBlock):
    """A chain of blocks that can be hybridized. Otherwise as Sequential.

    >>> net = nn.HybridSequential()
    >>> net.add(nn.Conv2D(8, kernel_size=3), nn.MaxPool2D(), nn.Dense(10))
    >>> net.initialize()
    >>> net.hybridize()
    >>> net(np.ones((2, 1, 8, 8))).shape
    (2, 10)
    """

    def _empty(self) -> HybridSequential:
        return HybridSequential()


class _Concatenation(_Container):
    """Runs its blocks on the same inputs and joins their outputs."""

    axis: int

    def forward(self, *args: Any) -> Any:
        """The outputs, concatenated along `axis`."""
        return np.concatenate([block(*args) for block in self], axis=self.axis)

    def _empty(self) -> Self:
        return type(self)(axis=self.axis)  # type: ignore[call-arg]


class Concatenate(_Concatenation, Block):
    """Runs every block on the input and concatenates the outputs along `axis`.

    >>> net = nn.Concatenate(axis=1)
    >>> net.add(nn.Dense(3), nn.Dense(5))
    >>> net.initialize()
    >>> net(np.ones((2, 4))).shape
    (2, 8)
    """

    def __init__(self, axis: int = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axis = axis


class HybridConcatenate(_Concatenation, HybridBlock):
    """As Concatenate, and can be hybridized.

    >>> net = nn.HybridConcatenate(axis=1)
    >>> net.add(nn.Identity(), nn.Identity())
    >>> net(np.ones((2, 4))).shape
    (2, 8)
    """

    def __init__(self, axis: int = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axis = axis
