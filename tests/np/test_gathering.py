"""Reading, writing and adding at index arrays of the sizes at which the way changes, against NumPy: equal indices,
views with any strides, arrays without elements, overlaps; the same bits for any number of threads and instruction set.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import numpy as onp
import pytest

import mxnp
from mxnp import np, npx
from mxnp._core import op

_SCATTER_ADD = op("scatter_add")

# Entries, and the shape of each: single elements and rows, few and many, wide ones that are cut.
SHAPES = [
    (7, ()), (300_000, ()), (40_000, ()), (50, (3,)), (9000, (8,)), (4000, (50,)), (3, (20_000,)), (1, (70_000,)),
    (0, (4,)), (5, (0,)),
]  # fmt: skip
# How many entries there are to point at: few, so that most positions share one, or as many as positions.
TARGETS = [1, 5, 300, 100_000]


@pytest.fixture
def threads() -> Iterator[None]:
    before = mxnp.num_threads()
    yield
    mxnp.set_num_threads(before)


def drawn(count: int, entry: tuple[int, ...], target: int) -> tuple[onp.ndarray, onp.ndarray, onp.ndarray]:
    """An array to index, indices, and a value for each of them."""
    rng = onp.random.default_rng(count + target)
    target = min(target, 2_000_000 // max(1, int(onp.prod(entry, dtype=int))))
    x = rng.standard_normal((target, *entry)).astype("float32")
    values = rng.standard_normal((count, *entry)).astype("float32")
    return x, rng.integers(-target, target, count), values


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("count", "entry"), SHAPES)
def test_get_and_set(count, entry, target):
    x, at, values = drawn(count, entry, target)
    a, i, v = np.array(x), np.array(at), np.array(values)
    onp.testing.assert_array_equal(a[i].asnumpy(), x[at])
    a[i] = v
    # Of equal indices the last counts, in NumPy too.
    x[at] = values
    onp.testing.assert_array_equal(a.asnumpy(), x)
    a[i] = 2.5
    x[at] = 2.5
    onp.testing.assert_array_equal(a.asnumpy(), x)
    if entry and count:
        a[i] = v[0]
        x[at] = values[0]
        onp.testing.assert_array_equal(a.asnumpy(), x)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("count", "entry"), SHAPES)
def test_sums_are_in_the_order_of_the_positions(count, entry, target):
    x, at, values = drawn(count, entry, target)
    want = onp.zeros_like(x)
    onp.add.at(want, at, values)
    got = _SCATTER_ADD(np.array(values), np.array(at), shape=x.shape)
    assert got.asnumpy().tobytes() == want.tobytes()
    whole = (values * 4).astype("int64")
    want = onp.zeros(x.shape, "int64")
    onp.add.at(want, at, whole)
    onp.testing.assert_array_equal(_SCATTER_ADD(np.array(whole), np.array(at), shape=x.shape).asnumpy(), want)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float16", "float64", "complex64", "complex128"])
def test_dtypes(dtype):
    x, at, values = drawn(300_000, (), 1000)
    x, values = (x * 3).astype(dtype), (values * 3).astype(dtype)
    a, i = np.array(x), np.array(at)
    onp.testing.assert_array_equal(a[i].asnumpy(), x[at])
    a[i] = np.array(values)
    x[at] = values
    onp.testing.assert_array_equal(a.asnumpy(), x)
    if dtype != "float16":
        want = onp.zeros(1000, dtype)
        onp.add.at(want, at, values)
        assert _SCATTER_ADD(np.array(values), i, shape=(1000,)).asnumpy().tobytes() == want.tobytes()
    one = _SCATTER_ADD(np.array(1, dtype=dtype), i % 1000, shape=(1000,))
    want = onp.bincount(at % 1000, minlength=1000)
    onp.testing.assert_array_equal(one.asnumpy(), want.astype(dtype))


def test_views_with_any_strides():
    base = onp.arange(600_000, dtype="float32").reshape(200, 100, 30)
    rng = onp.random.default_rng(4)
    at = rng.integers(-50, 50, 9000)
    for view in (
        lambda x: x[::-2],
        lambda x: x[:, ::-1],
        lambda x: x.transpose(1, 0, 2),
        lambda x: x.transpose(2, 1, 0)[:, ::2][:, :, ::-1].transpose(1, 0, 2),
    ):
        x = base.copy()
        a = np.array(x)
        onp.testing.assert_array_equal(view(a)[np.array(at)].asnumpy(), view(x)[at])
        onp.testing.assert_array_equal(view(a)[:, np.array(at[:40] % 20)].asnumpy(), view(x)[:, at[:40] % 20])
        value = rng.standard_normal(view(x)[at].shape).astype("float32")
        view(a)[np.array(at)] = np.array(value)
        view(x)[at] = value
        onp.testing.assert_array_equal(a.asnumpy(), x)
        # Indices with strides of their own.
        turned = np.array(at)[::-3]
        onp.testing.assert_array_equal(view(a)[turned].asnumpy(), view(x)[at[::-3]])


def test_two_index_arrays_broadcast():
    x = onp.arange(200_000, dtype="int64").reshape(500, 400)
    rng = onp.random.default_rng(5)
    i, j = rng.integers(-500, 500, (700, 1)), rng.integers(-400, 400, 600)
    a = np.array(x)
    onp.testing.assert_array_equal(a[np.array(i), np.array(j)].asnumpy(), x[i, j])
    a[np.array(i), np.array(j)] = np.arange(600, dtype="int64")
    x[i, j] = onp.arange(600)
    onp.testing.assert_array_equal(a.asnumpy(), x)


def test_a_value_that_overlaps_the_target_is_read_first():
    x = onp.arange(400_000, dtype="float32")
    at = onp.random.default_rng(6).integers(0, 300_000, 300_000)
    a = np.array(x)
    a[np.array(at)] = a[100_000:]
    x[at] = x[100_000:].copy()
    onp.testing.assert_array_equal(a.asnumpy(), x)


@pytest.mark.parametrize("mode", ["raise", "clip", "wrap"])
def test_modes(mode):
    x = onp.arange(1000, dtype="int32")
    rng = onp.random.default_rng(7)
    high = 1000 if mode == "raise" else 5000
    at = rng.integers(-1000 if mode == "raise" else -5000, high, 100_000)
    onp.testing.assert_array_equal(
        np.take(np.array(x), np.array(at), mode=mode).asnumpy(), x.take(at, mode=mode)
    )
    narrow = at.astype("int16")
    got = np.take(np.array(x), np.array(narrow), mode=mode).asnumpy()
    onp.testing.assert_array_equal(got, x.take(narrow, mode=mode))


@pytest.mark.parametrize("bad", [1000, -1001, 2**62, -(2**63)])
@pytest.mark.parametrize("place", [0, 150_000, 299_999])
def test_one_index_out_of_range_writes_nothing(bad, place):
    at = onp.random.default_rng(8).integers(0, 1000, 300_000)
    at[place] = bad
    at[max(place, 299_998) :] = 1234 if place == 299_999 else at[max(place, 299_998) :]
    at[place] = bad
    a = np.arange(1000)
    with pytest.raises(IndexError, match=f"index {bad} is out of bounds"):
        a[np.array(at)] = 0
        a.wait_to_read()
    onp.testing.assert_array_equal(a.asnumpy(), onp.arange(1000))
    with pytest.raises(IndexError, match=f"index {bad} is out of bounds"):
        a[np.array(at)].wait_to_read()


@pytest.mark.parametrize("axis", [0, 1])
def test_along_an_axis(axis):
    rng = onp.random.default_rng(9)
    x = rng.standard_normal((400, 300)).astype("float32")
    at = rng.integers(-300, 300, (400, 300))
    for a, i in ((x, at), (x[::-1], at[:, ::-1]), (x.T[:300, :300].T, at[:300].T[:, ::-1])):
        got = np.take_along_axis(np.array(a), np.array(i), axis).asnumpy()
        onp.testing.assert_array_equal(got, onp.take_along_axis(a, i, axis))
    view = np.array(x).T[::-1]
    got = np.take_along_axis(view, np.array(at.T), axis).asnumpy()
    onp.testing.assert_array_equal(got, onp.take_along_axis(x.T[::-1], at.T, axis))
    picked = npx.pick(np.array(x), np.array(at[:, 0] % 300), axis=1).asnumpy()
    onp.testing.assert_array_equal(picked, x[onp.arange(400), at[:, 0] % 300])


PROGRAM = """
import hashlib
import numpy as onp
from mxnp import np, npx, autograd
rng = onp.random.default_rng(0)
digest = hashlib.sha256()
keep = lambda a: digest.update(a.asnumpy().tobytes())
for count, entry, target in ((400_000, (), 90_000), (400_000, (), 7), (9000, (16,), 400), (5, (90_000,), 3)):
    for dtype in ("float32", "float64", "float16"):
        x = np.array(rng.standard_normal((target, *entry)), dtype=dtype)
        at = np.array(rng.integers(-target, target, count))
        x.attach_grad()
        with autograd.record():
            y = x[at]
        y.backward(np.array(rng.standard_normal(y.shape), dtype=dtype))
        keep(y), keep(x.grad)
        x = x.copy()
        x[at] = np.array(rng.standard_normal(y.shape), dtype=dtype)
        keep(x)
np.random.seed(5)
for draw in (np.random.uniform, np.random.normal, np.random.exponential):
    for dtype in ("float16", "float32", "float64"):
        keep(draw(size=(70_001,), dtype=dtype))
keep(np.random.randint(-5, 10**9, size=(70_001,)))
keep(np.random.randint(0, 2**63 - 1, size=(70_001,)))
keep(np.random.permutation(70_001))
keep(np.searchsorted(np.sort(np.random.uniform(size=(5000,))), np.random.uniform(size=(70_001,))))
print(digest.hexdigest())
"""


def run(isa: str, threads: str) -> str:
    env = {**os.environ, "MXNP_ISA": isa, "MXNP_NUM_THREADS": threads}
    command = [sys.executable, "-c", PROGRAM]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout


def test_the_same_bits_for_any_number_of_threads_on_every_instruction_set():
    pairs = (("baseline", "1"), ("avx2", "2"), ("avx512", "64"), ("avx512", "1"))
    assert len({run(isa, threads) for isa, threads in pairs}) == 1


def test_more_threads_add_the_same_sums(threads):
    x, at, values = drawn(300_000, (), 100)
    found = set()
    for count in (1, 2, 64):
        mxnp.set_num_threads(count)
        got = _SCATTER_ADD(np.array(values), np.array(at), shape=x.shape)
        found.add(got.asnumpy().tobytes())
    assert len(found) == 1


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8", "float16"])
def test_searchsorted(dtype, right):
    rng = onp.random.default_rng(10)
    side = "right" if right else "left"
    for n, m in ((0, 5), (1, 40), (2, 15), (3, 16), (17, 17), (1000, 70_000)):
        edges = onp.sort((rng.standard_normal(n) * 40).astype(dtype))
        v = (rng.standard_normal(m) * 60).astype(dtype)
        if onp.dtype(dtype).kind == "f":
            v[::7] = onp.nan
            v[::5] = -0.0
            edges[n - n // 5 :] = onp.nan
        v[::3] = edges[rng.integers(0, n, len(v[::3]))] if n else v[::3]
        got = np.searchsorted(np.array(edges), np.array(v), side=side).asnumpy()
        onp.testing.assert_array_equal(got, onp.searchsorted(edges, v, side=side))
        turned = np.searchsorted(np.array(edges[::-1].copy())[::-1], np.array(v)[::-2], side=side).asnumpy()
        onp.testing.assert_array_equal(turned, onp.searchsorted(edges, v[::-2], side=side))


@pytest.mark.parametrize("name", ["concatenate", "stack"])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("parts", [1, 2, 9, 130])
def test_joining_many_and_long_pieces(name, axis, parts):
    rng = onp.random.default_rng(parts)
    for shape in ((3, 5, 2), (1, 300, 70), (40, 1, 3), (0, 4, 2), (2, 60_000, 1)):
        sizes = [shape] * parts
        if name == "concatenate":
            sizes = [(*shape[:axis], (shape[axis] + i) % 7 + 1 if parts > 2 else shape[axis], *shape[axis + 1 :])
                     for i in range(parts)]  # fmt: skip
        if parts * max(onp.prod(s) for s in sizes) > 3_000_000:
            continue
        pieces = [rng.integers(0, 100, s).astype("int16") for s in sizes]
        got = getattr(np, name)([np.array(p) for p in pieces], axis=axis).asnumpy()
        onp.testing.assert_array_equal(got, getattr(onp, name)(pieces, axis=axis))
        turned = getattr(np, name)([np.array(p)[:, ::-1] for p in pieces], axis=axis).asnumpy()
        onp.testing.assert_array_equal(turned, getattr(onp, name)([p[:, ::-1] for p in pieces], axis=axis))
