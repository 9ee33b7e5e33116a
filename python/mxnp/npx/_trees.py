"""Nested lists and tuples of arrays, as the functions of control flow take and give them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._core import ndarray
from ..error import MXNetTypeError


def leaves(value: Any) -> Iterator[ndarray]:
    """The arrays of nested lists and tuples, in order; None has none."""
    if isinstance(value, ndarray):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from leaves(item)
    elif value is not None:
        raise MXNetTypeError(f"expected arrays in lists or tuples, got {type(value).__name__}")


def like(value: Any, arrays: Iterator[ndarray]) -> Any:
    """`value` with its arrays replaced, in order; lists for lists and tuples."""
    if isinstance(value, (list, tuple)):
        return [like(item, arrays) for item in value]
    return [] if value is None else next(arrays)


def arguments(value: Any) -> tuple[Any, ...]:
    """What a function of loop variables is called with."""
    return tuple(value) if isinstance(value, (list, tuple)) else () if value is None else (value,)
