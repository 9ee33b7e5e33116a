"""Random programs of ops, views, in-place writes, aliasing, dropped and kept intermediates, recording and threads.

A program is data: a list of steps that any interpreter can follow. It runs lazily on 1, 2 and 64 threads and naively,
bit for bit the same, and in NumPy: exactly for integers, within a tolerance for floats. Floating programs stay in
[-1, 1] by ops that do not amplify errors, so that the tolerance means something after fifty steps.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as onp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mxnp import autograd, np, npx
from specs.drive import engine, threads

SHAPES = ((), (1,), (5,), (4, 5), (5, 4), (1, 5), (4, 1), (2, 4, 5), (0, 5))
LARGE = ((300, 70), (70, 300), (70,))

# Ops by name; each interpreter has its own module `xp` for them. Floating ones keep values within [-1, 1].
UNARY = {
    "int32": ("negative", "absolute", "square", "sign"),
    "float32": ("negative", "absolute", "tanh", "sin", "square", "rint"),
}
BINARY = {
    "int32": ("add", "subtract", "multiply", "maximum", "minimum", "bitwise_xor"),
    "float32": ("multiply", "maximum", "minimum", "mean_of", "half_difference"),
}
FOLDS = {"int32": ("sum", "max", "min"), "float32": ("mean", "max", "min")}
INPLACE = {"int32": ("+=", "-=", "*="), "float32": ("*=", "max=")}


@dataclass(frozen=True)
class Step:
    """One line of a program. `args` are positions in the list of values made so far, taken modulo its length."""

    kind: str
    name: str = ""
    args: tuple[int, ...] = ()
    extra: Any = None

    def __repr__(self) -> str:
        return f"{self.kind}:{self.name}{self.args}{'' if self.extra is None else self.extra}"


@st.composite
def steps(draw, dtype: str, shapes):
    """One step of a program of `dtype`."""
    kind = draw(
        st.sampled_from(
            [
                "new",
                "unary",
                "unary",
                "binary",
                "binary",
                "binary",
                "fold",
                "view",
                "view",
                "copy",
                "cast",
                "where",
            ]
            + ["write", "write", "write number", "inplace", "out", "drop", "read", "scalar", "matmul"]
        )
    )
    at = st.integers(0, 40)
    names = {
        "unary": UNARY,
        "binary": BINARY,
        "fold": FOLDS,
        "inplace": INPLACE,
        "out": BINARY,
        "scalar": BINARY,
    }
    name = draw(st.sampled_from(names[kind][dtype])) if kind in names else ""
    if kind == "new":
        return Step(kind, "", (), (draw(st.sampled_from(shapes)), draw(st.integers(0, 99))))
    if kind == "fold":
        return Step(kind, name, (draw(at),), (draw(st.sampled_from([None, 0, -1])), draw(st.booleans())))
    if kind == "view":
        ways = ["slice", "reverse", "transpose", "reshape", "expand", "broadcast", "row"]
        return Step(
            kind, draw(st.sampled_from(ways)), (draw(at),), (draw(st.integers(0, 3)), draw(st.integers(1, 2)))
        )
    if kind in {"write", "write number"}:
        where = draw(st.sampled_from(["all", "head", "tail", "even", "reverse", "last"]))
        return Step(kind, where, (draw(at), draw(at)), draw(st.integers(-1, 1)))
    if kind == "scalar":
        return Step(kind, name, (draw(at),), (draw(st.sampled_from([-1, 0, 1])), draw(st.booleans())))
    return Step(kind, name, (draw(at), draw(at), draw(at)))


def programs(dtype: str, shapes=SHAPES, size: int = 40):
    """Programs of `dtype` that start with two arrays."""
    first = [Step("new", "", (), (shapes[-2], 1)), Step("new", "", (), (shapes[0], 2))]
    return st.lists(steps(dtype, shapes), min_size=3, max_size=size).map(lambda more: first + more)


# ---- Interpreters


def initial(shape, seed: int, dtype: str) -> onp.ndarray:
    rng = onp.random.default_rng(seed)
    if dtype == "int32":
        return rng.integers(-1000, 1000, shape).astype(dtype)
    return onp.asarray(rng.uniform(-1, 1, shape)).astype(dtype)


def fits(a, b) -> bool:
    """Whether two shapes broadcast, to something of a bearable size."""
    try:
        return onp.prod(onp.broadcast_shapes(a, b), dtype=float) < 1e5
    except ValueError:
        return False


def binary(xp, name: str, a, b):
    if name == "mean_of":
        return (a + b) * 0.5
    if name == "half_difference":
        return (a - b) * 0.5
    return getattr(xp, name)(a, b)


def window(x, name: str):
    """A part of `x` to write to."""
    if not x.ndim:
        return ...
    return {
        "all": ...,
        "head": slice(0, -1),
        "tail": slice(1, None),
        "even": slice(None, None, 2),
        "reverse": slice(None, None, -1),
        "last": (..., -1) if x.shape[-1] else ...,
    }[name]


def view(xp, step: Step, x):
    """A view of `x`; NumPy's is a view in the same cases."""
    skip, stride = step.extra
    if step.name == "slice" and x.ndim:
        return x[skip % 2 :: stride]
    if step.name == "reverse" and x.ndim:
        return x[..., ::-1]
    if step.name == "transpose":
        return x.T
    if step.name == "reshape" and x.size:
        return xp.reshape(x, (-1,)) if skip % 2 else xp.reshape(x, (1, -1))
    if step.name == "expand" and x.ndim < 3:
        return x[None]
    if step.name == "row" and x.ndim and x.shape[0]:
        return x[skip % x.shape[0], ...]
    if step.name == "broadcast" and x.ndim < 3:
        return xp.broadcast_to(x, (2, *x.shape)) + 0
    return x[...]


class Machine:
    """Runs a program with the arrays of `xp`; `seen` is every value that the program reads."""

    def __init__(self, xp, dtype: str, shared: list | None = None) -> None:
        self.xp, self.dtype = xp, dtype
        self.values: list[Any] = list(shared or [])
        self.frozen = {id(x) for x in self.values}  # what other threads read: never written
        self.seen: list[onp.ndarray] = []

    def bytes_of(self, x) -> onp.ndarray:
        return x.copy() if self.xp is onp else x.asnumpy()

    def run(self, program: list[Step]) -> list[onp.ndarray]:
        with onp.errstate(all="ignore"):
            for step in program:
                self.step(step)
            for x in self.values:
                self.seen.append(self.bytes_of(x))
        return self.seen

    def step(self, step: Step) -> None:
        if step.kind == "new":
            shape, seed = step.extra
            x = initial(shape, seed, self.dtype)
            self.values.append(x if self.xp is onp else np.array(x))
            return
        picked = [self.values[i % len(self.values)] for i in step.args]
        made = getattr(self, step.kind.replace(" ", "_"))(step, *picked)
        if made is not None:
            self.values.append(self.xp.asarray(made) if self.xp is onp else made)

    def unary(self, step, x, *_):
        return getattr(self.xp, step.name)(x)

    def binary(self, step, x, y, *_):
        return binary(self.xp, step.name, x, y) if fits(x.shape, y.shape) else None

    def scalar(self, step, x):
        number, left = step.extra
        number = number if self.dtype == "int32" else float(number)
        return binary(self.xp, step.name, *((number, x) if left else (x, number)))

    def fold(self, step, x):
        axis, keep = step.extra
        if not x.size or (axis is not None and not x.ndim):
            return None
        y = getattr(self.xp, step.name)(x, axis=axis, keepdims=keep)
        return y.astype(self.dtype)

    def view(self, step, x):
        return view(self.xp, step, x)

    def copy(self, step, x, *_):
        return x.copy()

    def cast(self, step, x, *_):
        """There and back through a dtype that loses nothing of integers and little of floats."""
        return x.astype("int64" if self.dtype == "int32" else "float64").astype(self.dtype)

    def where(self, step, x, y, z):
        if not (fits(x.shape, y.shape) and fits(onp.broadcast_shapes(x.shape, y.shape), z.shape)):
            return None
        return self.xp.where(x > y, y, z)

    def matmul(self, step, x, y, *_):
        if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[0] or not x.shape[1]:
            return None
        y = self.xp.matmul(x, y)
        return y if self.dtype == "int32" else y * (1.0 / x.shape[1])

    def write(self, step, x, y, *_):
        if not self.is_mine(x):
            return
        part = window(x, step.name)
        target = x[part].shape
        source = y
        if source.ndim > len(target) or not fits(source.shape, target):
            return
        if onp.broadcast_shapes(source.shape, target) != target:
            return
        x[part] = source

    def write_number(self, step, x, *_):
        if self.is_mine(x):
            x[window(x, step.name)] = step.extra

    def inplace(self, step, x, y, *_):
        if (
            not self.is_mine(x)
            or not fits(x.shape, y.shape)
            or onp.broadcast_shapes(x.shape, y.shape) != x.shape
        ):
            return
        if step.name == "+=":
            x += y
        elif step.name == "-=":
            x -= y
        elif step.name == "*=":
            x *= y
        else:
            self.xp.maximum(x, y, out=x)

    def out(self, step, x, y, z):
        if step.name in {"mean_of", "half_difference"} or not self.is_mine(z) or not fits(x.shape, y.shape):
            return
        if onp.broadcast_shapes(x.shape, y.shape) == z.shape:
            getattr(self.xp, step.name)(x, y, out=z)

    def drop(self, step, *_):
        if len(self.values) > 2 + len(self.frozen):
            del self.values[-1 - step.args[0] % (len(self.values) - len(self.frozen) - 1)]

    def read(self, step, x, *_):
        self.seen.append(self.bytes_of(x))

    def is_mine(self, x) -> bool:
        """Whether the program may write to `x`: not to what other threads read, nor to views of it."""
        if not self.frozen:
            return True
        shares = onp.shares_memory if self.xp is onp else lambda a, b: a.same_memory(b)
        return not any(shares(x, self.values[i]) for i in range(len(self.frozen)))


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
    wanted = Machine(onp, dtype).run(program)
    assert len(naive) == len(wanted)
    for i, (x, y) in enumerate(zip(naive, wanted, strict=True)):
        if dtype == "int32":
            onp.testing.assert_array_equal(x, y, err_msg=f"value {i} of {program}")
        else:
            onp.testing.assert_allclose(x, y, rtol=2e-5, atol=2e-5, err_msg=f"value {i} of {program}")


@given(programs("int32"))
def test_programs_of_integers(program):
    compare(program, "int32")


@given(programs("float32"))
def test_programs_of_floats(program):
    compare(program, "float32")


@given(programs("float32", LARGE, 15))
@settings(max_examples=20)
def test_programs_of_large_arrays(program):
    """Arrays of many tiles: split over threads, reduced in trees, multiplied in blocks."""
    compare(program, "float32")


# ---- Recording


SMOOTH = ("tanh", "sin", "square", "negative")


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


# ---- Several Python threads


@given(st.lists(programs("float32", size=15), min_size=2, max_size=4), st.sampled_from([1, 2, 64]))
@settings(max_examples=40)
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
