"""What follows a heavy op runs over each part of its result as soon as that is there: bit for bit the same as alone.

Each program is a product or a convolution and what may join it: bias, activation, residual, in-place writes, several
results. It runs fused on 1, 2 and 64 threads, unfused, and naively.
"""

from __future__ import annotations

from typing import Any

import numpy as onp
import pytest

import mxnp as mx
from mxnp import _core, autograd, np, npx
from specs.drive import engine, threads
from specs.tolerance import numpy_dtype


def normal(seed: int, *shape: int, dtype: str = "float32") -> np.ndarray:
    """Normal numbers; a fresh array, so that nothing else refers to it."""
    return np.array(onp.random.default_rng(seed).standard_normal(shape).astype(numpy_dtype(dtype)))


def everywhere(program: Any) -> list[onp.ndarray]:
    """The program's results, which are the same however it runs."""
    with engine("naive"):
        want = [x.asnumpy() for x in program()]

    def check(what: str) -> None:
        got = [x.asnumpy() for x in program()]
        for i, (x, y) in enumerate(zip(got, want, strict=True)):
            assert (x.dtype, x.shape) == (y.dtype, y.shape), (what, i)
            assert x.tobytes() == y.tobytes(), f"{what}: result {i}"

    with engine("threaded"):
        for count in (1, 2, 64):
            with threads(count):
                for _ in range(3):  # a plan is kept from the second time on
                    check(f"{count} threads")
        before = _core.set_fusion(False)
        try:
            check("unfused")
        finally:
            _core.set_fusion(before)
    return want


SIZES = [(1, 1, 1), (3, 5, 4), (1, 300, 700), (128, 10, 256), (130, 70, 300), (200, 1, 90), (5, 3, 9000)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16", "int32"])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_bias_and_activation(sizes, dtype):
    m, n, k = sizes

    def program():
        x, w, b = (normal(i, *s, dtype=dtype) for i, s in enumerate([(m, k), (n, k), (n,)]))
        return [np.maximum(x @ w.T + b, 0)]

    (found,) = everywhere(program)
    assert found.shape == (m, n)


@pytest.mark.parametrize("act", ["relu", "sigmoid", "tanh", "softrelu"])
@pytest.mark.parametrize("flatten", [True, False])
def test_dense_layers(act, flatten):
    def program():
        x, w, b = normal(0, 6, 7, 30), normal(1, 40, 210 if flatten else 30), normal(2, 40)
        y = npx.fully_connected(x, w, b, num_hidden=40, flatten=flatten)
        return [npx.activation(y, act_type=act)]

    everywhere(program)


def test_what_is_observed_is_written():
    """The product, a value on the way and two results, one of them of another dtype."""

    def program():
        y = normal(0, 70, 90) @ normal(1, 90, 50)
        z = y * 2 + normal(2, 70, 1)
        return [y, z, np.exp(-z), z > 0, z.astype("float64") - y]

    everywhere(program)


def test_residuals():
    """Of any layout; also the product's own operand, whose memory must live until the last block has read it."""

    def program():
        x, w = normal(0, 130, 130), normal(1, 130, 130)
        turned = normal(2, 130, 130).T
        x = np.maximum(x @ w + x, 0)
        x = x @ w + turned
        w = w - (x @ w) * 1e-3
        return [x, w, x.T @ w + x[::-1]]

    everywhere(program)


def test_writes_into_arrays():
    """In place, into the operands, into a view, and into what the result is added to."""

    def program():
        x, w, total = normal(0, 130, 130), normal(1, 130, 130), normal(2, 130, 130)
        y = x @ w
        y += total
        y *= 0.5
        total += x @ w
        x[...] = np.tanh(x @ w * 0.1)
        w[:, ::2] = (x @ w)[:, ::2] * 0.5
        np.add(x @ w, 1, out=total[...])
        return [x, w, y, total]

    everywhere(program)


@pytest.mark.parametrize(
    "shapes", [((5, 3, 40), (5, 40, 30)), ((2, 1, 9, 8), (3, 8, 7)), ((40,), (4, 40, 7)), ((4, 7, 40), (40,))]
)
def test_batches_and_vectors(shapes):
    def program():
        y = normal(0, *shapes[0]) @ normal(1, *shapes[1])
        return [np.maximum(y * normal(2, *y.shape[-1:]), 0), (y + 1).reshape(-1) * 2]

    everywhere(program)


def test_what_is_broadcast_or_summed_is_no_tail():
    def program():
        y = normal(0, 40, 30) @ normal(1, 30, 20)
        z = normal(2, 30, 20) @ normal(3, 20, 20)
        return [y * normal(4, 3, 1, 1), np.sum(z + 1, axis=0), np.max(np.abs(z))]

    everywhere(program)


def test_empty_results():
    def program():
        return [
            np.maximum(normal(0, *x) @ normal(1, *y) + 1, 0) for x, y in [((0, 3), (3, 4)), ((2, 0), (0, 3))]
        ]

    assert everywhere(program)[1].tolist() == [[1.0] * 3] * 2


def test_not_finite():
    def program():
        x = normal(0, 70, 80)
        x[3, 5], x[4, 6] = onp.nan, onp.inf
        return [np.maximum(x @ normal(1, 80, 70) + normal(2, 70), 0)]

    (found,) = everywhere(program)
    assert onp.isnan(found[3]).all()
    assert onp.isfinite(onp.delete(found, [3, 4], 0)).all()


CONVOLUTIONS = {
    "rows in registers": ((3, 4, 14, 15), (9, 4, 3, 3), {"pad": (1, 1)}),
    "columns": ((2, 40, 7, 5), (30, 40, 3, 3), {"pad": (1, 1)}),
    "strides": ((2, 3, 21, 33), (8, 3, 3, 3), {"stride": (2, 2)}),
    "pointwise": ((2, 20, 9, 9), (40, 20, 1, 1), {}),
    "by channel": ((2, 6, 12, 12), (12, 1, 3, 3), {"num_group": 6}),
    "groups": ((2, 6, 12, 16), (8, 3, 3, 3), {"num_group": 2}),
    "one axis": ((2, 3, 50), (5, 3, 4), {}),
    "three axes": ((1, 2, 5, 6, 7), (4, 2, 2, 3, 3), {}),
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name, dtype):
    shape, weight, attrs = CONVOLUTIONS[name]

    def program():
        x, w, b = (normal(i, *s, dtype=dtype) for i, s in enumerate([shape, weight, weight[:1]]))
        y = npx.convolution(x, w, b, kernel=weight[2:], num_filter=weight[0], **attrs)
        scale = normal(3, 1, weight[0], *(1 for _ in weight[2:]), dtype=dtype)
        return [
            npx.relu(y),
            npx.sigmoid(npx.convolution(x, w, b, kernel=weight[2:], num_filter=weight[0], **attrs) * scale)
            + y,
        ]

    everywhere(program)


def test_training():
    """Layers that train: gradients go where they are wanted, whatever has joined the products."""

    def program():
        x, w, b, v = normal(0, 40, 30), normal(1, 50, 30), normal(2, 50), normal(3, 10, 50)
        for p in (w, b, v):
            p.attach_grad()
        for _ in range(2):
            with autograd.record():
                h = npx.relu(npx.fully_connected(x, w, b, num_hidden=50))
                loss = np.sum(np.tanh(npx.fully_connected(h, v, num_hidden=10, no_bias=True)) ** 2)
            loss.backward()
            for p in (w, b, v):
                p -= 0.01 * p.grad
        return [loss, w, b, v, w.grad]

    everywhere(program)


TABLES = [(50, 64), (300, 1), (7, 3, 5), (40, 3000)]


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64"])
@pytest.mark.parametrize("shape", TABLES, ids=str)
@pytest.mark.parametrize("count", [1, 6, 500])
def test_what_follows_gathered_rows(shape, dtype, count):
    rows = onp.random.default_rng(1).integers(0, shape[0], (count, 2))

    def program():
        table, i = normal(0, *shape, dtype=dtype), np.array(rows)
        scale = normal(3, *shape[1:], dtype=dtype)
        taken = np.take(table, i, axis=0) * scale + 1
        indexed = np.maximum(table[i], 0) - scale
        across = np.take(table.T, i[:, 0], axis=-1, mode="wrap") * 2
        return [taken, indexed, across]

    taken, *_ = everywhere(program)
    assert taken.shape == (count, 2, *shape[1:])


def test_an_embedding_with_positions_is_one_kernel():
    ids, table, places = np.array([[1, 2, 0], [2, 2, 1]], dtype="int64"), normal(0, 3, 64), normal(1, 3, 64)

    def program():
        return [npx.embedding(ids, table, input_dim=3, output_dim=64) * 8 + places]

    everywhere(program)
    with engine("threaded"):
        shown = mx.engine.explain(program)
    assert [group["label"] for group in shown.groups] == ["embedding+multiply+add"]


def test_an_index_out_of_range_writes_nothing_of_what_follows():
    table, target = normal(0, 3, 4), np.zeros((2, 4))
    target += np.take(table, np.array([0, 3]), axis=0, mode="raise") * 2
    with pytest.raises(IndexError, match="take"):
        target.wait_to_read()
    assert target.tolist() == [[0.0] * 4] * 2
