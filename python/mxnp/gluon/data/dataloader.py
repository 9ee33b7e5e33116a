"""DataLoader: batches of a dataset, computed here, by threads or by worker processes, and the same in all three."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as onp

from mxnp._repr import call_of
from mxnp.error import MXNetValueError

from ._seeding import EpochSeeds, batch_generators, draw_epoch, mix, seed_sample
from ._workers import WorkerDied, WorkerPool, WorkerTimeout
from .batchify import default_batchify_fn, stack_samples, to_mxnp
from .dataset import take_batch
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

__all__ = ["DataLoader", "WorkerDied", "WorkerTimeout", "default_batchify_fn", "default_mp_batchify_fn"]

default_mp_batchify_fn = default_batchify_fn  # MXNet's for worker processes; here one does for both


class DataLoader:
    """Iterates over `dataset` in batches.

    A batch is what `batchify_fn` makes of a list of samples; the default stacks them into arrays, a list of arrays
    when samples are tuples. Say either `batch_size` with `shuffle` or `sampler`, and `last_batch` ('keep', 'discard',
    'rollover'), or a `batch_sampler`.

    `num_workers` processes (threads with `thread_pool`) compute `prefetch` batches ahead, two for each worker when
    not given. The batches, shuffling and random transforms included, are the same for any number of processes
    (threads share their generators, so there random transforms depend on timing). Workers
    start with the first iteration and stay until `close()` or until the loader is collected. An exception in a worker
    is raised here, with its type and text. Waiting longer than `timeout` seconds for a batch raises WorkerTimeout.
    `pin_memory`, `pin_device_id` and `try_nopython` are accepted and change nothing.

    >>> from mxnp.gluon.data import ArrayDataset, DataLoader
    >>> data = ArrayDataset(onp.ones((5, 3), "float32"), onp.arange(5))
    >>> [(x.shape, y.shape) for x, y in DataLoader(data, batch_size=2)]
    [((2, 3), (2,)), ((2, 3), (2,)), ((1, 3), (1,))]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = None,
        shuffle: bool = False,
        sampler: Sampler | None = None,
        last_batch: str | None = None,
        batch_sampler: Sampler | None = None,
        batchify_fn: Callable | None = None,
        num_workers: int = 0,
        pin_memory: bool = False,
        pin_device_id: int = 0,
        prefetch: int | None = None,
        thread_pool: bool = False,
        timeout: float | None = 120,
        try_nopython: bool | None = None,
    ):
        self._dataset = dataset
        self._pin_memory = pin_memory
        self._pin_device_id = pin_device_id
        self._thread_pool = thread_pool
        self._timeout = timeout
        self._batch_sampler = _make_batch_sampler(
            dataset, batch_size, shuffle, sampler, last_batch, batch_sampler
        )
        self._num_workers = max(int(num_workers), 0)
        self._prefetch = max(0, 2 * self._num_workers if prefetch is None else int(prefetch))
        self._batchify_fn = default_batchify_fn if batchify_fn is None else batchify_fn
        self._fetch = _Fetch(dataset, self._batchify_fn)
        self._pool: WorkerPool | None = None
        self._finalizer: weakref.finalize | None = None

    def __repr__(self) -> str:
        workers, batchify = self._num_workers, self._batchify_fn
        return call_of(
            self,
            prefetch=None if self._prefetch == 2 * workers else self._prefetch,
            batchify_fn=None if batchify is default_batchify_fn else batchify,
        )

    def __len__(self) -> int:
        return len(self._batch_sampler)

    def __iter__(self) -> Iterator:
        if self._num_workers == 0:
            return self._iterate_here()
        return self._iterate_threads() if self._thread_pool else self._iterate_processes()

    def close(self) -> None:
        """End the worker processes; a later iteration starts new ones."""
        if self._finalizer is not None:
            self._finalizer()
        self._pool = self._finalizer = None

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_pool": None, "_finalizer": None}

    def _iterate_here(self) -> Iterator:
        seeds = draw_epoch()
        for number, indices in enumerate(self._batch_sampler):
            yield self._fetch.finish(self._fetch(number, indices, seeds))

    def _iterate_threads(self) -> Iterator:
        executor = ThreadPoolExecutor(self._num_workers, thread_name_prefix="mxnp-loader")
        futures: dict = {}
        stuck = False
        try:
            yield from self._iterate_ahead(
                lambda number, task: futures.__setitem__(number, executor.submit(self._fetch.shared, *task)),
                lambda number: _wait(futures.pop(number), self._timeout),
            )
        except WorkerTimeout:
            stuck = True
            raise
        finally:
            executor.shutdown(wait=not stuck, cancel_futures=True)

    def _iterate_processes(self) -> Iterator:
        pool = self._start_workers()
        ticket = pool.open()
        try:
            yield from self._iterate_ahead(
                lambda number, task: pool.submit(ticket, number, task),
                lambda number: pool.result(ticket, number, self._timeout),
            )
        finally:
            pool.forget(ticket)

    def _start_workers(self) -> WorkerPool:
        if self._pool is None or not self._pool.usable:
            self.close()
            self._pool = WorkerPool(self._fetch, self._num_workers)
            self._finalizer = weakref.finalize(self, self._pool.close)
        return self._pool

    def _iterate_ahead(self, submit: Callable, result: Callable) -> Iterator:
        """Yield the batches in order while up to `prefetch` later ones are under way."""
        seeds = draw_epoch()
        # A sampler's last words (such as what it rolls over) are for an iteration that gets there, as without workers.
        known = _length(self._batch_sampler)
        batches = iter(self._batch_sampler)
        waiting: deque[int] = deque()
        sent = 0
        while True:
            while len(waiting) < max(self._prefetch, 1) and (known is None or sent < known or not waiting):
                indices = next(batches, None)
                if indices is None:
                    known = sent
                    break
                submit(sent, (sent, indices, seeds))
                waiting.append(sent)
                sent += 1
            if not waiting:
                return
            yield self._fetch.finish(result(waiting.popleft()))


class _Fetch:
    """Computes one batch. Sent to each worker once, with the dataset."""

    def __init__(self, dataset: Any, batchify_fn: Callable):
        self._dataset = dataset
        self._default = batchify_fn is default_batchify_fn
        self._batchify_fn = stack_samples if self._default else batchify_fn

    def __call__(self, number: int, indices: list, seeds: EpochSeeds) -> Any:
        """The samples of batch `number` made into a batch, where nothing else runs in this process meanwhile."""
        rows = self._rows(indices)
        if rows is not None:
            return rows
        plain = _are_integers(indices)
        with batch_generators(seeds, number):
            samples = []
            for position, index in enumerate(indices):
                seed_sample(seeds, int(index) if plain else mix(number, position))
                samples.append(self._dataset[index])
            return self._batchify_fn(samples)

    def shared(self, number: int, indices: list, seeds: EpochSeeds) -> Any:
        """The same where other threads run: the generators, which all threads share, are left alone."""
        rows = self._rows(indices)
        return self._batchify_fn([self._dataset[index] for index in indices]) if rows is None else rows

    def finish(self, batch: Any) -> Any:
        """The part that is left for the loader's own process: arrays of the default batch function become mxnp's."""
        return to_mxnp(batch) if self._default else batch

    def _rows(self, indices: list) -> Any | None:
        """The whole batch at once, where the dataset can give it."""
        if not (self._default and indices and _are_integers(indices)):
            return None
        rows = take_batch(self._dataset, indices)
        return list(rows) if isinstance(rows, tuple) else rows


def _are_integers(indices: list) -> bool:
    return all(isinstance(index, (int, onp.integer)) for index in indices)


def _make_batch_sampler(
    dataset: Any,
    batch_size: int | None,
    shuffle: bool,
    sampler: Sampler | None,
    last_batch: str | None,
    batch_sampler: Sampler | None,
) -> Sampler:
    if batch_sampler is not None:
        if batch_size is not None or shuffle or sampler is not None or last_batch is not None:
            raise MXNetValueError(
                "batch_size, shuffle, sampler and last_batch must not be specified if batch_sampler is specified."
            )
        return batch_sampler
    if batch_size is None:
        raise MXNetValueError("batch_size must be specified unless batch_sampler is specified")
    if sampler is not None and shuffle:
        raise MXNetValueError("shuffle must not be specified if sampler is specified")
    if sampler is None:
        sampler = RandomSampler(len(dataset)) if shuffle else SequentialSampler(len(dataset))
    return BatchSampler(sampler, batch_size, last_batch or "keep")


def _length(sampler: Any) -> int | None:
    try:
        return len(sampler)
    except (TypeError, NotImplementedError):
        return None


def _wait(future: Any, timeout: float | None) -> Any:
    try:
        return future.result(timeout or None)
    except TimeoutError:
        if future.done():
            raise
        raise WorkerTimeout(
            f"DataLoader: a thread did not deliver a batch within {timeout} seconds"
        ) from None
