"""Random programs of every op that a fused pass may hold, taken from the op table: how they are made and followed.

Each argument is brought into the domain that the op's row names, by ops that fuse as well. Sizes are given when a
program is followed, not when it is made. What is asserted of programs is test_fused_programs.py's.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as onp

from mxnp import MXNetError, _core, np
from specs import FAMILIES, ROWS
from specs.drive import call
from specs.row import ALL, COMPLEX, FLOATS, Case, Domain, Row

FUSABLE = frozenset(name for name in _core.op_names() if _core.op(name).is_elementwise)
ROWS_OF_STEPS = tuple(row for row in ROWS if row.core_op in FUSABLE)
# What ends a pass, or is written with its steps: reductions, softmax and its kin.
ROWS_OF_LINES = tuple(
    row for family in ("reduce", "nn_act") for row in FAMILIES[family] if row not in ROWS_OF_STEPS
)

# Shapes that broadcast with each other whatever the two sizes are; reductions keep their axes, so all values have one.
FORMS: tuple[Callable[[int, int], tuple[int, ...]], ...] = (
    lambda m, n: (m, n),
    lambda m, n: (n,),
    lambda m, n: (m, 1),
    lambda m, n: (1, n),
    lambda m, n: (),
)
REFUSALS = (TypeError, ValueError, OverflowError, MXNetError)


@dataclass(frozen=True)
class Line:
    """One line of a program. `args` are positions among the values so far, modulo their number."""

    kind: str  # a call, or one of WAYS
    args: tuple[int, ...] = ()
    row: Row | None = None
    dtype: str | None = None  # what the arguments are converted to; None: they are mixed as they come
    attrs: tuple[tuple[str, Any], ...] = ()
    number: tuple[int, float] | None = None  # this argument is a Python number
    turned: bool = False  # the first argument is read transposed, and the result turned back

    def __repr__(self) -> str:
        parts = [
            str(self.row or self.kind),
            self.args,
            self.dtype,
            dict(self.attrs),
            self.number,
            self.turned,
        ]
        return f"Line({', '.join(str(p) for p in parts if p)})"


@dataclass(frozen=True)
class Program:
    """What arrays it is given, as dtypes and forms, and its lines."""

    given: tuple[tuple[str, int], ...]
    lines: tuple[Line, ...]
    seed: int
    is_recorded: bool = False

    def keeping(self, keeps: Callable[[Line], bool]) -> Program:
        """The program with those of its lines."""
        return replace(self, lines=tuple(line for line in self.lines if keeps(line)))

    def arrays(self, sizes: tuple[int, int], number: int) -> list[onp.ndarray]:
        """The arguments of its `number`-th call."""
        rng = onp.random.default_rng((self.seed, number))
        return [Domain().draw(FORMS[form](*sizes), dtype, rng) for dtype, form in self.given]


WAYS = (
    *("add in place", "subtract into", "write a part", "reverse", "first row", "drop", "drop", "flush"),
    *("product", "gather"),  # what opens a segment, and what a pass may begin with
)
WRITES = frozenset({"add in place", "subtract into", "write a part"})


def made(seed: int, is_recorded: bool, rows: Sequence[Row] = (), length: int = 24) -> Program:
    """A program of `length` lines, those of `rows` among them."""
    rng = random.Random(seed)
    dtypes = [rng.choice(FLOATS[2:]), *(rng.choice((*FLOATS, *ALL)) for _ in range(3))]
    given = tuple((dtype, 0 if i == 0 else rng.randrange(len(FORMS))) for i, dtype in enumerate(dtypes))
    lines = [line_of(rng, row, rng.choice(row.dtypes)) for row in rows]
    while len(lines) < length:
        kind = rng.random()
        if kind < 0.2:
            way = rng.choice(WAYS)
            lines.append(Line(way, (rng.randrange(99), rng.randrange(99))))
        else:
            row = rng.choice(ROWS_OF_STEPS if kind < 0.8 else ROWS_OF_LINES)
            lines.append(line_of(rng, row, rng.choice(row.dtypes) if rng.random() < 0.7 else None))
    rng.shuffle(lines)
    return Program(given, tuple(lines), seed, is_recorded)


def line_of(rng: random.Random, row: Row, dtype: str | None) -> Line:
    """A call of a row."""
    case = rng.choice(row.cases)
    attrs = dict(case.attrs)
    if row in FAMILIES["reduce"]:
        attrs = {"axis": rng.choice((None, 0, -1)), "keepdims": True}
    elif "axis" in attrs:
        attrs["axis"] = rng.choice((0, -1))
    count = len(case.shapes)
    number = None
    if row.elementwise and row.scalar and count > 1 and rng.random() < 0.2:
        at = rng.randrange(count)
        number = (at, round(rng.uniform(row.domain_of(at).low, row.domain_of(at).high)) or 1)
    return Line(
        "call",
        tuple(rng.randrange(99) for _ in range(count)),
        row,
        dtype,
        tuple(attrs.items()),
        number,
        row.elementwise and rng.random() < 0.15,
    )


# ---- Following


def follow(program: Program, arrays: Sequence[Any], refused: list[Line] | None = None) -> list[Any]:
    """The values that the program leaves. Lines that raise are added to `refused` where it is given."""
    values = list(arrays)
    for line in program.lines:
        try:
            step(line, values, len(arrays), program.is_recorded)
        except REFUSALS:
            if refused is None:
                raise
            refused.append(line)
    return values[len(arrays) :] or [values[0] * 2]


def settled(program: Program, attempt: Callable[[Program, list[Line]], None]) -> Program:
    """The program without the lines that are refused: `attempt` follows it, and adds those to the list."""
    while True:
        refused: list[Line] = []
        attempt(program, refused)
        if not refused:
            return program
        program = program.keeping(lambda line, refused=refused: not any(line is one for one in refused))


def step(line: Line, values: list[Any], given: int, is_recorded: bool) -> None:
    """Follow one line. Only values that the program made are written or dropped; where it is recorded, copies are
    written: `backward` refuses values that were written after an op saved them.
    """
    if line.kind == "flush":
        _core.flush()
        return
    if line.kind == "call":
        values.append(result_of(line, [values[i % len(values)] for i in line.args]))
        return
    if len(values) <= given:
        return
    at = given + line.args[0] % (len(values) - given)
    x, y = values[at], values[line.args[1] % len(values)]
    if line.kind == "drop":
        del values[at]
    elif line.kind == "reverse" and x.ndim:
        values.append(x[..., ::-1])
    elif line.kind == "first row" and x.ndim == 2 and x.shape[0]:
        values.append(x[:1])
    elif line.kind == "gather" and x.ndim:
        values.append(np.take(x, np.arange(x.shape[-1] - 1, -1, -1, dtype="int64"), axis=-1))
    elif line.kind == "product" and x.ndim == 2:
        x = prepared(x, Domain(-1, 1), "float32")
        values.append(np.matmul(np.matmul(x, x.T), x))
    elif line.kind in WRITES and x.ndim:
        target = x * 0.5 if is_recorded else x
        if line.kind == "add in place":
            target += y
        elif line.kind == "subtract into":
            np.subtract(y, target, out=target)
        else:
            target[..., :1] = 0.5
        if is_recorded:
            values.append(target)


def result_of(line: Line, args: list[Any]) -> Any:
    """What a call gives."""
    row = line.row
    assert row is not None
    inputs = [prepared(x, row.domain_of(i), line.dtype) for i, x in enumerate(args)]
    if line.number is not None:
        at, number = line.number
        inputs[at] = float(number) if line.dtype in FLOATS else abs(int(number))
    turned = line.turned and isinstance(inputs[0], np.ndarray) and all_square(inputs)
    if turned:
        inputs = [x.T if isinstance(x, np.ndarray) else x for x in inputs]
    y = call(row, inputs, Case((), dict(line.attrs)))
    return y.T if turned else y


def all_square(inputs: list[Any]) -> bool:
    """Whether the arrays broadcast also when each is transposed."""
    return all(not isinstance(x, np.ndarray) or x.ndim != 1 for x in inputs)


def prepared(x: Any, domain: Domain, dtype: str | None) -> Any:
    """`x` converted to `dtype` and brought into a domain. Kinks need no distance here, where nothing is compared
    with a difference; zero divisors do.
    """
    target = domain.dtype or dtype
    if target and x.dtype.name != target:
        if x.dtype.name in COMPLEX and target not in COMPLEX:
            x = np.absolute(x)
        x = x.astype(target)
    if x.dtype.kind == "b" or domain.dtype:
        return x
    if x.dtype.kind == "c":
        return x / (np.absolute(x) + 1)
    low, high = domain.low, domain.high
    if x.dtype.kind in "iu":
        bounds = onp.iinfo(x.dtype)
        low, high = max(int(onp.ceil(low)), bounds.min), min(int(onp.floor(high)), bounds.max)
        x = np.clip(x, low, high)
        return np.where(x == 0, 1, x) if 0.0 in domain.avoid else x
    x = np.clip(x, low, high)
    return np.where(np.absolute(x) < domain.gap, domain.gap, x) if 0.0 in domain.avoid else x
