"""Running sums and products against NumPy in float64: every layout and length, long lines in blocks, the same bits for
any number of threads.
"""

from __future__ import annotations

import numpy as onp
import pytest

import mxnp
from mxnp import np

SHAPES = [
    (0,),
    (1,),
    (2047,),
    (2048,),
    (2049,),
    (50_001,),
    (3, 5000),
    (70, 40),
    (40, 3, 33),
    (20, 2048),
    (9, 6000),
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int32", "int64", "float16", "float32", "float64", "complex64"]
)
def test_sums_along_every_axis(shape, dtype):
    rng = onp.random.default_rng(len(shape))
    x = rng.integers(0, 3, shape) if dtype in {"bool", "float16"} else rng.integers(0, 100, shape)
    if dtype == "float16":
        x = x % 2 * (rng.random(shape) < 0.01)
    x = x.astype(dtype)
    for axis in (None, *range(len(shape))):
        want = onp.cumsum(x, axis=axis)
        found = np.cumsum(np.array(x), axis=axis).asnumpy()
        onp.testing.assert_array_equal(found, want)
        assert found.dtype == want.dtype
    turned = np.array(x).T[::-1]
    for axis in range(len(shape)):
        onp.testing.assert_array_equal(
            np.cumsum(turned, axis=axis).asnumpy(), onp.cumsum(x.T[::-1], axis=axis)
        )


@pytest.mark.parametrize("shape", SHAPES)
def test_products_along_every_axis(shape):
    rng = onp.random.default_rng(3)
    x = (1 + rng.standard_normal(shape) * 1e-3).astype("float32")
    for axis in (None, *range(len(shape))):
        want = onp.cumprod(x.astype("float64"), axis=axis)
        onp.testing.assert_allclose(np.cumprod(np.array(x), axis=axis).asnumpy(), want, rtol=2e-4)


def test_sums_grow_where_elements_are_positive():
    """Blocks end where the next ones begin: rounding never takes a step back, which searches rely on."""
    x = onp.random.default_rng(0).random(300_000).astype("float32") * 1e-3
    found = np.cumsum(np.array(x)).asnumpy()
    assert (onp.diff(found) >= 0).all()
    onp.testing.assert_allclose(found, onp.cumsum(x.astype("float64")), rtol=1e-5)


def test_products_of_long_lines_do_not_overflow_within():
    """Zero stays zero, however large the later elements are together."""
    x = onp.full(10_000, 1e30, "float32")
    x[0] = 0
    assert (np.cumprod(np.array(x)).asnumpy() == 0).all()


def test_special_values_and_signs():
    x = onp.full(5000, -0.0, "float32")
    found = np.cumsum(np.array(x)).asnumpy()
    assert onp.signbit(found).all()
    x[3000] = onp.inf
    x[4000] = -onp.inf
    with onp.errstate(invalid="ignore"):
        onp.testing.assert_array_equal(np.cumsum(np.array(x)).asnumpy(), onp.cumsum(x))


def test_the_same_bits_for_any_number_of_threads():
    rng = onp.random.default_rng(1)
    arrays = [np.array(rng.standard_normal(s).astype("float32")) for s in ((200_000,), (7, 9000), (600, 500))]
    before = mxnp.num_threads()
    try:
        found = []
        for threads in (1, 2, 5):
            mxnp.set_num_threads(threads)
            found.append([np.cumsum(a, axis=-1).asnumpy().tobytes() for a in arrays])
    finally:
        mxnp.set_num_threads(before)
    assert found[0] == found[1] == found[2]


def test_gradients_run_backwards_over_blocks():
    from mxnp import autograd

    x = np.ones(5000)
    x.attach_grad()
    with autograd.record():
        np.cumsum(x).sum().backward()
    onp.testing.assert_array_equal(x.grad.asnumpy(), onp.arange(5000, 0, -1, dtype="float32"))
