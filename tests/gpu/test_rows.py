"""The CUDA rows with cupy itself, against the CPU; the stand-in's run is tests/test_cuda_rows.py."""

from __future__ import annotations

from pathlib import Path

import numpy as onp
import pytest

from mxnp import _core, _cuda, np
from specs import ROWS
from specs.row import Row
from specs.tolerance import assert_close
from test_cuda_rows import attributes, converted, runnable

pytestmark = pytest.mark.gpu
INDEX = Path(__file__).parents[2] / "cuda" / "index.cu"


def to_device(x):
    import cupy

    return cupy.asarray(x)


@pytest.mark.parametrize("row", [row for row in ROWS if runnable(row)], ids=str)
def test_rows_on_a_device(row: Row):
    import cupy

    for dtype in (d for d in row.dtypes if d != "bfloat16"):
        for case in row.cases:
            if case.core_attrs() is None:
                continue
            inputs = row.draw(case, dtype)
            arrays = [np.array(x) for x in inputs]
            want = _core.op(row.core_op)(*arrays, **case.core_attrs())
            want = tuple(arrays[i] for i in row.written) or (want if isinstance(want, tuple) else (want,))
            own = [to_device(x) for x in converted(row, inputs, want[0])]
            result = _cuda.ROWS[row.core_op](cupy, *own, **attributes(case))
            found = tuple(own[i] for i in row.written) or (result if isinstance(result, tuple) else (result,))
            for y, expected in zip(found, want, strict=False):
                y = cupy.asnumpy(y).astype(expected.dtype)
                assert_close(y, expected.asnumpy(), 4 * row.loose, f"{row} ({case}) {dtype}")


def test_take_on_a_device():
    import cupy

    kernel = cupy.RawModule(code=INDEX.read_text(encoding="utf-8")).get_function("mxnp_take_4_int64")
    source = cupy.arange(12, dtype="float32").reshape(4, 3)
    indices = cupy.asarray([2, -1, 0, 9])
    out, fault = cupy.full((4, 3), 77, "float32"), cupy.zeros(3, "int64")
    kernel(
        (2,), (64,), (source, indices, out, *map(onp.int64, (1, 4, 3, 4)), onp.int32(0), onp.uint32(0), fault)
    )
    onp.testing.assert_array_equal(cupy.asnumpy(out[:3]), cupy.asnumpy(source)[[2, 3, 0]])
    onp.testing.assert_array_equal(cupy.asnumpy(out[3]), [77] * 3)
    assert fault.tolist()[1:] == [9, 4]
