"""x[mask] and x[mask] = v where one mask is all of the index: against NumPy, with gradients, and its errors."""

from __future__ import annotations

import numpy as onp
import pytest

from mxnp import _core, autograd, np

SHAPES = [
    ((0,), (0,)),
    ((1,), (1,)),
    ((63,), (63,)),
    ((64,), (64,)),
    ((100_000,), (100_000,)),
    ((40, 50), (40, 50)),
    ((300, 7), (300,)),
    ((5, 6, 7), (5, 6)),
    ((2, 0, 3), (2, 0)),
    ((4, 0), (4,)),
    # Of size 0 beside an axis of another size: it takes nothing.
    ((3, 4), (0,)),
    ((3, 4), (0, 4)),
    ((3, 4), (3, 0)),
]


def drawn(shape, mask_shape, share, seed=0):
    rng = onp.random.default_rng(seed)
    return rng.standard_normal(shape).astype("float32"), rng.random(mask_shape) < share


@pytest.mark.parametrize(("shape", "mask_shape"), SHAPES)
@pytest.mark.parametrize("share", [0.0, 0.03, 0.5, 1.0])
def test_reading_and_nonzero(shape, mask_shape, share):
    x, mask = drawn(shape, mask_shape, share)
    for dtype in ("float32", "uint8", "float16", "complex128"):
        y = (x * 50).astype(dtype) if dtype != "uint8" else (abs(x) * 50).astype(dtype)
        found = np.array(y)[np.array(mask)]
        assert found.dtype == y.dtype
        onp.testing.assert_array_equal(found.asnumpy(), y[mask])
    for ours, theirs in zip(np.nonzero(np.array(mask)), onp.nonzero(mask), strict=True):
        onp.testing.assert_array_equal(ours.asnumpy(), theirs)
    assert int(np.count_nonzero(np.array(mask))) == onp.count_nonzero(mask)


@pytest.mark.parametrize(("shape", "mask_shape"), SHAPES)
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_writing(shape, mask_shape, share):
    x, mask = drawn(shape, mask_shape, share)
    want, found = x.copy(), np.array(x)
    values = onp.arange(want[mask].size, dtype="float32").reshape(want[mask].shape)
    want[mask] = values
    found[np.array(mask)] = np.array(values)
    onp.testing.assert_array_equal(found.asnumpy(), want)
    want[mask] = onp.float32(2.5)
    found[np.array(mask)] = np.array([2.5])
    onp.testing.assert_array_equal(found.asnumpy(), want)


@pytest.mark.parametrize("key", [(..., []), (slice(None), []), (1, []), ([], [0]), (None, []), ([], None)])
def test_empty_masks_beside_other_indices(key):
    def of(array, one):
        return tuple(
            array([], dtype=bool) if part == [] else one(part) if part == [0] else part for part in key
        )

    x = onp.arange(12.0, dtype="float32").reshape(3, 4)
    want = x[of(onp.array, onp.array)]
    found = np.array(x)[of(np.array, lambda part: np.array(part, dtype=int))]
    assert (found.shape, found.dtype) == (want.shape, want.dtype)
    y = np.array(x)
    y[of(np.array, lambda part: np.array(part, dtype=int))] = 7
    onp.testing.assert_array_equal(y.asnumpy(), x)
    for wrong in ((0, 3), (2, 0), (2,)):
        with pytest.raises(IndexError, match="boolean index did not match"):
            y[np.zeros(wrong, dtype=bool)]


def test_views():
    """Strided arrays and masks, on either side; a view's write reaches its base."""
    x, mask = drawn((30, 40), (30, 40), 0.4)
    a, m = np.array(x), np.array(mask)
    onp.testing.assert_array_equal(a.T[m.T].asnumpy(), x.T[mask.T])
    onp.testing.assert_array_equal(a[::2, ::-3][m[::2, ::-3]].asnumpy(), x[::2, ::-3][mask[::2, ::-3]])
    onp.testing.assert_array_equal(a.T[m[0]].asnumpy(), x.T[mask[0]])
    rows = mask[:, 0]
    a.T[m[0]] = a.T[m[0]] * 2
    x.T[mask[0]] = x.T[mask[0]] * 2
    onp.testing.assert_array_equal(a.asnumpy(), x)
    a[np.array(rows)] = a[: int(rows.sum())]
    x[rows] = x[: int(rows.sum())]
    onp.testing.assert_array_equal(a.asnumpy(), x)


def test_a_mask_that_is_written_by_itself():
    mask = onp.array([True, False, True, True])
    a, want = np.array(mask), mask.copy()
    a[a] = np.array([False, True, False])
    want[mask] = [False, True, False]
    onp.testing.assert_array_equal(a.asnumpy(), want)


def test_gradients():
    x, mask = drawn((6, 5), (6, 5), 0.5)
    a, m = np.array(x), np.array(mask)
    a.attach_grad()
    with autograd.record():
        (a[m] ** 3).sum().backward()
    onp.testing.assert_allclose(a.grad.asnumpy(), onp.where(mask, 3 * x**2, 0), rtol=1e-6)
    with autograd.record():
        (first,) = autograd.grad((a[m[:, 0]] ** 3).sum(), [a], create_graph=True)
        (first**2).sum().backward()
    onp.testing.assert_allclose(a.grad.asnumpy(), onp.where(mask[:, :1], 36 * x**3, 0), rtol=1e-5)


def test_a_recorded_write():
    x, mask = drawn((7,), (7,), 0.5)
    values = onp.arange(mask.sum(), dtype="float32") + 1
    a, m, v = np.array(x), np.array(mask), np.array(values)
    v.attach_grad()
    with autograd.record():
        b = a * 1
        b[m] = v * v
        b.sum().backward()
    onp.testing.assert_allclose(v.grad.asnumpy(), 2 * values)


def test_errors():
    x = np.ones((3, 4))
    with pytest.raises(
        IndexError, match="boolean index did not match indexed array along axis 0; size of axis is 3"
    ):
        x[np.array([True, False])]
    with pytest.raises(IndexError, match="too many indices"):
        x[np.ones((3, 4, 1), dtype="bool")]
    with pytest.raises(ValueError, match=r"shape mismatch: value array of shape \(3,\)"):
        x[np.array([True, False, True])] = np.ones(3)
    with pytest.raises(ValueError, match="could not be broadcast to indexing result of shape"):
        x[x > 0] = np.ones(5)


def test_the_core_checks_its_operands():
    get, put = _core.op("mask_get"), _core.op("mask_put")
    x, mask = np.ones(4), np.array([True, False, True, False])
    for call in (
        lambda: get(x, np.ones(4), count=2),
        lambda: get(x, mask, count=-1),
        lambda: get(x, np.ones((4, 1), dtype="bool"), count=4),
        lambda: put(x, np.ones(3), mask, count=2),
    ):
        with pytest.raises((ValueError, TypeError, IndexError)):
            call()
    with pytest.raises(RuntimeError, match="holds in 2 places, but 3 were counted"):
        get(x, mask, count=3).wait_to_read()
