"""Datasets: things with a length whose items are samples, and the views over them (transform, take, shard, ...).

Knows nothing of batches, but for `_take_batch`, by which a dataset that is made of arrays hands over many samples
at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from mxnp._repr import call_of
from mxnp.error import MXNetTypeError, MXNetValueError

from .sampler import Sampler


class Dataset:
    """A collection of samples. Subclasses define `__getitem__(index)` and `__len__()`.

    >>> class Squares(gluon.data.Dataset):
    ...     def __getitem__(self, idx):
    ...         return idx**2
    ...
    ...     def __len__(self):
    ...         return 5
    >>> evens = Squares().filter(lambda x: x % 2 == 0)
    >>> [evens[i] for i in range(len(evens))]
    [0, 4, 16]
    """

    def __getitem__(self, idx: int) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not define __getitem__")

    def __repr__(self) -> str:
        return call_of(self)

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} does not define __len__")

    def _take_batch(self, indices: list[int]) -> Any | None:
        """The samples at `indices` stacked, an array or a tuple of arrays, or None when samples must be asked singly.

        What it gives equals the default batch function's answer for the single samples.
        """
        return None

    def filter(self, fn: Callable[[object], bool]) -> Dataset:
        """The samples for which `fn(sample)` is true; `fn` sees every sample now."""
        return _Subset(self, [i for i in range(len(self)) if fn(self[i])])

    def shard(self, num_shards: int, index: int) -> Dataset:
        """Part `index` of `num_shards` contiguous parts; the first parts are one longer where it does not divide."""
        if not 0 <= index < num_shards:
            raise AssertionError(f"shard: index {index} is out of range for {num_shards} shards")
        short, longer = divmod(len(self), num_shards)
        start = short * index + min(index, longer)
        return _Subset(self, range(start, start + short + (index < longer)))

    def take(self, count: int | None) -> Dataset:
        """The first `count` samples; all of them for None or a larger number."""
        if count is not None and count < 0:
            raise MXNetValueError(f"take: count must not be negative, but got {count}")
        return _Subset(self, range(len(self) if count is None else min(count, len(self))))

    def sample(self, sampler: Sampler) -> Dataset:
        """The samples at the indices that `sampler` gives now."""
        if not isinstance(sampler, Sampler):
            raise MXNetTypeError(
                f"Invalid sampler type: {type(sampler)}. Expected gluon.data.Sampler instead."
            )
        return _Subset(self, list(sampler))

    def transform(self, fn: Callable, lazy: bool = True) -> Dataset:
        """A dataset of `fn(sample)`, or `fn(*sample)` where a sample is a tuple.

        With `lazy`, `fn` runs each time a sample is read, in the worker that reads it; otherwise once for every
        sample, now.

        >>> doubled = SimpleDataset([1, 2, 3]).transform(lambda x: 2 * x)
        >>> doubled[2]
        6
        """
        mapped = _LazyTransformDataset(self, fn)
        return mapped if lazy else SimpleDataset([mapped[i] for i in range(len(mapped))])

    def transform_first(self, fn: Callable, lazy: bool = True) -> Dataset:
        """As `transform`, with `fn` applied to the first element of each sample only (the image, not the label)."""
        return self.transform(_TransformFirst(fn), lazy)


class SizedDataset(Dataset):
    """A data set of mxnp's own, whose length is known at no cost: it is shown."""

    def __repr__(self) -> str:
        return f"{type(self).__name__.lstrip('_')}({len(self)} samples)"


class SimpleDataset(SizedDataset):
    """Samples from a list, an array, or anything with a length and items.

    >>> gluon.data.SimpleDataset(["a", "b", "c"])[1]
    'b'
    """

    def __init__(self, data: Any):
        self._data = data

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, idx: int) -> Any:
        return self._data[idx]

    def _take_batch(self, indices: list[int]) -> Any | None:
        return self._data[indices] if is_array(self._data) else None


class ArrayDataset(SizedDataset):
    """Sample i is the tuple of the i-th items of several arrays, lists or datasets of one length (or one item alone).

    >>> features, labels = onp.ones((3, 2), "float32"), [7, 8, 9]
    >>> ArrayDataset(features, labels)[1]
    (array([1., 1.], dtype=float32), 8)
    """

    def __init__(self, *args: Any):
        if not args:
            raise AssertionError("ArrayDataset: at least one array is needed")
        self._length = len(args[0])
        for i, data in enumerate(args):
            if len(data) != self._length:
                raise AssertionError(
                    f"All arrays must have the same length; array[0] has length {self._length} while "
                    f"array[{i}] has {len(data)}."
                )
        # One number per sample is a label: it is kept where reading one is cheap.
        self._data = [data.asnumpy() if _is_mxnp(data) and data.ndim == 1 else data for data in args]

    def __getitem__(self, idx: int) -> Any:
        if len(self._data) == 1:
            return self._data[0][idx]
        return tuple(data[idx] for data in self._data)

    def __len__(self) -> int:
        return self._length

    def _take_batch(self, indices: list[int]) -> Any | None:
        if not all(is_array(data) for data in self._data):
            return None
        rows = tuple(data[indices] for data in self._data)
        return rows[0] if len(rows) == 1 else rows


class _Subset(SizedDataset):
    """Some samples of another dataset, in the order of `indices`."""

    def __init__(self, dataset: Dataset, indices: Sequence[int]):
        self._dataset = dataset
        self._indices = indices

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, idx: int) -> Any:
        return self._dataset[self._indices[idx]]

    def _take_batch(self, indices: list[int]) -> Any | None:
        return take_batch(self._dataset, [self._indices[i] for i in indices])


class _LazyTransformDataset(SizedDataset):
    """`fn` of each sample, computed when the sample is read."""

    def __init__(self, dataset: Dataset, fn: Callable):
        self._dataset = dataset
        self._fn = fn

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, idx: int) -> Any:
        item = self._dataset[idx]
        return self._fn(*item) if isinstance(item, tuple) else self._fn(item)

    def _take_batch(self, indices: list[int]) -> Any | None:
        # A transform that treats every sample alike may say so and take them all at once (see vision.transforms).
        whole = getattr(self._fn, "_for_batch", None)
        if whole is None:
            return None
        rows = take_batch(self._dataset, indices)
        if rows is None:
            return None
        return whole(*rows) if isinstance(rows, tuple) else whole(rows)


class _TransformFirst:
    """Applies a function to the first of its arguments; a class so that it can be sent to spawned workers."""

    def __init__(self, fn: Callable):
        self._fn = fn

    def __call__(self, x: Any, *rest: Any) -> Any:
        return (self._fn(x), *rest) if rest else self._fn(x)

    def _for_batch(self, x: Any, *rest: Any) -> Any | None:
        whole = getattr(self._fn, "_for_batch", None)
        first = whole(x) if whole is not None else None
        if first is None:
            return None
        return (first, *rest) if rest else first


def take_batch(dataset: Any, indices: list[int]) -> Any | None:
    """`dataset._take_batch(indices)` where there is one, for datasets that are not a Dataset too."""
    take = getattr(dataset, "_take_batch", None)
    return take(indices) if take is not None else None


def is_array(data: Any) -> bool:
    """Whether `data` can be indexed with a list of row numbers at once."""
    return (type(data) is onp.ndarray and data.ndim > 0 and data.dtype.kind in "biuf") or _is_mxnp(data)


def _is_mxnp(data: Any) -> bool:
    return hasattr(data, "asnumpy") and hasattr(data, "attach_grad")
