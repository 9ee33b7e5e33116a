"""Random numbers inside a loader: what a transform draws depends on the epoch and the sample, never on the worker.

mxnp's generator is set for each sample from (seed, epoch, sample index). Python's and NumPy's global generators, which
many transforms use, are set for each batch from a number drawn from each of them when the epoch starts, so that
seeding them works as it does without workers. Outside the samples all generators go on as if nothing had happened.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import NamedTuple

import numpy as onp

from mxnp import _core

# Odd constants of the splitmix64 generator (Steele, Lea and Flood 2014), which mixes the parts of a key.
GOLDEN, MIX1, MIX2, WORD = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 2**64 - 1


class EpochSeeds(NamedTuple):
    """The base of every draw of one epoch, for Python's, NumPy's and mxnp's generator."""

    python: int
    numpy: int
    mxnp: int


def draw_epoch() -> EpochSeeds:
    """New seeds, one draw from each global generator."""
    from mxnp import np

    drawn = np.random.randint(0, 2**31 - 1, size=(2,)).asnumpy()
    return EpochSeeds(
        random.getrandbits(64),
        int(onp.random.randint(0, 2**31 - 1)),
        (int(drawn[0]) << 31) | int(drawn[1]),
    )


def mix(*parts: int) -> int:
    """One 64-bit key from several integers."""
    state = 0
    for part in parts:
        state = (state + GOLDEN + (part & WORD)) & WORD
        state = ((state ^ (state >> 30)) * MIX1) & WORD
        state = ((state ^ (state >> 27)) * MIX2) & WORD
        state ^= state >> 31
    return state


@contextlib.contextmanager
def batch_generators(seeds: EpochSeeds, batch: int) -> Iterator[None]:
    """All three generators free to be set: Python's and NumPy's are, for batch number `batch`, and all put back."""
    python, numpy, mxnp = random.getstate(), onp.random.get_state(), _core.random_state()
    random.seed(mix(seeds.python, batch))
    onp.random.seed(mix(seeds.numpy, batch) & 0xFFFFFFFF)
    try:
        yield
    finally:
        random.setstate(python)
        onp.random.set_state(numpy)
        _core.set_random_state(mxnp)


def seed_sample(seeds: EpochSeeds, index: int) -> None:
    """Set mxnp's generator for sample `index`; belongs inside batch_generators."""
    _core.set_random_state((mix(seeds.mxnp, index), 0, 0))
