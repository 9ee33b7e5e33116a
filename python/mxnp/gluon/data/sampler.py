"""Samplers: the order in which a loader visits a dataset. They know lengths and indices, never data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mxnp._repr import call_of
from mxnp.error import MXNetValueError

LAST_BATCH = ("keep", "discard", "rollover")


class Sampler:
    """An iterable of sample indices, or of lists of them, with a length. Subclasses define both methods.

    >>> class Backwards(gluon.data.Sampler):
    ...     def __init__(self, length):
    ...         self.length = length
    ...
    ...     def __iter__(self):
    ...         return iter(range(self.length - 1, -1, -1))
    ...
    ...     def __len__(self):
    ...         return self.length
    >>> list(Backwards(3))
    [2, 1, 0]
    """

    def __repr__(self) -> str:
        return call_of(self)

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} does not define __len__")

    def __iter__(self) -> Iterator:
        raise NotImplementedError(f"{type(self).__name__} does not define __iter__")


class SequentialSampler(Sampler):
    """The indices `start` to `start + length - 1` in order.

    >>> list(SequentialSampler(3, start=2))
    [2, 3, 4]
    """

    def __init__(self, length: int, start: int = 0):
        self._length = _count("SequentialSampler", "length", length)
        self._start = start

    def __iter__(self) -> Iterator[int]:
        return iter(range(self._start, self._start + self._length))

    def __len__(self) -> int:
        return self._length


class RandomSampler(Sampler):
    """The indices 0 to `length - 1` in a new random order at each iteration.

    The order is drawn from mxnp's random numbers (`np.random.seed`) when the iteration starts.

    >>> sorted(gluon.data.RandomSampler(4))
    [0, 1, 2, 3]
    """

    def __init__(self, length: int):
        self._length = _count("RandomSampler", "length", length)

    def __iter__(self) -> Iterator[int]:
        from mxnp import np

        if not self._length:
            return iter(())
        return iter(np.random.permutation(self._length).asnumpy().astype("int64").tolist())

    def __len__(self) -> int:
        return self._length


class FilterSampler(Sampler):
    """The indices of the samples of `dataset` for which `fn(sample)` is true, found once at construction.

    >>> list(gluon.data.FilterSampler(lambda x: x > 1, [3, 0, 2]))
    [0, 2]
    """

    def __init__(self, fn: Callable[[object], bool], dataset: Any):
        self._fn = fn
        self._dataset = dataset
        self._indices = [i for i in range(len(dataset)) if fn(dataset[i])]

    def __iter__(self) -> Iterator[int]:
        return iter(self._indices)

    def __len__(self) -> int:
        return len(self._indices)


class IntervalSampler(Sampler):
    """Every `interval`-th index below `length`; with `rollover` the skipped ones follow, pass by pass.

    >>> list(IntervalSampler(7, 3)), list(IntervalSampler(7, 3, rollover=False))
    ([0, 3, 6, 1, 4, 2, 5], [0, 3, 6])
    """

    def __init__(self, length: int, interval: int, rollover: bool = True):
        self._length = _count("IntervalSampler", "length", length)
        self._interval = interval
        if not 1 <= interval <= length:
            raise MXNetValueError(
                f"IntervalSampler: interval {interval} is not between 1 and the length {length}"
            )
        self._rollover = rollover

    def __iter__(self) -> Iterator[int]:
        for start in range(self._interval if self._rollover else 1):
            yield from range(start, self._length, self._interval)

    def __len__(self) -> int:
        return self._length if self._rollover else (self._length + self._interval - 1) // self._interval


class BatchSampler(Sampler):
    """Lists of `batch_size` indices of another sampler.

    `last_batch` says what becomes of a last, smaller batch: 'keep' returns it, 'discard' drops it, 'rollover' puts
    its indices at the start of the next iteration.

    >>> list(BatchSampler(SequentialSampler(5), 2, "keep"))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Sampler, batch_size: int, last_batch: str = "keep"):
        if last_batch not in LAST_BATCH:
            raise MXNetValueError(
                f"last_batch must be one of 'keep', 'discard', or 'rollover', but got {last_batch}"
            )
        if batch_size < 1:
            raise MXNetValueError(f"BatchSampler: batch_size must be at least 1, but got {batch_size}")
        self._sampler = sampler
        self._batch_size = batch_size
        self._last_batch = last_batch
        self._prev: list[int] = []

    def __iter__(self) -> Iterator[list[int]]:
        batch, self._prev = self._prev, []
        for index in self._sampler:
            batch.append(index)
            if len(batch) == self._batch_size:
                yield batch
                batch = []
        if not batch:
            return
        if self._last_batch == "keep":
            yield batch
        elif self._last_batch == "rollover":
            self._prev = batch

    def __len__(self) -> int:
        total = len(self._sampler)
        if self._last_batch == "keep":
            return (total + self._batch_size - 1) // self._batch_size
        if self._last_batch == "discard":
            return total // self._batch_size
        return (len(self._prev) + total) // self._batch_size


def _count(name: str, argument: str, value: int) -> int:
    if value < 0:
        raise MXNetValueError(f"{name}: {argument} must not be negative, but got {value}")
    return int(value)
