"""Every spec row against its reference: dtypes, shapes, layouts, scalars, special values, `out`, aliasing, engines,
instruction sets, and the errors of bad input.

By default each row and dtype runs with its layouts taken in turn; `--slow` runs all of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as onp
import pytest

from mxnp import MXNetError, _core, np, npx
from specs import ROWS
from specs.drive import (
    LAYOUTS,
    call,
    check,
    constant_lines,
    engine,
    function,
    outputs,
    reference,
    rows_and_dtypes,
    same_bits,
)
from specs.row import COMPLEX, FLOATS, Bad, Case, Row
from specs.tolerance import assert_close, numpy_dtype

ELEMENTWISE = rows_and_dtypes(lambda row: row.elementwise)
WITH_OUT = rows_and_dtypes(lambda row: row.out)


def turn(row: Row, dtype: str) -> int:
    """Where the layouts start for this row and dtype: spreads them evenly, the same in every run."""
    return (ROWS.index(row) + row.dtypes.index(dtype)) % len(LAYOUTS)


@pytest.mark.parametrize(("row", "dtype"), rows_and_dtypes())
def test_values(row, dtype):
    layouts = list(LAYOUTS.items())
    for i, case in enumerate(row.cases):
        name, layout = layouts[(turn(row, dtype) + i) % len(layouts)]
        inputs = row.draw(case, dtype)
        if row.writes and name == "repeated":
            name, layout = "dense", LAYOUTS["dense"]
        if name == "repeated" and not row.domain[0].distinct:
            inputs = [constant_lines(x) for x in inputs]
        check(row, inputs, case, dtype, call(row, [layout(x) for x in inputs], case), name)


@pytest.mark.slow
@pytest.mark.parametrize(("row", "dtype"), rows_and_dtypes())
def test_layouts(row, dtype):
    for name, layout in LAYOUTS.items():
        if row.writes and name == "repeated":
            continue
        for case in row.cases:
            inputs = row.draw(case, dtype)
            if name == "repeated" and not row.domain[0].distinct:
                inputs = [constant_lines(x) for x in inputs]
            check(row, inputs, case, dtype, call(row, [layout(x) for x in inputs], case), name)


SPECIAL = (0.0, -0.0, 1.0, -1.0, onp.nan, onp.inf, -onp.inf, 3e-5, -700.0, 1e4, -1e8, 1e30)


@pytest.mark.parametrize(
    ("row", "dtype"), [p for p in ELEMENTWISE if p.values[0].specials and p.values[1] in FLOATS]
)
def test_special_values(row, dtype):
    kinds = numpy_dtype(dtype)
    count = len(row.cases[0].shapes)
    with onp.errstate(over="ignore"):
        points = onp.array(SPECIAL).astype(kinds)
    inputs = [onp.ascontiguousarray(x.ravel()) for x in onp.meshgrid(*[points] * count)]
    if row.domain[0].dtype:
        pytest.skip("the first input is a mask")
    case = Case(tuple(x.shape for x in inputs))
    got = outputs(call(row, [np.array(x) for x in inputs], case))[0]
    want = reference(row, inputs, case)[0]
    assert_close(got, want, row.loose, f"{row} {dtype} at {[x.tolist() for x in inputs]}")


@pytest.mark.parametrize(
    ("row", "dtype"), [p for p in ELEMENTWISE if len(p.values[0].cases[0].shapes) == 2 and p.values[0].scalar]
)
def test_python_scalars(row, dtype):
    """A Python number on either side counts as an array of the other side's dtype."""
    case = row.cases[0]
    x, y = row.draw(case, dtype)
    for keep in (0, 1):
        one = (y if keep == 0 else x).ravel()[0]
        weak = one.item() if dtype != "bfloat16" else float(one)
        strong = onp.full(x.shape, one, numpy_dtype(dtype))
        args, full = ([np.array(x), weak], [x, strong]) if keep == 0 else ([weak, np.array(y)], [strong, y])
        assert same_bits(
            outputs(call(row, args, case))[0], outputs(call(row, [np.array(a) for a in full], case))[0]
        )


@pytest.mark.parametrize("row", [r for r in ROWS if r.elementwise and len(r.cases[0].shapes) == 2], ids=str)
def test_mixed_dtypes(row):
    """Operands of two dtypes give what both converted to the common dtype give."""
    case = row.cases[1]
    for a in row.dtypes:
        for b in row.dtypes:
            common = _core.promote_types(a, b).name
            if a == b or common not in row.dtypes:
                continue
            x, y = row.draw(case, a)[0], row.draw(case, b)[1]
            mixed = call(row, [np.array(x), np.array(y)], case).asnumpy()
            plain = call(row, [np.array(x).astype(common), np.array(y).astype(common)], case).asnumpy()
            assert same_bits(mixed, plain), f"{row} {a} {b}"


@pytest.mark.parametrize(("row", "dtype"), WITH_OUT)
def test_out(row, dtype):
    for case in row.cases[:3]:
        inputs = row.draw(case, dtype)
        arrays = [np.array(x) for x in inputs]
        want = outputs(call(row, arrays, case))[0]
        out = np.zeros(want.shape, dtype=want.dtype)
        assert call(row, arrays, case, out=out) is out
        assert same_bits(out.asnumpy(), want), f"{row} ({case})"
        if not want.ndim:
            continue
        big = np.zeros([2 * n for n in want.shape], dtype=want.dtype)
        view = big[tuple(slice(None, None, -2) for _ in want.shape)]
        call(row, arrays, case, out=view)
        assert same_bits(view.asnumpy(), want), f"{row} ({case}) into a view"
        assert onp.count_nonzero(big.asnumpy()) == onp.count_nonzero(want), "nothing else is written"


@pytest.mark.parametrize("row", [r for r in ROWS if r.elementwise and r.result == "same"], ids=str)
def test_out_of_another_shape_or_kind(row):
    dtype = next(d for d in row.dtypes if d != "bool")
    case = Case(((3,),) * len(row.cases[0].shapes))
    arrays = [np.array(x) for x in row.draw(case, dtype)]
    with pytest.raises(ValueError, match=r"could not be broadcast|shape"):
        call(row, arrays, case, out=np.zeros((4,), dtype=dtype))
    if dtype in FLOATS + COMPLEX:
        with pytest.raises(TypeError, match=r"[Cc]annot cast"):
            call(row, arrays, case, out=np.zeros((3,), dtype="int32"))


@pytest.mark.parametrize(("row", "dtype"), [p for p in ELEMENTWISE if p.values[0].result == "same"])
def test_aliasing(row, dtype):
    """Reads see what was there before the write, however the memory overlaps."""
    case = Case(((6, 5),) * len(row.cases[0].shapes))
    inputs = row.draw(case, dtype)
    want = outputs(call(row, [np.array(x) for x in inputs], case))[0]

    x, *others = (np.array(x) for x in inputs)
    call(row, [x, *others], case, out=x)
    assert same_bits(x.asnumpy(), want), f"{row}: out is the first input"

    base = onp.zeros((7, 5), inputs[0].dtype)
    for source, target in ((slice(0, 6), slice(1, 7)), (slice(1, 7), slice(0, 6))):
        base[source] = inputs[0]
        shifted = np.array(base)
        call(row, [shifted[source], *others], case, out=shifted[target])
        assert same_bits(shifted[target].asnumpy(), want), f"{row}: out overlaps the first input"

    base[:6] = inputs[0]
    flipped = np.array(base)
    call(row, [flipped[:6], *others], case, out=flipped[5::-1])
    assert same_bits(flipped[5::-1].asnumpy(), want), f"{row}: out is the first input backwards"


@pytest.mark.parametrize("row", [r for r in ROWS if r.elementwise and r.name.startswith("np.")], ids=str)
def test_where(row):
    dtype = "float32" if "float32" in row.dtypes else row.dtypes[0]
    case = Case(((3, 4),) * len(row.cases[0].shapes))
    arrays = [np.array(x) for x in row.draw(case, dtype)]
    if not isinstance(function(row), _core.Ufunc):
        pytest.skip("not a universal function")
    want = outputs(call(row, arrays, case))[0]
    mask = onp.array([True, False, True, True])
    out = np.zeros((3, 4), dtype=want.dtype)
    call(row, arrays, case, out=out, where=np.array(mask))
    assert same_bits(out.asnumpy(), onp.where(mask, want, onp.zeros((), want.dtype)))


@pytest.mark.parametrize(("row", "dtype"), rows_and_dtypes())
def test_engines_agree(row, dtype):
    """Alone, and inside a longer expression that can be fused: bit for bit."""

    def run():
        for case in row.cases:
            inputs = [np.array(x) for x in row.draw(case, dtype)]
            alone = outputs(call(row, inputs, case))
            chained = ()
            if row.elementwise and dtype != "bool":
                first = np.add(inputs[0], inputs[0]) - inputs[0]
                y = call(row, [first, *inputs[1:]], case)
                chained = outputs([np.multiply(y, y), np.sum(np.multiply(y, y), axis=None), y])
            yield case, alone + chained

    with engine("threaded"):
        lazy = list(run())
    with engine("naive"):
        plain = list(run())
    for (case, got), (_, want) in zip(lazy, plain, strict=True):
        assert all(map(same_bits, got, want)), f"{row} ({case}) {dtype}"


ISAS = ("baseline", "avx2", "avx512")


@pytest.mark.parametrize("isa", ISAS)
def test_each_isa(isa):
    """A sample of the values again, in a process that is held to one instruction set."""
    if os.environ.get("MXNP_ISA"):
        pytest.skip("this process is already held to one")
    env = {**os.environ, "MXNP_ISA": isa}
    probe = subprocess.run(
        [sys.executable, "-c", "from mxnp import np; np.ones((2,)).wait_to_read()"],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    if "is ignored" in probe.stderr:
        pytest.skip(f"this machine has no {isa}")
    names = "float32 or float64 or int32 or uint8 or bool"
    command = [
        "-m",
        "pytest",
        "-q",
        "-x",
        "-k",
        f"test_values and ({names})",
        "-p",
        "no:cacheprovider",
        __file__,
    ]
    root = Path(__file__).parent.parent
    done = subprocess.run(
        [sys.executable, *command], env=env, cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]


BAD = [pytest.param(bad, id=f"{row.name}-{i}") for row in ROWS for i, bad in enumerate(row.bad)]


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("kind", ["threaded", "naive"])
def test_bad_input(bad: Bad, kind):
    """The error comes on the line of the call, as NumPy's class and as MXNet's, and leaves nothing behind."""
    with engine(kind):
        with pytest.raises(bad.error, match=bad.match) as caught:
            bad.call(np, npx)
        assert isinstance(caught.value, MXNetError)
        npx.waitall()


@pytest.mark.parametrize("row", [r for r in ROWS if r.elementwise], ids=str)
def test_wrong_calls(row):
    """Too few and too many arrays, an unknown keyword, and things that are no arrays."""
    f = function(row)
    count = len(row.cases[0].shapes)
    dtype = "float32" if "float32" in row.dtypes else row.dtypes[0]
    arrays = [np.ones((2,), dtype=dtype)] * count
    with pytest.raises(TypeError):
        f(*arrays[:-1])
    with pytest.raises(TypeError):
        f(*arrays, *arrays, *arrays, *arrays)
    with pytest.raises(TypeError, match="colour"):
        f(*arrays, colour="red")
    with pytest.raises((TypeError, ValueError)):
        f(*[object()] * count)


NUMBERS_AS_ARRAYS = [
    ("squeeze", {}, 3.0),
    ("flip", {}, 3.0),
    ("tile", {"reps": 4}, [3.0] * 4),
    ("broadcast_to", {"shape": (2,)}, [3.0] * 2),
    ("reshape", {"shape": (1,)}, [3.0]),
    ("expand_dims", {"axis": 0}, [3.0]),
    ("repeat", {"repeats": 2}, [3.0] * 2),
    ("transpose", {}, 3.0),
    ("sum", {}, 3.0),
    ("sort", {"axis": None}, [3.0]),
    ("cumsum", {}, [3.0]),
    ("copy", {}, 3.0),
]


@pytest.mark.parametrize(("name", "attrs", "want"), NUMBERS_AS_ARRAYS, ids=[c[0] for c in NUMBERS_AS_ARRAYS])
def test_a_python_number_is_an_array_without_axes(name, attrs, want):
    assert getattr(np, name)(3, **attrs).tolist() == want


@pytest.mark.parametrize("make", [np.zeros, np.ones, np.empty])
@pytest.mark.parametrize("shape", [2.5, onp.float64(2.5), (1.5, 2), onp.array([0.5])])
def test_sizes_are_whole_numbers(make, shape):
    with pytest.raises(TypeError):
        make(shape)
