"""The children of a block, as 1.x and 2.0 programs read them from `block._children`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class Child:
    """A registered child: answers as the block itself and, called without arguments, gives the block.

    1.x kept the blocks in `_children` (`child(x)`), 2.0 keeps weak references (`child()(x)`); both spellings work.
    """

    __slots__ = ("_block",)

    def __init__(self, block: Any) -> None:
        object.__setattr__(self, "_block", block)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._block(*args, **kwargs) if args or kwargs else self._block

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # isinstance(child, Dense) holds
        return type(self._block)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # copy and pickle look for hooks here: they must find none
            raise AttributeError(name)
        return getattr(self._block, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._block, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return Child, (self._block,)

    def __eq__(self, other: object) -> bool:
        return self._block is unwrap(other)

    def __hash__(self) -> int:
        return hash(self._block)

    def __repr__(self) -> str:
        return repr(self._block)

    def __len__(self) -> int:
        return len(self._block)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Any]:
        return iter(self._block)

    def __getitem__(self, key: Any) -> Any:
        return self._block[key]


def unwrap(value: Any) -> Any:
    """The block behind a Child; anything else as it is."""
    return object.__getattribute__(value, "_block") if type(value) is Child else value


class Children(dict[str, Child]):
    """Name to Child, in the order of registration; `blocks()` gives the blocks themselves."""

    def __setitem__(self, name: str, block: Any) -> None:
        super().__setitem__(name, Child(unwrap(block)))

    def blocks(self) -> Iterator[tuple[str, Any]]:
        """(name, block) pairs."""
        return ((name, unwrap(child)) for name, child in self.items())
