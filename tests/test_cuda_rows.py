"""The CUDA form of each op, run with NumPy and SciPy in cupy's place, against the CPU op.

A queue that executes late stands in for the device's: rows are issued first, in order, and run afterwards, on another
thread and outside every lock of the engine, as they would be on a stream.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import types

import numpy as onp
import pytest

from mxnp import _core, _cuda, np
from specs import ROWS
from specs.drive import sampled
from specs.row import Case, Row
from specs.tolerance import assert_close, numpy_dtype


class LateQueue:
    """Rows in the order they were issued, run when `finish` is called; a row that issues another one fails."""

    def __init__(self, xp: types.ModuleType) -> None:
        self.xp, self.issued, self.running = xp, [], False

    def push(self, row, inputs, attrs):
        assert not self.running, "a row issues nothing while it runs"
        result: list = []
        self.issued.append((row, inputs, attrs, result))
        return result

    def finish(self):
        errors: list[BaseException] = []

        def run():
            self.running = True
            try:
                for row, inputs, attrs, result in self.issued:
                    with onp.errstate(all="ignore"):
                        result.append(row(self.xp, *inputs, **attrs))
            except BaseException as error:  # noqa: BLE001 - handed to the waiting thread
                errors.append(error)
            finally:
                self.running = False

        worker = threading.Thread(target=run)
        worker.start()
        worker.join()
        if errors:
            raise errors[0]


def runnable(row: Row) -> bool:
    return row.core_op in _cuda.ROWS and not isinstance(_cuda.ROWS[row.core_op], _cuda.CpuOnly)


PARAMS = [
    pytest.param(row, dtype, id=f"{row.name}-{i}-{dtype}")
    for i, row in enumerate(ROWS)
    if runnable(row)
    for dtype in row.dtypes
    if dtype not in {"bfloat16"}
]


def attributes(case: Case) -> dict:
    """The keywords as the row gets them: tuples for lists, NumPy's dtypes for names."""
    return {k: numpy_dtype(v) if k == "dtype" else v for k, v in case.core_attrs().items()}


@pytest.mark.parametrize(("row", "dtype"), sampled(PARAMS, 2))
def test_rows_give_what_the_cpu_gives(row, dtype):
    cuda = _cuda.ROWS[row.core_op]
    queue, waiting = LateQueue(onp), []
    for case in row.cases:
        if case.core_attrs() is None:
            continue
        op = _core.op(row.core_op)
        inputs = row.draw(case, dtype)
        arrays = [np.array(x) for x in inputs]
        want = op(*arrays, **case.core_attrs())
        want = tuple(arrays[i] for i in row.written) or (want if isinstance(want, tuple) else (want,))
        own = converted(row, [x.copy() for x in inputs], want[0])
        waiting.append((case, want, own, queue.push(cuda, own, attributes(case))))
    queue.finish()
    for case, want, own, (result,) in waiting:
        found = tuple(own[i] for i in row.written) or (result if isinstance(result, tuple) else (result,))
        for y, expected in zip(found, want, strict=False):  # hidden outputs follow the visible ones
            y = onp.asarray(y).astype(expected.dtype)
            assert_close(y, expected.asnumpy(), 2 * row.loose, f"{row} ({case}) {dtype}")


# Ops that compute in the dtype of their result.
IN_RESULT = {"mean", "var", "std", "sum", "prod", "cumsum", "cumprod", "matmul"}


def converted(row: Row, inputs, result):
    """The inputs in the dtypes that `infer` gives: the result's where the op computes in it, int64 for indices."""
    if row.core_op == "one_hot":
        return [x.astype("int64") for x in inputs]
    if row.core_op not in IN_RESULT and row.result != "float":
        return inputs
    return [x.astype(result.dtype) if row.domain_of(i).dtype is None else x for i, x in enumerate(inputs)]


@pytest.mark.parametrize(
    ("op", "row"), [(n, r) for n, r in _cuda.ROWS.items() if isinstance(r, _cuda.CpuOnly)]
)
def test_cpu_only_says_why(op, row):
    assert len(row.why) > 20, f"{op}: a reason is a sentence"
    with pytest.raises(NotImplementedError, match="runs on the CPU only"):
        row(onp)


# Rows of ops that no public function reaches alone.
DIRECT = [
    ("scatter_add", [(4,), (4,)], {"axis": 0, "shape": (3,)}, 1),
    ("scatter_add", [(2, 4, 5), (4,)], {"axis": 1, "shape": (2, 3, 5)}, 1),
    ("index_get", [(3, 4), (5,), (5,)], {"axis": 0}, 1),
    ("index_get", [(2, 3, 3), (2, 1), (3,)], {"axis": 1}, 1),
    ("index_assign", [(3, 4), ()], {"axis": 0}, 2),
    ("scatter_along", [(2, 4), (2, 4)], {"axis": 1, "size": 3}, 1),
    ("scatter_along", [(4, 2), (4, 2)], {"axis": 0, "size": 5, "mode": "clip"}, 1),
]


@pytest.mark.parametrize(("op", "shapes", "attrs", "first"), DIRECT)
def test_private_rows(op, shapes, attrs, first):
    rng = onp.random.default_rng(7)
    inputs = [rng.integers(-3, 3, s) if i >= first else rng.normal(size=s) for i, s in enumerate(shapes)]
    if op == "index_assign":
        inputs.append(onp.array([2, 0]))
    want = _core.op(op)(*map(np.array, inputs), **attrs).asnumpy()
    got = _cuda.ROWS[op](onp, *inputs, **attrs)
    assert_close(onp.asarray(got).astype(want.dtype), want, 4, op)


@pytest.mark.parametrize("mask", [[True, False, True], [[True, False], [False, False], [True, True]]])
def test_masks(mask):
    mask, x = onp.array(mask), onp.arange(6.0).reshape(3, 2)
    count = int(mask.sum())
    got = _cuda.ROWS["mask_get"](onp, x, mask, count=count)
    assert_close(got, _core.op("mask_get")(np.array(x), np.array(mask), count=count).asnumpy(), 4, "mask_get")
    spread = _core.op("mask_spread")(np.array(got), np.array(mask)).asnumpy()
    assert_close(_cuda.ROWS["mask_spread"](onp, got, mask), spread, 4, "mask_spread")
    changed = np.array(x)
    changed[np.array(mask)] = -1.0 * np.array(got)
    assert _cuda.ROWS["mask_put"](onp, x, -got, mask, count=count) == ()
    assert_close(x, changed.asnumpy(), 4, "mask_put")


BASIC = [
    ((1,), (1,)),
    ((slice(1, 3),), ((1, 1, 2),)),
    ((slice(None, None, -1), 0), ((2, -1, 3), 0)),
    ((None, slice(0, 0)), (None, (0, 1, 0))),
    ((slice(2, None, -2), slice(1, 4, 2)), ((2, -2, 2), (1, 2, 2))),
]


@pytest.mark.parametrize(("index", "items"), BASIC)
def test_basic_indices_arrive_as_the_cores_items(index, items):
    x = onp.arange(12).reshape(3, 4)
    rows = _cuda.ROWS
    onp.testing.assert_array_equal(rows["slice"](onp, x, index=items), x[index])
    part = x[index] * 10
    zeroed = onp.zeros_like(x)
    zeroed[index] = part
    onp.testing.assert_array_equal(rows["slice_zero"](onp, part, index=items, shape=x.shape), zeroed)
    assigned = x.copy()
    assigned[index] = part
    onp.testing.assert_array_equal(rows["slice_assign"](onp, x, part, index=items), assigned)


def test_mxnp_imports_no_cupy():
    code = "import sys, mxnp, mxnp._cuda; assert not [m for m in sys.modules if m.split('.')[0] in {'cupy', 'cupyx'}]"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_losses_of_sequences_have_the_gradients_of_the_cpu():
    rng = onp.random.default_rng(0)
    for i in range(40):
        steps, samples, classes = int(rng.integers(1, 7)), int(rng.integers(0, 4)), int(rng.integers(2, 5))
        width, blank = int(rng.integers(0, steps + 1)), int(rng.integers(0, classes))
        labels = rng.integers(0, classes - 1, (samples, width))
        inputs = [
            rng.normal(size=samples),
            rng.normal(size=(steps, samples, classes)),
            onp.where(labels >= blank, labels + 1, labels),
            rng.integers(0, steps + 1, samples),
            rng.integers(0, width + 1, samples),
        ]
        attrs = {"blank": blank, "padding": None if i % 2 else (blank + 1) % classes}
        for name, given in (("ctc", inputs[1:]), ("ctc_grad", inputs)):
            wanted = _core.call(name, [np.array(x) for x in given], **attrs).asnumpy()
            with onp.errstate(all="ignore"):
                found = _cuda.ROWS[name](onp, *given, **attrs)
            onp.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)
