"""Random programs of ops, views, in-place writes, aliasing, dropped and kept intermediates, recording and threads.

A program is data (specs/programs.py). It runs lazily on 1, 2 and 64 threads and naively, bit for bit the same, and in
NumPy: exactly for integers, within a tolerance for floats.
"""

from __future__ import annotations

import random
import threading
import warnings
from typing import Any

import numpy as onp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mxnp import MXNetError, _core, autograd, np, npx
from specs import ROWS
from specs.drive import engine, examples, threads
from specs.programs import (
    DTYPES,
    LARGE,
    LEAVES,
    SMOOTH,
    Machine,
    Step,
    family,
    initial,
    programs,
    seeded,
    shortened,
    traced,
)
from specs.row import ALL, public
from specs.tolerance import numpy_dtype, widened

NUMPYS = ("int8", "int32", "int64", "float32", "float64")


def run(program, dtype, kind, count):
    with engine(kind), threads(count):
        return Machine(np, dtype).run(program)


def assert_same_bits(got, want, program, what):
    assert len(got) == len(want), what
    for i, (x, y) in enumerate(zip(got, want, strict=True)):
        assert x.dtype == y.dtype, (what, i, program)
        assert x.shape == y.shape, (what, i, program)
        assert x.tobytes() == y.tobytes(), f"{what}: value {i} of {program}:\n{x}\n{y}"


def compare(program, dtype):
    naive = run(program, dtype, "naive", 1)
    for count in (1, 2, 64):
        assert_same_bits(run(program, dtype, "threaded", count), naive, program, f"{count} threads")
    if dtype not in NUMPYS:
        return  # half precision rounds too early for a tolerance
    wanted = Machine(onp, dtype).run(program)
    assert len(naive) == len(wanted)
    for i, (x, y) in enumerate(zip(naive, wanted, strict=True)):
        if family(dtype) == "int32":
            onp.testing.assert_array_equal(x, y, err_msg=f"value {i} of {program}")
        else:
            onp.testing.assert_allclose(x, y, rtol=2e-5, atol=2e-5, err_msg=f"value {i} of {program}")


@given(programs("int32"))
def test_programs_of_integers(program):
    compare(program, "int32")


@given(programs("float32"))
def test_programs_of_floats(program):
    compare(program, "float32")


def fails(program, dtype) -> bool:
    """Whether a program does not do what it must."""
    try:
        compare(program, dtype)
    except Exception:  # noqa: BLE001 - whatever it is, a shorter program that does it is wanted
        return True
    return False


BATCHES = [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 40))]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", BATCHES)
def test_long_programs(batch, dtype):
    for seed in range(25 * batch, 25 * (batch + 1)):
        program = seeded(seed, dtype)
        if fails(program, dtype):
            compare(shortened(program, lambda shorter: fails(shorter, dtype)), dtype)
            pytest.fail(f"fails, but not again: {program}")


@given(programs("float32", LARGE, 15))
@examples(20)
def test_programs_of_large_arrays(program):
    """Arrays of many tiles: split over threads, reduced in trees, multiplied in blocks."""
    compare(program, "float32")


# ---- Recording


@st.composite
def recorded(draw):
    """A program whose steps all have gradients, and which of its values are summed at the end."""
    out = []
    for _ in range(draw(st.integers(2, 14))):
        kind = draw(
            st.sampled_from(
                ["unary", "binary", "view", "fold", "matmul", "scalar", "copy", "drop", "inplace"]
            )
        )
        at = (draw(st.integers(0, 20)), draw(st.integers(0, 20)), 0)
        name = {
            "unary": draw(st.sampled_from(SMOOTH)),
            "binary": draw(st.sampled_from(["multiply", "mean_of", "half_difference", "maximum"])),
            "scalar": "multiply",
            "view": draw(st.sampled_from(["slice", "reverse", "transpose", "reshape", "row", "broadcast"])),
            "fold": draw(st.sampled_from(["mean", "max"])),
        }.get(kind, "")
        extra = {
            "view": (1, 1),
            "fold": (draw(st.sampled_from([None, 0, -1])), False),
            "scalar": (0.5, True),
        }.get(kind)
        out.append(Step(kind, name, at if kind not in {"view", "fold", "scalar"} else at[:1], extra))
    return out


def train(program, kind, count, twice):
    """The gradients of two leaves, and every value made on the way."""
    with engine(kind), threads(count):
        leaves = [
            np.array(initial(shape, seed, "float32")) for seed, shape in enumerate([(4, 5), (5, 4), (5,)])
        ]
        for leaf in leaves:
            leaf.attach_grad("add" if twice else "write")
        seen = []
        for _ in range(2 if twice else 1):
            with autograd.record():
                machine = Machine(np, "float32", leaves)
                for step in program:
                    if step.kind != "inplace":
                        machine.step(step)
                    else:
                        x = machine.values[step.args[0] % len(machine.values)]
                        made = x * 0.5  # a functional update of an array that nothing else sees
                        made += x
                        made -= x * x
                        machine.values.append(made * 0.75)
                z = sum((np.sum(v * 0.5) for v in machine.values[3:]), np.sum(leaves[0] * leaves[0]))
            z.backward()
            seen += [v.asnumpy() for v in machine.values]
        return seen + [leaf.grad.asnumpy() for leaf in leaves]


@given(recorded(), st.booleans())
def test_recorded_programs(program, twice):
    want = train(program, "naive", 1, twice)
    for count in (1, 2, 64):
        assert_same_bits(train(program, "threaded", count, twice), want, program, f"{count} threads")


@pytest.mark.parametrize("batch", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 20))])
def test_gradients_of_programs(batch):
    """A write is refused on its line, `backward` refuses a value that was overwritten, or the gradient is exact:
    that of a central difference in a random direction, in float64.
    """
    checked = 0
    for seed in range(80 * batch, 80 * (batch + 1)):
        draw = onp.random.default_rng(seed)
        inputs = [draw.uniform(-1, 1, shape) for shape in LEAVES]
        direction = [draw.standard_normal(shape) for shape in LEAVES]
        leaves, refused = [np.array(x) for x in inputs], set()
        for leaf in leaves:
            leaf.attach_grad()
        with autograd.record():
            z = traced(seed, leaves, refused, find=True)
        try:
            z.backward()
        except MXNetError as error:
            if "modified in place" not in str(error):
                raise
            continue
        got = sum(float((leaf.grad.asnumpy() * d).sum()) for leaf, d in zip(leaves, direction, strict=True))
        up, down = (
            traced(
                seed, [np.array(x + s * d) for x, d in zip(inputs, direction, strict=True)], refused, False
            )
            for s in (1e-5, -1e-5)
        )
        numeric = (up.item() - down.item()) / 2e-5
        onp.testing.assert_allclose(got, numeric, rtol=1e-6, atol=1e-6, err_msg=f"program {seed}")
        checked += 1
    assert checked > 20, "most programs have a gradient"


# ---- Several Python threads


@given(st.lists(programs("float32", size=15), min_size=2, max_size=4), st.sampled_from([1, 2, 64]))
@examples(40)
def test_threads_that_share_what_they_read(programs_, count):
    """Each thread runs a program of its own on arrays that all read, pending ones among them."""

    def inputs():
        base = [np.array(initial(shape, seed, "float32")) for seed, shape in enumerate([(4, 5), (5,)])]
        return [*base, np.tanh(base[0] * 0.5), (base[0] * base[1])[1:]]  # views and pending values

    with engine("naive"):
        wanted = [Machine(np, "float32", inputs()).run(p) for p in programs_]
    with engine("threaded"), threads(count):
        shared = inputs()
        found: list[Any] = [None] * len(programs_)
        start = threading.Barrier(len(programs_))

        def work(i):
            start.wait()
            try:
                found[i] = Machine(np, "float32", shared).run(programs_[i])
            except BaseException as error:  # noqa: BLE001 - handed to the main thread
                found[i] = error

        workers = [threading.Thread(target=work, args=(i,)) for i in range(len(programs_))]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    for got, want, program in zip(found, wanted, programs_, strict=True):
        if isinstance(got, BaseException):
            raise got
        assert_same_bits(got, want, program, f"thread of {len(programs_)}")


@pytest.mark.parametrize("count", [1, 2, 64])
def test_threads_that_write_to_parts_of_one_array(count):
    """Each thread updates rows of its own; all of one array's memory."""
    with engine("threaded"), threads(count):
        a = np.zeros((8, 1000))
        rows = [a[i] for i in range(8)]

        def work(i):
            for k in range(50):
                rows[i][...] = rows[i] * 0.5 + (i + k)

        workers = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        want = onp.zeros((8, 1000), "float32")
        for i in range(8):
            for k in range(50):
                want[i] = want[i] * onp.float32(0.5) + onp.float32(i + k)
        onp.testing.assert_array_equal(a.asnumpy(), want)


def test_a_thread_that_ends_leaves_its_work_to_others():
    made = []
    worker = threading.Thread(target=lambda: made.append(np.ones((3,)) * 2 + 1))
    worker.start()
    worker.join()
    assert made[0].tolist() == [3, 3, 3]
    npx.waitall()


def test_a_kernel_that_writes_where_its_reshaped_result_is_copied():
    """The kernel may take the copy's memory, never its shape: indices count along the axes of its own result."""
    indices = np.array(onp.array([[0, 5], [1, 2], [3, 4], [0, 5], [1, 2], [3, 4]]))
    x = np.array(onp.arange(36.0).reshape(6, 6))
    target = np.zeros((2, 3, 2), dtype="float64")
    taken = np.take_along_axis(x, indices, axis=1)
    target[...] = taken.reshape((2, 3, 2))
    del taken
    want = onp.take_along_axis(onp.arange(36.0).reshape(6, 6), indices.asnumpy(), 1)
    onp.testing.assert_array_equal(target.asnumpy(), want.reshape(2, 3, 2))


# ---- Draws and errors among other calls


def drawing(seed: int) -> list[onp.ndarray]:
    """Draws of several kinds among other calls; some are used in place, some are dropped unread."""
    np.random.seed(seed)
    a = np.random.uniform(size=(4, 5))
    np.random.normal(size=(3,))  # dead, and counted all the same
    b = np.random.normal(size=(4, 5)) * 2 + a
    b += np.random.uniform(-1, 1, size=(5,))
    c = np.random.randint(0, 10, size=(4, 5))
    d = npx.dropout(b, p=0.5, mode="always") + np.random.permutation(5)
    del a
    e = np.sum(d * np.random.uniform(size=(4, 1)))
    return [x.asnumpy() for x in (b, c, d, e)]


@pytest.mark.parametrize("count", [1, 2, 64])
def test_draws_are_the_same_fused_or_not(count):
    with engine("naive"):
        want = drawing(5)
        assert_same_bits(drawing(5), want, None, "the same seed")
        assert not all(map(onp.array_equal, drawing(6), want))
    with engine("threaded"), threads(count):
        assert_same_bits(drawing(5), want, None, f"{count} threads")


BAD = onp.array([0, 9])


def failed(a):
    """An array whose value only the data shows to be in error."""
    return np.take(a, np.array(BAD), axis=0)


@pytest.mark.parametrize("count", [1, 2, 64])
def test_a_failed_write_leaves_its_target(count):
    """The target keeps what it held, for itself and its views, once the error was raised."""
    with engine("threaded"), threads(count):
        a = np.array(onp.arange(6.0).reshape(3, 2))
        view = a[1:]
        a += 1
        a[np.array(BAD)] = 0
        with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 with size 3"):
            a.wait_to_read()
        want = onp.arange(6.0).reshape(3, 2) + 1
        onp.testing.assert_array_equal(a.asnumpy(), want)
        onp.testing.assert_array_equal(view.asnumpy(), want[1:])
        a[0] = 7
        assert a[0].tolist() == [7, 7]


def test_an_error_reaches_all_that_was_computed_from_it():
    # The naive engine raises at the line of the call already.
    with engine("threaded"):
        a = np.ones((3, 2))
        bad = failed(a)
        later = (bad * 2 + 1).sum()
        sound = a * 2
        with pytest.raises(IndexError, match=r"take|index_get"):
            later.wait_to_read()
        assert sound.tolist() == [[2, 2]] * 3
        with pytest.raises(IndexError):
            later.item()
        with pytest.raises(IndexError):
            bad.asnumpy()
        npx.waitall()


def test_a_bad_batch_does_not_cost_the_parameters():
    """A step with an error is raised; weight and gradient are sound for the next one."""
    weight = np.ones((3, 2))
    weight.attach_grad()

    def step(indices):
        with autograd.record():
            loss = np.sum(np.take(weight, np.array(indices), axis=0) * 2)
        loss.backward()
        weight[...] = weight - 0.5 * weight.grad
        return loss

    with pytest.raises(IndexError):
        step([0, 5]).wait_to_read()
    for _ in range(3):  # what depended on the bad batch reports it until it was raised
        try:
            weight.wait_to_read()
            break
        except IndexError:
            pass
    assert weight.tolist() == [[1, 1]] * 3
    step([0, 1]).wait_to_read()
    assert weight.tolist() == [[0, 0], [0, 0], [1, 1]]


def test_threads_that_record_on_weights_they_share():
    """Each thread has a gradient of its own; the weights are read by all of them at once."""
    weight = np.array(initial((4, 5), 3, "float32")) * 1
    found = [None] * 6

    def work(i):
        mine = np.array(initial((4, 5), i, "float32"))
        mine.attach_grad()
        for _ in range(20):
            with autograd.record():
                z = np.sum(np.tanh(mine * weight) @ weight.T)
            z.backward()
        found[i] = mine.grad.asnumpy()

    def alone(i):
        with engine("naive"):
            work(i)
        return found[i]

    want = [alone(i) for i in range(6)]
    workers = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert_same_bits(found, want, None, "six threads")


# ---- Fused expressions of every elementwise op and dtype


CALLS = sorted(
    {row.name for row in ROWS if row.elementwise} | {"np.where", "np.clip", "np.sum", "np.max", "np.mean"}
)
SIZES = ((4, 5), (5,), (4, 1), (), (70, 33), (33,), (1, 33))


def expression(seed: int) -> list[onp.ndarray]:
    """Forty calls on arrays of every dtype; what an op refuses is left out, in each run alike."""
    rng = random.Random(seed)
    draw = onp.random.default_rng(seed)
    values = []
    for dtype in rng.sample(ALL, 6):
        shape = rng.choice(SIZES)
        values.append(np.array((draw.normal(size=shape) * 3).astype("complex128").astype(numpy_dtype(dtype))))
    for _ in range(40):
        name = rng.choice(CALLS)
        count = 3 if name in {"np.where", "np.clip"} else 2
        args = [
            rng.choice(values) if rng.random() < 0.9 else rng.choice((2, -0.5, True)) for _ in range(count)
        ]
        axis = rng.choice((None, 0, -1))
        one = rng.random() < 0.5
        f = public(np, npx, name)
        try:
            if name in {"np.sum", "np.max", "np.mean"}:
                values.append(f(args[0], axis=axis))
            elif isinstance(f, _core.Ufunc | _core.Op):
                made = f(*args[: f.nin if isinstance(f, _core.Ufunc) else 1])
                if name == "np.power":
                    made.wait_to_read()  # a negative exponent of integers is refused where the data shows it
                values.append(made)
            else:
                values.append(f(*args))
        except (TypeError, ValueError, OverflowError):
            continue
        if one and len(values) > 8:
            del values[rng.randrange(len(values))]
    return [x.asnumpy() for x in values if isinstance(x, np.ndarray)]


@pytest.mark.parametrize("batch", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 30))])
def test_expressions_of_every_op(batch):
    """Bit for bit, but for which NaN a NaN is."""
    with onp.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # casting complex numbers and NaN for the inputs
        for seed in range(60 * batch, 60 * (batch + 1)):
            with engine("naive"):
                want = expression(seed)
            for count in (1, 2):
                with engine("threaded"), threads(count):
                    got = expression(seed)
                assert len(got) == len(want)
                for i, (x, y) in enumerate(zip(got, want, strict=True)):
                    assert x.dtype == y.dtype
                    assert onp.array_equal(widened(x), widened(y), equal_nan=x.dtype.kind in "fcV"), (
                        seed,
                        i,
                        x,
                        y,
                    )
