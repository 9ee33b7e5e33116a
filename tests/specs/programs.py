"""Random programs as data, how they are made, and how they are followed: in mxnp or in NumPy.

Floating programs stay in [-1, 1] by ops that do not amplify errors, so that a tolerance means something after many
steps. What is asserted of programs is test_programs.py's.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as onp
from hypothesis import strategies as st

from mxnp import MXNetError, np
from specs.tolerance import numpy_dtype

SHAPES = ((4, 5), (5, 4), (5,), (2, 4, 5), (), (1,), (4, 5), (5, 4), (1, 5), (4, 1), (0, 5))
LARGE = ((300, 70), (70, 300), (70,))

# Ops by name; each interpreter has its own module `xp` for them. Floating ones keep values within [-1, 1].
UNARY = {
    "int32": ("negative", "absolute", "square", "sign"),
    "float32": ("negative", "absolute", "tanh", "sin", "square"),
}
BINARY = {
    "int32": ("add", "subtract", "multiply", "maximum", "minimum", "bitwise_xor"),
    "float32": ("multiply", "maximum", "minimum", "mean_of", "half_difference"),
}
FOLDS = {"int32": ("sum", "max", "min"), "float32": ("mean", "max", "min")}
KERNELS = ("sort", "argsort", "cumsum", "roll", "repeat", "tile", "concatenate", "stack", "take")
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


KINDS = (
    *("new", "unary", "unary", "binary", "binary", "binary", "fold", "view", "view", "copy", "cast", "where"),
    *("write", "write", "write reshaped", "write number", "inplace", "out", "drop", "drop", "read", "scalar"),
    *("matmul", "matmul", "kernel", "kernel", "index", "write index"),
)
WINDOWS = ("all", "all", "head", "tail", "even", "reverse", "last")
VIEWS = ("slice", "reverse", "transpose", "reshape", "expand", "broadcast", "row")
DTYPES = ("int32", "float32", "int8", "int64", "float64", "float16", "bfloat16")


def family(dtype: str) -> str:
    """The dtype whose ops programs of `dtype` are made of."""
    return "int32" if dtype.startswith("int") else "float32"


AT = range(41)  # positions in the list of values


def step(pick: Callable[[Any], Any], dtype: str, shapes) -> Step:
    """One step of a program of `dtype`; `pick` chooses one of a sequence."""
    kind, dtype = pick(KINDS), family(dtype)
    if kind == "new":
        return Step(kind, "", (), (pick(shapes), pick(range(100))))
    if kind in {"unary", "binary", "inplace", "out"}:
        names = {"unary": UNARY, "binary": BINARY, "inplace": INPLACE, "out": BINARY}[kind]
        return Step(kind, pick(names[dtype]), (pick(AT), pick(AT), pick(AT)))
    if kind == "fold":
        return Step(kind, pick(FOLDS[dtype]), (pick(AT),), (pick((None, 0, -1)), pick((False, True))))
    if kind == "scalar":
        return Step(kind, pick(BINARY[dtype]), (pick(AT),), (pick((-1, 0, 1)), pick((False, True))))
    if kind == "view":
        return Step(kind, pick(VIEWS), (pick(AT),), (pick(range(4)), pick((1, 2))))
    if kind in {"write", "write number"}:
        return Step(kind, pick(WINDOWS), (pick(AT), pick(AT)), pick((-1, 0, 1)))
    if kind == "kernel":
        return Step(kind, pick(KERNELS), (pick(AT), pick(AT)), pick(range(4)))
    if kind in {"index", "write index"}:
        return Step(kind, "", (pick(AT), pick(AT)), pick(range(6)))
    return Step(kind, "", (pick(AT), pick(AT), pick(AT)))


def opening(shapes) -> list[Step]:
    """The arrays that every program starts with."""
    return [Step("new", "", (), (shape, seed)) for seed, shape in enumerate(shapes[:4])]


@st.composite
def programs(draw, dtype: str, shapes=SHAPES, size: int = 40):
    """Programs of `dtype`, for hypothesis to vary and to shrink."""
    count = draw(st.integers(3, size))
    return opening(shapes) + [
        step(lambda seq: draw(st.sampled_from(seq)), dtype, shapes) for _ in range(count)
    ]


def seeded(seed: int, dtype: str, shapes=SHAPES, size: int = 120) -> list[Step]:
    """A long program; `shortened` shrinks one that fails."""
    rng = random.Random(seed)
    return opening(shapes) + [step(rng.choice, dtype, shapes) for _ in range(size)]


def shortened(program: list[Step], fails: Callable[[list[Step]], bool]) -> list[Step]:
    """Fewer steps of a program that still fail: halves, quarters, ... single steps are left out."""
    width = len(program) // 2
    while width:
        at = 0
        while at < len(program):
            rest = program[:at] + program[at + width :]
            if rest and fails(rest):
                program = rest
            else:
                at += width
        width //= 2
    return program


# ---- Interpreters


def initial(shape, seed: int, dtype: str) -> onp.ndarray:
    rng = onp.random.default_rng(seed)
    if family(dtype) == "int32":
        return rng.integers(-1000, 1000, shape).astype(dtype)
    return onp.asarray(rng.uniform(-1, 1, shape)).astype(numpy_dtype(dtype))


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
        self.xp, self.dtype, self.is_integer = xp, dtype, family(dtype) == "int32"
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
        number = number if self.is_integer else float(number)
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
        return x.astype("int64" if self.is_integer else "float64").astype(self.dtype)

    def where(self, step, x, y, z):
        if not (fits(x.shape, y.shape) and fits(onp.broadcast_shapes(x.shape, y.shape), z.shape)):
            return None
        # Floats are compared with a number that none is near to by design: a tie would be decided by the last digit.
        return self.xp.where(x > (y if self.is_integer else 0.3141), y, z)

    def matmul(self, step, x, y, *_):
        if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[0] or not x.shape[1]:
            return None
        y = self.xp.matmul(x, y)
        return y if self.is_integer else y * (1.0 / x.shape[1])

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

    def kernel(self, step, x, y):
        """An op that is no step of a fused pass."""
        xp, k = self.xp, step.extra
        if step.name in {"concatenate", "stack"}:
            fit = x.ndim and x.shape == y.shape and x.size < 2000
            return getattr(xp, step.name)([x, y], axis=k % x.ndim) if fit else None
        if not x.ndim or not x.size or x.size > 20000:
            return None
        axis = k % x.ndim
        if step.name == "sort":
            return xp.sort(x, axis=axis)
        if step.name == "argsort":
            if not self.is_integer:  # near ties, again
                return None
            order = xp.argsort(x, axis=axis, kind="stable") if xp is onp else xp.argsort(x, axis=axis)
            return order.astype(self.dtype)
        if step.name == "cumsum":
            y = xp.cumsum(x, axis=axis).astype(self.dtype)
            return y if self.is_integer else y * (1.0 / x.shape[axis])
        if step.name == "roll":
            return xp.roll(x, k + 1, axis=axis)
        if step.name == "take":
            return xp.take(x, self.places(x.shape[axis], k), axis=axis)
        if x.size > 500:
            return None
        return xp.repeat(x, 2, axis=axis) if step.name == "repeat" else xp.tile(x, 2)

    def places(self, size, seed):
        """Indices of an axis, some twice."""
        found = onp.random.default_rng(seed).integers(-size, size, 4)
        return found if self.xp is onp else np.array(found)

    def index(self, step, x, _):
        return x[self.places(x.shape[0], step.extra)] if x.ndim and x.shape[0] else None

    def write_index(self, step, x, y):
        if not self.is_mine(x) or not x.ndim or not x.shape[0]:
            return
        target = (4, *x.shape[1:])
        if fits(y.shape, target) and onp.broadcast_shapes(y.shape, target) == target:
            x[self.places(x.shape[0], step.extra)] = y

    def write_reshaped(self, step, x, y, *_):
        """All of an array, from one of as many elements in another shape."""
        if self.is_mine(x) and x.size == y.size:
            x[...] = y.reshape(x.shape)

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


# ---- Programs whose steps have gradients


SMOOTH = ("tanh", "sin", "square", "negative")
LEAVES = ((4, 5), (5, 4), (5,))
TRACED = (
    *(
        "unary",
        "unary",
        "binary",
        "binary",
        "view",
        "view",
        "mean",
        "matmul",
        "copy",
        "drop",
        "fresh",
        "fresh",
    ),
    *("write", "write number", "inplace", "write index", "write reshaped", "out"),
)


def traced_step(rng: random.Random) -> Step:
    """A step that has a gradient, or a write to anything at all."""
    at = tuple(rng.randrange(40) for _ in range(3))
    kind = rng.choice(TRACED)
    if kind == "unary":
        return Step(kind, rng.choice(SMOOTH), at)
    if kind == "binary":
        return Step(kind, rng.choice(("multiply", "mean_of", "half_difference")), at)
    if kind == "view":
        return Step(kind, rng.choice(VIEWS), at[:1], (rng.randrange(4), rng.choice((1, 2))))
    if kind == "mean":
        return Step("fold", "mean", at[:1], (rng.choice((None, 0, -1)), rng.random() < 0.5))
    if kind in {"write", "write number", "fresh"}:
        return Step(kind, rng.choice(WINDOWS), at[:2], 0.5)
    if kind == "inplace":
        return Step(kind, rng.choice(("+=", "-=", "*=")), at)
    if kind == "write index":
        return Step(kind, "", at[:2], rng.randrange(6))
    return Step(kind, "multiply" if kind == "out" else "", at)


def traced(seed: int, leaves, refused: set[int], find: bool) -> Any:
    """A number made of `leaves` by forty random steps. Writes that recording refuses are added to `refused` where
    `find`, and else left out.
    """
    rng = random.Random(seed)
    machine = Machine(np, "float64", leaves)
    for n in range(40):
        step = traced_step(rng)
        if n in refused:
            continue
        try:
            if step.kind == "fresh":  # a write to a result of its own, which recording takes
                x = machine.values[step.args[0] % len(machine.values)] * 0.5
                machine.values.append(x)
                machine.write_number(step, x)
                x *= 0.5
            else:
                machine.step(step)
        except MXNetError as error:
            if not find or not re.search("read-only|in place", str(error)):
                raise
            refused.add(n)
    return sum((np.sum(v * v * 0.1) for v in machine.values[3:]), np.sum(leaves[0] * leaves[0]))
