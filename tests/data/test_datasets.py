"""Samplers, datasets and batch functions one by one, with MXNet's values; the array shortcut against single samples."""

import numpy as onp
import pytest

from mxnp import np
from mxnp.gluon.data import (
    ArrayDataset,
    BatchSampler,
    Dataset,
    FilterSampler,
    IntervalSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SimpleDataset,
    batchify,
)
from mxnp.gluon.data.batchify import stack_samples
from mxnp.gluon.data.dataset import take_batch

TEN = SimpleDataset(list(range(10)))


def test_samplers():
    assert list(SequentialSampler(3)) == [0, 1, 2]
    assert list(SequentialSampler(3, 2)) == [2, 3, 4]
    assert list(IntervalSampler(13, 3)) == [0, 3, 6, 9, 12, 1, 4, 7, 10, 2, 5, 8, 11]
    assert list(IntervalSampler(13, 3, rollover=False)) == [0, 3, 6, 9, 12]
    for sampler in (IntervalSampler(13, 3), IntervalSampler(13, 3, rollover=False), RandomSampler(4)):
        assert len(list(sampler)) == len(sampler)
    odd = FilterSampler(lambda x: x % 2, TEN)
    assert list(odd) == [1, 3, 5, 7, 9]
    assert len(odd) == 5


@pytest.mark.parametrize(
    ("last", "first", "second", "lengths"),
    [
        ("keep", [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]], [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]], (4, 4)),
        ("discard", [[0, 1, 2], [3, 4, 5], [6, 7, 8]], [[0, 1, 2], [3, 4, 5], [6, 7, 8]], (3, 3)),
        ("rollover", [[0, 1, 2], [3, 4, 5], [6, 7, 8]], [[9, 0, 1], [2, 3, 4], [5, 6, 7]], (3, 3)),
    ],
)
def test_batch_sampler(last, first, second, lengths):
    sampler = BatchSampler(SequentialSampler(10), 3, last)
    assert len(sampler) == lengths[0]
    assert list(sampler) == first
    assert len(sampler) == lengths[1]
    assert list(sampler) == second


def test_rollover_that_fills_a_batch():
    sampler = BatchSampler(SequentialSampler(2), 3, "rollover")
    assert [list(sampler), list(sampler), list(sampler)] == [[], [[0, 1, 0]], [[1, 0, 1]]]
    sampler = BatchSampler(SequentialSampler(1), 3, "rollover")
    assert [list(sampler) for _ in range(4)] == [[], [], [[0, 0, 0]], []]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: SequentialSampler(-1), "length must not be negative"),
        (lambda: IntervalSampler(3, 4), "interval 4 is not between 1 and the length 3"),
        (lambda: BatchSampler(SequentialSampler(3), 2, "x"), "last_batch must be one of"),
        (lambda: TEN.take(-1), "count must not be negative"),
    ],
)
def test_bad_values(make, text):
    with pytest.raises(ValueError, match=text):
        make()


def test_base_classes_say_what_is_missing():
    for call in (
        lambda: len(Sampler()),
        lambda: iter(Sampler()),
        lambda: len(Dataset()),
        lambda: Dataset()[0],
    ):
        with pytest.raises(NotImplementedError, match="does not define"):
            call()


def test_views():
    assert list(TEN.shard(3, 0)) == [0, 1, 2, 3]
    assert list(TEN.shard(3, 1)) == [4, 5, 6]
    assert list(TEN.shard(3, 2)) == [7, 8, 9]
    for bad in (3, -1):
        with pytest.raises(AssertionError, match="out of range for 3 shards"):
            TEN.shard(3, bad)
    assert [len(TEN.take(3)), len(TEN.take(None)), len(TEN.take(30))] == [3, 10, 10]
    assert list(TEN.filter(lambda x: x % 2)) == [1, 3, 5, 7, 9]
    assert list(TEN.sample(SequentialSampler(2, 5))) == [5, 6]
    with pytest.raises(TypeError, match="Invalid sampler type"):
        TEN.sample([1, 2])
    assert list(TEN.take(4).filter(lambda x: x > 1).transform(lambda x: x * 2)) == [4, 6]


def test_transform():
    calls = []

    def double(x):
        calls.append(x)
        return 2 * x

    lazy = TEN.transform(double)
    assert not calls
    assert lazy[3] == 6
    assert calls == [3]
    eager = TEN.transform(double, lazy=False)
    assert calls == [3, *range(10)]
    assert list(eager) == list(range(0, 20, 2))
    pairs = SimpleDataset([(1, 2), (3, 4)])
    assert list(pairs.transform(lambda a, b: a + b)) == [3, 7]
    assert list(pairs.transform_first(double)) == [(2, 2), (6, 4)]
    assert TEN.transform_first(double)[1] == 2


def test_array_dataset():
    x, y = onp.arange(6, dtype="uint8").reshape(3, 2), [7, 8, 9]
    data = ArrayDataset(x, y)
    assert len(data) == 3
    image, label = data[1]
    onp.testing.assert_array_equal(image, [2, 3])
    assert label == 8
    assert type(ArrayDataset(x)[0]) is onp.ndarray
    with pytest.raises(AssertionError, match=r"array\[0\] has length 3 while array\[1\] has 2"):
        ArrayDataset(x, [1, 2])
    with pytest.raises(AssertionError, match="at least one"):
        ArrayDataset()
    labels = ArrayDataset(np.array([1, 2], dtype="int32"))
    assert labels[0] == 1
    assert labels[0].dtype == onp.int32
    with pytest.raises(IndexError):
        data[3]


def values(batch):
    if isinstance(batch, (list, tuple)):
        return [values(part) for part in batch]
    array = batch.asnumpy() if hasattr(batch, "asnumpy") else batch
    return array.dtype, array.tolist()


@pytest.mark.parametrize(
    "dataset",
    [
        SimpleDataset(onp.arange(12, dtype="float16").reshape(6, 2)),
        ArrayDataset(onp.arange(12, dtype="uint8").reshape(6, 2), onp.arange(6)),
        ArrayDataset(onp.arange(6, dtype="int16")),
        ArrayDataset(onp.arange(6) > 2, onp.arange(6.0)),
        ArrayDataset(
            np.array(onp.arange(12.0).reshape(6, 2), dtype="float32"),
            np.array([0, 1, 2, 3, 4, 5], dtype="int32"),
        ),
        ArrayDataset(onp.arange(12.0).reshape(6, 2), onp.arange(6))
        .take(5)
        .filter(lambda x, *_: True)
        .shard(1, 0),
    ],
)
def test_many_at_once_equals_one_by_one(dataset):
    indices = [4, 0, 0, 2]
    got = take_batch(dataset, indices)
    assert got is not None
    assert values(got) == values(stack_samples([dataset[i] for i in indices]))


def test_many_at_once_is_declined_where_samples_differ():
    for dataset in (
        TEN,
        ArrayDataset([1, 2]),
        TEN.transform(lambda x: x),
        SimpleDataset(onp.array(["a", "b"])),
    ):
        assert take_batch(dataset, [0, 1]) is None
    assert take_batch([1, 2], [0]) is None


@pytest.mark.parametrize(
    ("samples", "dtype", "want"),
    [
        ([1, 2], "int64", [1, 2]),
        ([1.5, 2.5], "float32", [1.5, 2.5]),
        ([True, False], "bool", [True, False]),
        ([onp.float64(1.5), onp.float64(2)], "float64", [1.5, 2]),
        ([onp.int8(1), onp.int8(2)], "int8", [1, 2]),
        ([onp.ones(2, "uint8")] * 2, "uint8", [[1, 1], [1, 1]]),
        ([[1, 2], [3, 4]], "int64", [[1, 2], [3, 4]]),
    ],
)
def test_default_batch_function(samples, dtype, want):
    batch = batchify.Stack()(samples)
    assert batch.dtype == dtype
    assert batch.asnumpy().tolist() == want


def test_pad_append_group():
    pad = batchify.Pad(val=-1)([[1, 2], [3]])
    assert pad.dtype == onp.int64
    assert pad.asnumpy().tolist() == [[1, 2], [3, -1]]
    pad = batchify.Pad(dtype="float16", round_to=4)([onp.ones((1, 2)), onp.ones((3, 1))])
    assert pad.shape == (2, 4, 4)
    assert pad.dtype == onp.float16
    assert pad.asnumpy().sum() == 5
    assert batchify.Pad()([5, 6]).asnumpy().tolist() == [5, 6]
    parts = batchify.Append()([onp.ones(2), onp.ones((3, 1))])
    assert [part.shape for part in parts] == [(1, 2), (1, 3, 1)]
    assert batchify.Append(expand=False)([onp.ones(2)])[0].shape == (2,)
    group = batchify.Group([batchify.Stack(), batchify.AsList()])
    stacked, listed = group([(1, "a"), (2, "b")])
    assert stacked.asnumpy().tolist() == [1, 2]
    assert listed == ["a", "b"]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: batchify.Stack()([onp.ones(2), onp.ones(3)]),
            ValueError,
            r"shape \(2,\), but sample 1 has \(3,\)",
        ),
        (lambda: stack_samples(["a", "b"]), TypeError, "cannot stack samples of type str"),
        (lambda: stack_samples([(1, 2), (1,)]), ValueError, "different numbers of fields"),
        (lambda: stack_samples([]), ValueError, "no samples"),
        (
            lambda: batchify.Pad()([onp.ones(2), onp.ones((2, 2))]),
            ValueError,
            "different numbers of dimensions",
        ),
        (lambda: batchify.Group(batchify.Stack(), 3), TypeError, "function 1 is a int"),
        (lambda: batchify.Group([batchify.Stack()], batchify.Stack()), ValueError, "not both"),
        (
            lambda: batchify.Group(batchify.Stack())([(1, 2)]),
            AssertionError,
            "1 functions for samples of 2 fields",
        ),
    ],
)
def test_batch_functions_refuse(call, error, text):
    with pytest.raises(error, match=text):
        call()
