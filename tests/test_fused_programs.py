"""Random programs of every op that a fused pass may hold: naive, lazily on 1, 2 and 64 threads, without fusion,
in a compiled block and as an exported file that is imported again. The same bits each time, gradients included.
"""

from __future__ import annotations

import contextlib
import random
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as onp
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gluon.compiled import block
from mxnp import MXNetError, autograd, gluon, np
from specs.drive import engine, examples, fusion, threads
from specs.fused import FUSABLE, ROWS_OF_LINES, ROWS_OF_STEPS, WRITES, Line, Program, follow, made, settled
from specs.row import ALL, COMPLEX, FLOATS

Function = Callable[..., Sequence[Any]]


def run(function: Function, program: Program, arrays: list[onp.ndarray]) -> list[onp.ndarray]:
    """What a program gives for these arrays, and where it is recorded the gradients of the floating ones."""
    inputs = [np.array(x) for x in arrays]
    if not program.is_recorded:
        return [x.asnumpy() for x in function(*inputs)]
    leaves = [x for x in inputs if x.dtype.name in FLOATS]
    for leaf in leaves:
        leaf.attach_grad()
    with autograd.record():
        values = function(*inputs)
        z = sum((x * 0.5).astype("float64").sum() for x in values if x.dtype.name in FLOATS)
    z.backward()
    return [x.asnumpy() for x in [*values, *(leaf.grad for leaf in leaves)]]


def bits(x: onp.ndarray) -> tuple[Any, ...]:
    """What two arrays have in common that are the same, but for which NaN a NaN is."""
    if x.dtype.kind in "fcV":
        x = x.copy()
        x[onp.isnan(x)] = onp.nan
    return x.dtype, x.shape, x.tobytes()


def assert_same(got: list[onp.ndarray], want: list[onp.ndarray], what: str, program: Program) -> None:
    assert len(got) == len(want), (what, program)
    for i, (x, y) in enumerate(zip(got, want, strict=True)):
        assert bits(x) == bits(y), f"{what}: value {i} of {len(want)} of {program}:\n{x!r}\n{y!r}"


SIZES = ((3, 5), (4, 67), (2, 1030), (70, 33), (1, 9), (0, 4))


@contextlib.contextmanager
def no_rule(program: Program, refused: list[Line]) -> Iterator[None]:
    """Lines whose op has no gradient for a dtype, which `backward` says, are refused too."""
    try:
        yield
    except MXNetError as error:
        found = re.match(r"(\w+): no gradient: ", str(error))
        if found is None:
            raise
        refused += [line for line in program.lines if line.row and line.row.core_op == found[1]]


def prepare(program: Program) -> tuple[Program, list[list[onp.ndarray]]]:
    """The program without what is refused, and the arguments of three calls: the third one's sizes are new."""
    sizes = random.Random(program.seed).sample(SIZES, 2)
    calls = [program.arrays(sizes[n // 2], n) for n in range(3)]

    def attempt(program: Program, refused: list[Line]) -> None:
        for arrays in calls:
            with no_rule(program, refused):
                run(lambda *xs: [*follow(program, xs, refused), *(x * x for x in xs)], program, arrays)

    with engine("naive"):
        return settled(program, attempt), calls


def check(program: Program) -> Program:
    """Follow a program in every way; gives it without the lines that were refused."""
    program, calls = prepare(program)

    def eager(*arrays: Any) -> list[Any]:
        # What an argument gets from inside a block is added up before what it gets from outside: here all is inside.
        return [*follow(program, arrays), *(x * x for x in arrays)]

    def runs(function: Function, what: str) -> None:
        for number, (arrays, want) in enumerate(zip(calls, wanted, strict=False)):
            assert_same(run(function, program, arrays), want, f"{what}, call {number}", program)

    with engine("naive"):
        wanted = [run(eager, program, arrays) for arrays in calls]
    for count in (1, 2, 64):
        with threads(count):
            runs(eager, f"{count} threads")
    with fusion(False):
        runs(eager, "without fusion")
    net = block(eager)
    runs(net, "compiled")
    assert net._compiled.reasons() == []
    assert net.runs[0] == 2, "one trace for each signature"
    with fusion(False):
        runs(net, "compiled, without fusion")
    return program


def fails(program: Program, check_: Callable[[Program], Any]) -> bool:
    """Whether a program does not do what it must."""
    try:
        check_(program)
    except Exception:  # noqa: BLE001 - whatever it is, a shorter program that does it is wanted
        return True
    return False


def check_shortened(program: Program, check_: Callable[[Program], Any]) -> Any:
    """`check_`; of a program that fails, the error of the shortest one found by leaving lines out."""
    if not fails(program, check_):
        return check_(program)
    width = len(program.lines)
    while width := width // 2:
        at = 0
        while at < len(program.lines):
            shorter = replace(program, lines=program.lines[:at] + program.lines[at + width :])
            if fails(shorter, check_):
                program = shorter
            else:
                at += width
    return check_(program)


@pytest.mark.parametrize("recorded", [False, True])
def test_every_op_that_fuses(recorded):
    rows = [*ROWS_OF_STEPS, *ROWS_OF_LINES]
    random.Random(5).shuffle(rows)
    used = set()
    for seed in range(0, len(rows), 8):
        program = check_shortened(made(seed, recorded, rows[seed : seed + 8]), check)
        used |= {line.row.core_op for line in program.lines if line.row}
    assert sorted(FUSABLE - used) == []


# Gradients of half types that were added in another order where constants stood between their uses.
@example(145, True)
@example(180, True)
@example(203, True)
@given(st.integers(0, 2**32), st.booleans())
@examples(40)
def test_programs(seed, recorded):
    check_shortened(made(seed, recorded), check)


# ---- As a file


def check_exported(program: Program) -> Program:
    """Export the program and import it again: it gives what the compiled block gives. A line that MXNet's files have
    no operator for is left out, and must be named by the error.
    """
    program, calls = prepare(program)
    files: tuple[Any, Any] | None = None
    while files is None:
        try:
            files = exported(program, calls[0])
        except MXNetError as error:
            program, calls = prepare(without(program, str(error)))
    net, again = files
    for number, arrays in enumerate(calls[:2]):
        got, want = (run(f, program, arrays) for f in (lambda *xs: flat(again(*xs)), net))
        leaves = sum(dtype in FLOATS for dtype, _ in program.given) if program.is_recorded else 0
        values = len(want) - leaves
        assert_same(got[:values], want[:values], f"imported, call {number}", program)
        for x, y in zip(got[values:], want[values:], strict=True):
            assert_near(x, y, f"imported, call {number}, gradient of {program}")
    return program


def exported(program: Program, arrays: list[onp.ndarray]) -> tuple[Any, Any]:
    """The program as a block that was called once, and as the block that its file gives."""
    net = block(lambda *xs: [*follow(program, xs), *(x * x for x in xs)])
    run(net, program, arrays)
    with tempfile.TemporaryDirectory() as folder:
        files = net.export(Path(folder) / "net")
        names = [f"data{i}" for i in range(len(program.given))]
        return net, gluon.SymbolBlock.imports(files[0], names, files[1])


def assert_near(got: onp.ndarray, want: onp.ndarray, what: str) -> None:
    """Gradients that several uses add to: a file's operators are not one for one the calls they stand for (casts are
    added, constants folded), so that the uses are met, and their gradients added, in another order.
    """
    assert (got.dtype, got.shape) == (want.dtype, want.shape), what
    scale = max(1.0, onp.abs(want[onp.isfinite(want)]).max(initial=0))
    onp.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3 * scale, err_msg=what)


def flat(values: Any) -> list[Any]:
    return list(values) if isinstance(values, list | tuple) else [values]


def without(program: Program, error: str) -> Program:
    """The program without the lines that make what an export refused to write."""
    found = re.search(r"no operator for mxnp's '(\w+)'", error)
    if found is not None:
        fewer = program.keeping(lambda line: line.row is None or line.row.core_op != found[1])
    elif "it writes to parts of arrays" in error:
        fewer = program.keeping(lambda line: line.kind not in WRITES)
    else:
        raise AssertionError(error)
    assert len(fewer.lines) < len(program.lines), (error, program)
    return fewer


# Written as other operators, whose last digits are others.
REWRITTEN = {"exp2": "2 ** x", "silu": "x sigmoid(x)"}


def writable(program: Program) -> Program:
    """The program without the dtypes that MXNet's files do not have, and without REWRITTEN. Where it is recorded,
    without conversions to half types and integers too: in those, sums of gradients depend on their order by more
    than last digits.
    """
    kept = ("float32", "float64") if program.is_recorded else tuple(d for d in ALL if d not in COMPLEX)
    given = tuple((dtype if dtype in kept else "float64", form) for dtype, form in program.given)
    dtypes = {None, *kept}
    return replace(program, given=given).keeping(
        lambda line: (
            line.dtype in dtypes
            and dict(line.attrs).get("dtype") in dtypes
            and (line.row is None or line.row.core_op not in REWRITTEN)
        )
    )


@given(st.integers(0, 2**32), st.booleans())
@examples(40)
def test_imported_programs(seed, recorded):
    check_shortened(writable(made(seed, recorded)), check_exported)
