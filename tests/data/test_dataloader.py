"""DataLoader: the same batches whoever computes them, the worker's own exceptions, and nothing left behind."""

import contextlib
import gc
import multiprocessing
import os
import pickle
import random
import subprocess
import sys
import threading
import traceback
from pathlib import Path

import numpy as onp
import pytest

import mxnp
from data.samples import (
    Dying,
    Failing,
    Local,
    Noisy,
    Odd,
    Pids,
    Squares,
    Stuck,
    identity,
    with_noise,
)
from mxnp import np
from mxnp.gluon.data import (
    ArrayDataset,
    BatchSampler,
    DataLoader,
    RandomSampler,
    SequentialSampler,
    SimpleDataset,
    batchify,
)
from mxnp.gluon.data.dataloader import WorkerDied, WorkerTimeout

WAYS = [
    {"num_workers": 0},
    {"num_workers": 1},
    {"num_workers": 3},
    {"num_workers": 2, "prefetch": 0},
    {"num_workers": 2, "thread_pool": True},
    {"num_workers": 3, "prefetch": 7},
]
PROCESSES = pytest.mark.parametrize("workers", [1, 2])


def values(batch):
    if isinstance(batch, (list, tuple)):
        return [values(part) for part in batch]
    if isinstance(batch, dict):
        return {key: values(part) for key, part in batch.items()}
    return (batch.dtype, batch.asnumpy().tolist()) if hasattr(batch, "asnumpy") else batch


def epochs(dataset, count=2, seed=5, **options):
    mxnp.random.seed(seed)
    random.seed(seed)
    onp.random.seed(seed)
    with contextlib.closing(DataLoader(dataset, **options)) as loader:
        return [[values(batch) for batch in loader] for _ in range(count)]


def run_script(folder, text):
    script = folder / "main.py"
    script.write_text(text)
    return subprocess.run(
        [sys.executable, str(script)],
        timeout=120,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(autouse=True)
def nothing_left():
    """Every test leaves no process, no thread, no socket."""
    gc.collect()
    before = set(multiprocessing.active_children()), set(threading.enumerate()), open_files()
    yield
    gc.collect()
    left = set(multiprocessing.active_children()), set(threading.enumerate()), open_files()
    assert left[0] <= before[0]
    assert {thread.name for thread in left[1] - before[1] if "loader" in thread.name} == set()
    assert not [target for target in left[2] - before[2] if target.startswith("socket:")]


def open_files():
    folder = Path("/proc/self/fd")
    found = set()
    for entry in folder.iterdir() if folder.exists() else ():
        with contextlib.suppress(OSError):
            found.add(os.readlink(entry))
    return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("last_batch", ["keep", "discard", "rollover"])
@pytest.mark.parametrize(
    "dataset",
    [
        Squares(10),
        ArrayDataset(onp.arange(20, dtype="uint8").reshape(10, 2), onp.arange(10, dtype="int32")),
        ArrayDataset(list(range(10)), [0.5] * 10),
        SimpleDataset(onp.arange(10, dtype="float16")),
        Squares(10).transform_first(identity),
    ],
    ids=["custom", "arrays", "lists", "vector", "transformed"],
)
def test_same_batches(way, last_batch, dataset):
    options = {"batch_size": 4, "shuffle": True, "last_batch": last_batch}
    want = epochs(dataset, 3, num_workers=0, **options)
    assert epochs(dataset, 3, **way, **options) == want
    assert want[0] != want[1]


@pytest.mark.parametrize("way", WAYS)
def test_contents_and_kinds(way):
    images = onp.arange(12, dtype="uint8").reshape(6, 2)
    labels = onp.arange(6, dtype="int32")
    with contextlib.closing(DataLoader(ArrayDataset(images, labels), 4, **way)) as loader:
        assert len(loader) == 2
        batches = list(loader)
    for batch, start in zip(batches, (0, 4), strict=True):
        assert type(batch) is list
        x, y = batch
        assert type(x) is type(np.zeros(1))
        assert type(y) is type(x)
        assert x.dtype == onp.uint8
        assert y.dtype == onp.int32
        onp.testing.assert_array_equal(x.asnumpy(), images[start : start + 4])
        onp.testing.assert_array_equal(y.asnumpy(), labels[start : start + 4])


@pytest.mark.parametrize("way", WAYS)
def test_random_transforms_follow_the_seeds_not_the_workers(way):
    if way.get("thread_pool"):
        pytest.skip("Python's and NumPy's global generators are shared by threads")
    want = epochs(Noisy(8), 2, batch_size=3, num_workers=0)
    assert epochs(Noisy(8), 2, batch_size=3, **way) == want
    flat = [row[0] for batch in want[0] + want[1] for row in batch[1]]
    assert len(set(flat)) == 16
    assert epochs(Noisy(8), 2, seed=6, batch_size=3, **way) != want


@pytest.mark.parametrize("way", [way for way in WAYS if not way.get("thread_pool")])
def test_mxnp_transforms_follow_the_seed(way):
    dataset = Squares(8).transform(with_noise)
    want = epochs(dataset, 2, batch_size=3, num_workers=2)
    assert epochs(dataset, 2, batch_size=3, **way) == want
    flat = [x for epoch in want for batch in epoch for row in batch[0][1] for x in row]
    assert len({round(x % 1, 6) for x in flat}) == len(flat)
    # Sample i of an epoch draws the same whatever batch it is in.
    other = epochs(dataset, 2, batch_size=5, num_workers=1)
    assert [row for epoch in other for batch in epoch for row in batch[0][1]] == [
        row for epoch in want for batch in epoch for row in batch[0][1]
    ]


def test_generators_go_on_as_if_nothing_had_happened():
    random.seed(1)
    onp.random.seed(1)
    loader = iter(DataLoader(Noisy(4), 2))
    next(loader)
    state = random.getstate()
    next(loader)
    assert random.getstate() == state


@PROCESSES
@pytest.mark.parametrize("kind", [ValueError, KeyError, ZeroDivisionError, Odd, StopIteration])
def test_exception_of_the_worker(workers, kind):
    with contextlib.closing(DataLoader(Failing(10, 7, kind), 2, num_workers=workers)) as loader:
        seen = []
        expected = RuntimeError if kind is StopIteration else kind
        with pytest.raises(expected) as caught:
            seen.extend(loader)
        assert len(seen) == 3
        if kind is not StopIteration:
            assert type(caught.value) is kind
            assert "broken" in str(caught.value)
            text = "".join(traceback.format_exception(caught.value))
            assert "In the worker" in text
            assert "samples.py" in text
        # The workers are as good as before.
        again = iter(loader)
        assert values(next(again)) == values(seen[0])
        again.close()


def test_exception_that_cannot_be_sent():
    with (
        contextlib.closing(DataLoader(Local(4), 2, num_workers=1)) as loader,
        pytest.raises(RuntimeError, match="Hidden: out of reach"),
    ):
        next(iter(loader))


def test_exception_without_workers_and_with_threads():
    for way in ({}, {"num_workers": 2, "thread_pool": True}):
        iterator = iter(DataLoader(Failing(10, 3), 2, **way))
        next(iterator)
        with pytest.raises(ValueError, match="sample 3 is broken"):
            next(iterator)
        with pytest.raises(StopIteration):
            next(iterator)


@PROCESSES
def test_workers_stay(workers):
    with contextlib.closing(DataLoader(Pids(8), 1, num_workers=workers)) as loader:
        first = {int(batch.asnumpy()[0]) for batch in loader}
        second = {int(batch.asnumpy()[0]) for batch in loader}
        assert first == second
        assert len(first) == workers
        assert os.getpid() not in first
        loader.close()
        assert {int(batch.asnumpy()[0]) for batch in loader}.isdisjoint(first)


@PROCESSES
def test_early_break_then_a_new_epoch(workers):
    with contextlib.closing(DataLoader(Squares(40), 2, num_workers=workers, prefetch=6)) as loader:
        want = [values(batch) for batch in DataLoader(Squares(40), 2)]
        for stop in (0, 1, 3):
            for i, batch in enumerate(loader):
                assert values(batch) == want[i]
                if i == stop:
                    break
        assert [values(batch) for batch in loader] == want
        assert not loader._pool._ready  # what came for an iteration that was left is not kept


@PROCESSES
def test_iterations_of_one_loader_do_not_mix(workers):
    with contextlib.closing(DataLoader(Squares(20), 3, num_workers=workers)) as loader:
        want = [values(batch) for batch in DataLoader(Squares(20), 3)]
        pairs = [(values(a), values(b)) for a, b in zip(loader, loader, strict=True)]
        assert pairs == list(zip(want, want, strict=True))


def test_rollover_after_a_break_is_the_same_with_workers():
    def run(**way):
        with contextlib.closing(DataLoader(Squares(7), 3, last_batch="rollover", **way)) as loader:
            next(iter(loader))
            return [[values(batch) for batch in loader] for _ in range(3)]

    assert run(num_workers=2, prefetch=9) == run()


def test_dropping_the_loader_ends_its_workers():
    loader = DataLoader(Squares(8), 2, num_workers=2)
    iterator = iter(loader)
    next(iterator)
    processes = multiprocessing.active_children()
    assert len(processes) >= 2
    del loader, iterator
    gc.collect()
    assert not set(multiprocessing.active_children()) & set(processes)


def test_the_iterator_keeps_the_loader():
    assert len(list(DataLoader(Squares(20), 2, num_workers=2))) == 10


def test_a_worker_that_dies():
    with contextlib.closing(DataLoader(Dying(8, 5), 2, num_workers=2, prefetch=1)) as loader:
        with pytest.raises(WorkerDied, match="ended unexpectedly with exit code -9"):
            list(loader)
        # New workers start with the next iteration.
        assert values(next(iter(loader)))[1][1] == [0, 1]


def test_timeout():
    with contextlib.closing(DataLoader(Stuck(8, 2), 2, num_workers=2, timeout=0.3)) as loader:
        iterator = iter(loader)
        next(iterator)
        with pytest.raises(WorkerTimeout, match=r"worker 1 did not deliver a batch within 0\.3 seconds"):
            next(iterator)


def test_interrupted_while_waiting(monkeypatch):
    from mxnp.gluon.data import _workers

    with contextlib.closing(DataLoader(Squares(8), 2, num_workers=1)) as loader:
        want = [values(batch) for batch in loader]
        iterator = iter(loader)
        next(iterator)
        whole = _workers.receive

        def interrupted(sock):
            sock.recv(3)
            raise KeyboardInterrupt

        monkeypatch.setattr(_workers, "receive", interrupted)
        with pytest.raises(KeyboardInterrupt):
            next(iterator)
        monkeypatch.setattr(_workers, "receive", whole)
        assert [values(batch) for batch in loader] == want


@pytest.mark.parametrize("method", [m for m in multiprocessing.get_all_start_methods() if m != "fork"])
def test_other_start_methods(method, monkeypatch):
    context = multiprocessing.get_context(method)
    monkeypatch.setattr(multiprocessing, "get_context", lambda: context)
    with contextlib.closing(DataLoader(Failing(7, 6).transform_first(identity), 3, num_workers=2)) as loader:
        iterator = iter(loader)
        assert values(next(iterator))[1][1] == [0, 1, 4]
        next(iterator)
        with pytest.raises(ValueError, match="sample 6 is broken"):
            next(iterator)


SPAWNED = """
import multiprocessing
from mxnp.gluon.data import Dataset, DataLoader

class Mine(Exception):
    pass

class Bad(Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, idx):
        raise Mine(idx)

if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    try:
        next(iter(DataLoader(Bad(), 2, num_workers=1)))
    except Mine as error:
        print("caught", error)
"""


def test_exception_of_the_script_itself_from_a_spawned_worker(tmp_path):
    assert run_script(tmp_path, SPAWNED).stdout.strip() == "caught 0"


@pytest.mark.parametrize("way", WAYS)
def test_batch_functions(way):
    ragged = [(onp.arange(i + 1), i) for i in range(5)]
    group = batchify.Group(batchify.Pad(val=-1), batchify.Stack())
    with contextlib.closing(DataLoader(SimpleDataset(ragged), 3, batchify_fn=group, **way)) as loader:
        first = next(iter(loader))
    assert values(first) == [
        (onp.dtype("int64"), [[0, -1, -1], [0, 1, -1], [0, 1, 2]]),
        (onp.dtype("int64"), [0, 1, 2]),
    ]
    with contextlib.closing(
        DataLoader(SimpleDataset(["a", "b"]), 2, batchify_fn=batchify.AsList(), **way)
    ) as loader:
        assert list(loader) == [["a", "b"]]
    with contextlib.closing(DataLoader(SimpleDataset([{"a": 1}, {"a": 2}]), 2, **way)) as loader:
        assert values(next(iter(loader))) == {"a": (onp.dtype("int64"), [1, 2])}


def test_large_batches_cross_whole():
    data = onp.random.default_rng(0).random((6, 3, 300, 301))
    with contextlib.closing(DataLoader(ArrayDataset(data), 2, num_workers=2)) as loader:
        for i, batch in enumerate(loader):
            onp.testing.assert_array_equal(batch.asnumpy(), data[2 * i : 2 * i + 2])


def test_mxnp_arrays_in_samples():
    data = [np.array([i, i + 1], dtype="float32") for i in range(4)]
    want = [values(batch) for batch in DataLoader(SimpleDataset(data), 2)]
    assert want == [(onp.dtype("float32"), [[0, 1], [1, 2]]), (onp.dtype("float32"), [[2, 3], [3, 4]])]


def test_own_samplers():
    class Pairs(SequentialSampler):
        def __iter__(self):
            return iter([[0, 3], [2]])

    loader = DataLoader(Squares(4), batch_sampler=Pairs(2))
    assert [values(batch)[1][1] for batch in loader] == [[0, 9], [4]]
    for way in WAYS:
        with contextlib.closing(
            DataLoader(Squares(4), batch_sampler=(b for b in [[1], [2, 3], [0]]), **way)
        ) as loader:
            assert [values(batch)[1][1] for batch in loader] == [[1], [4, 9], [0]]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "batch_size must be specified unless"),
        (
            {"batch_size": 2, "shuffle": True, "sampler": SequentialSampler(4)},
            "shuffle must not be specified",
        ),
        (
            {"batch_size": 2, "batch_sampler": BatchSampler(SequentialSampler(4), 2)},
            "must not be specified if batch_sampler",
        ),
        ({"batch_size": 2, "last_batch": "drop"}, "last_batch must be one of"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
    ],
)
def test_bad_arguments(options, text):
    with pytest.raises(ValueError, match=text):
        DataLoader(Squares(4), **options)


def test_shuffle_follows_the_seed():
    mxnp.random.seed(3)
    first = [list(RandomSampler(50)), list(RandomSampler(50))]
    mxnp.random.seed(3)
    assert [list(RandomSampler(50)), list(RandomSampler(50))] == first
    assert first[0] != first[1]
    assert sorted(first[0]) == list(range(50))
    mxnp.random.seed(4)
    assert list(RandomSampler(50)) != first[0]


def test_empty_dataset_and_length():
    for way in WAYS:
        with contextlib.closing(DataLoader(Squares(0), 2, **way)) as loader:
            assert list(loader) == []
    assert len(DataLoader(Squares(7), 2, last_batch="discard")) == 3


def test_pickled_loader_starts_its_own_workers():
    with contextlib.closing(DataLoader(Squares(6), 2, num_workers=1)) as loader:
        want = [values(batch) for batch in loader]
        with contextlib.closing(pickle.loads(pickle.dumps(loader))) as copy:
            assert [values(batch) for batch in copy] == want


def test_forked_child_starts_its_own_workers():
    with contextlib.closing(DataLoader(Squares(6), 2, num_workers=1)) as loader:
        want = [values(batch) for batch in loader]
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                multiprocessing.current_process()._config["daemon"] = False
                code = 0 if [values(batch) for batch in loader] == want else 2
                loader.close()
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert [values(batch) for batch in loader] == want


SCRIPT = """
import os, sys
import numpy as onp
from mxnp.gluon.data import ArrayDataset, DataLoader

def doubled(x):
    return x * 2

if __name__ == "__main__":
    loader = DataLoader(ArrayDataset(onp.arange(20.0)).transform(doubled), 2, num_workers=2)
    iterator = iter(loader)
    print(float(next(iterator).asnumpy().sum()), len(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else 0)
    {ending}
"""


@pytest.mark.parametrize(
    ("ending", "code"),
    [("pass", 0), ("raise SystemExit(3)", 3), ("os._exit(4)", 4), ("os.kill(os.getpid(), 9)", -9)],
)
def test_exit_leaves_no_process(ending, code, tmp_path):
    # Workers inherit the output: run_script returns only when each of them is gone.
    done = run_script(tmp_path, SCRIPT.replace("{ending}", ending))
    assert done.returncode == code, done.stderr
    if not ending.startswith("os."):
        assert done.stdout.startswith("2.0 ")
        assert "Traceback" not in done.stderr
