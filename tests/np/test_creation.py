"""New arrays: default dtypes in both modes, what keeps its dtype, arguments by NumPy's and MXNet's names, bad input."""

import ml_dtypes
import numpy as onp
import pytest

import mxnp as mx
from mxnp import np, npx
from mxnp.error import MXNetError

SAME = [
    (lambda xp: xp.zeros((2, 3)), "float32", "float64"),
    (lambda xp: xp.ones(3), "float32", "float64"),
    (lambda xp: xp.empty((0, 2)), "float32", "float64"),
    (lambda xp: xp.full((2,), 3), "float32", "int64"),
    (lambda xp: xp.full((2,), 3.5), "float32", "float64"),
    (lambda xp: xp.full((2,), True), "bool", "bool"),
    (lambda xp: xp.arange(5), "float32", "int64"),
    (lambda xp: xp.arange(2, 9, 3), "float32", "int64"),
    (lambda xp: xp.arange(0.0, 1.0, 0.25), "float32", "float64"),
    (lambda xp: xp.arange(5, 0, -2), "float32", "int64"),
    (lambda xp: xp.arange(3, dtype="int8"), "int8", "int8"),
    (lambda xp: xp.linspace(0, 1, 7), "float32", "float64"),
    (lambda xp: xp.linspace(0, 10, 5, endpoint=False), "float32", "float64"),
    (lambda xp: xp.linspace(3, 3, 1), "float32", "float64"),
    (lambda xp: xp.logspace(0, 2, 3), "float32", "float64"),
    (lambda xp: xp.geomspace(1, 8, 4), "float32", "float64"),
    (lambda xp: xp.eye(3, 4, 1), "float32", "float64"),
    (lambda xp: xp.eye(2, k=-1), "float32", "float64"),
    (lambda xp: xp.identity(2), "float32", "float64"),
    (lambda xp: xp.tri(3, 4, 1), "float32", "float64"),
    (lambda xp: xp.array([1, 2]), "float32", "int64"),
    (lambda xp: xp.array([[1.5], [2]]), "float32", "float64"),
    (lambda xp: xp.array([True, False]), "bool", "bool"),
    (lambda xp: xp.array(3), "float32", "int64"),
    (lambda xp: xp.array([1, 2], dtype="uint8"), "uint8", "uint8"),
    (lambda xp: xp.array([]), "float32", "float64"),
    (lambda xp: xp.array([1 + 2j]), "complex64", "complex128"),
]


@pytest.mark.parametrize("numpy_mode", [False, True])
@pytest.mark.parametrize("row", range(len(SAME)))
def test_values_are_numpys_and_dtypes_the_modes(row, numpy_mode):
    make, default, numpys = SAME[row]
    npx.set_np(dtype=numpy_mode)
    got, want = make(np), make(onp)
    assert got.dtype == (numpys if numpy_mode else default)
    onp.testing.assert_allclose(got.asnumpy(), want, rtol=1e-6)
    assert got.shape == want.shape


@pytest.mark.parametrize(
    "data",
    [
        onp.arange(3),
        onp.float64(2.5),
        onp.ones((2, 2), "float16"),
        onp.array([1, 2], ml_dtypes.bfloat16),
        onp.array([], "int32"),
    ],
)
def test_numpys_arrays_and_scalars_keep_their_dtype(data):
    assert np.array(data).dtype == data.dtype


def test_array_copies_and_asarray_does_not():
    x = np.ones(3)
    assert np.asarray(x) is x
    y = np.array(x)
    y[0] = 5
    assert x.tolist() == [1, 1, 1]
    assert np.array(x, copy=None) is x
    assert np.asarray(x, dtype="int32").dtype == "int32"
    assert np.array(x, ndmin=3).shape == (1, 1, 3)


@pytest.mark.parametrize("like", ["zeros_like", "ones_like", "empty_like"])
def test_like(like):
    x = np.array([[1, 2]], dtype="int16")
    y = getattr(np, like)(x)
    assert (y.shape, y.dtype) == ((1, 2), "int16")
    y = getattr(np, like)(x, dtype="float64", shape=(3,))
    assert (y.shape, y.dtype) == ((3,), "float64")


def test_full_like_and_out():
    x = np.zeros((2, 2))
    assert np.full_like(x, 7).tolist() == [[7, 7], [7, 7]]
    assert np.full((2, 2), np.array([1, 2])).tolist() == [[1, 2], [1, 2]]
    out = np.zeros((2,))
    assert np.full((2,), 3, out=out) is out
    assert out.tolist() == [3, 3]


@pytest.mark.parametrize("name", ["device", "ctx"])
def test_devices_by_both_names(name):
    for make in (np.zeros, np.ones, np.empty):
        assert make((2,), **{name: mx.cpu(1)}).device == mx.cpu(1)
    assert np.array([1], **{name: mx.cpu(1)}).device == mx.cpu(1)
    assert np.arange(2, **{name: mx.cpu(1)}).device == mx.cpu(1)
    assert np.eye(2, **{name: mx.cpu(1)}).device == mx.cpu(1)
    assert np.random.uniform(size=(2,), **{name: mx.cpu(1)}).device == mx.cpu(1)


def test_both_names_at_once():
    with pytest.raises(ValueError, match="two names of one argument"):
        np.zeros(2, device=mx.cpu(), ctx=mx.cpu())


@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("sparse", [False, True])
def test_meshgrid(indexing, sparse):
    values = [onp.arange(2.0), onp.arange(3.0), onp.arange(4.0)]
    got = np.meshgrid(*[np.array(v) for v in values], indexing=indexing, sparse=sparse)
    want = onp.meshgrid(*values, indexing=indexing, sparse=sparse)
    for a, b in zip(got, want, strict=True):
        onp.testing.assert_array_equal(a.asnumpy(), b)


def test_indices_and_triangles():
    onp.testing.assert_array_equal(np.indices((2, 3)).asnumpy(), onp.indices((2, 3)))
    for mine, theirs in zip(np.tril_indices(4, -1), onp.tril_indices(4, -1), strict=True):
        onp.testing.assert_array_equal(mine.asnumpy(), theirs)
    for mine, theirs in zip(np.triu_indices(3, 1, 5), onp.triu_indices(3, 1, 5), strict=True):
        onp.testing.assert_array_equal(mine.asnumpy(), theirs)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: np.zeros((-1, 2)), ValueError, "negative dimensions are not allowed"),
        (lambda: np.zeros((2,), order="X"), ValueError, "order must be one of"),
        (lambda: np.ones((2.5,)), TypeError, "integer"),
        (lambda: np.eye(-1), ValueError, "negative dimensions are not allowed"),
        (lambda: np.arange(), TypeError, "requires stop"),
        (lambda: np.arange(0, 3, 0), ZeroDivisionError, "step"),
        (lambda: np.linspace(0, 1, -2), ValueError, "must be non-negative"),
        (lambda: np.full((2,), np.ones((3,))), ValueError, "broadcast"),
        (lambda: np.zeros((2**40, 2**40)), (MemoryError, ValueError), None),
        (lambda: np.array([[1], [2, 3]]), ValueError, None),
        (lambda: np.zeros(2, dtype="float31"), TypeError, None),
        (lambda: np.meshgrid(np.ones(2), indexing="yx"), ValueError, "indexing"),
    ],
)
def test_bad_input(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_errors_are_mxnets_too():
    with pytest.raises(MXNetError):
        np.zeros((-1,))
