"""Results so large that they are written past the caches: the same numbers, from any alignment, read at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp
import pytest

from mxnp import np

SIZE = 4_500_001  # three such arrays of float32 are more than `stream::LARGE`, and end within a line of the cache


def numbers(seed: int) -> Any:
    """Whole numbers, whose sums and products are exact in float32."""
    return onp.random.default_rng(seed).integers(-50, 50, SIZE).astype("float32")


PROGRAMS: dict[str, Callable[..., Any]] = {
    "one step": lambda np, a, b: [a + b],
    "several steps and results": lambda np, a, b: [a + b, (a + b) * a - 3],
    "unaligned": lambda np, a, b: [a[1:] + b[:-1]],
    "broadcast": lambda np, a, b: [a[:4_500_000].reshape(4500, 1000) * b[:1000] + b[:4500, None]],
    "strided": lambda np, a, b: [a[::-1] - b],
    "read again at once": lambda np, a, b: [((a - b) * 2)[::7] + 1, (a - b).max()],
    "another dtype": lambda np, a, b: [(a * b).astype("float64"), a > b],
    "a sum at its end": lambda np, a, b: [abs(a - b).reshape(1, -1).sum(0), a - b],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_large_results_are_numpys(name: str) -> None:
    a, b = numbers(0), numbers(1)
    ours = PROGRAMS[name](np, np.array(a), np.array(b))
    for result, expected in zip(ours, PROGRAMS[name](onp, a, b), strict=True):
        onp.testing.assert_array_equal(result.asnumpy(), expected)


def test_a_large_array_is_updated_in_place() -> None:
    a, b = numbers(0), numbers(1)
    x, y = np.array(a), np.array(b)
    view = x[3:]
    for _ in range(3):
        x += y
        x[:-1] = x[1:] * 2
    for _ in range(3):
        a += b
        a[:-1] = a[1:] * 2
    onp.testing.assert_array_equal(view.asnumpy(), a[3:])
