"""Methods of arrays: the same rows as the functions, with NumPy's and 1.x's ways of calling them."""

import inspect

import numpy as onp
import pytest

import mxnp as mx
from mxnp import np

X = onp.arange(6, dtype="float32").reshape(2, 3) - 2.0

CALLS = {
    "sum": [(), (0,), ((0, 1),)],
    "prod": [(), (1,)],
    "max": [(), (0,)],
    "min": [(), (0,)],
    "mean": [(), (1,)],
    "std": [(), (1,)],
    "var": [(), (1,)],
    "argmax": [(), (1,)],
    "argmin": [(), (0,)],
    "any": [(), (0,)],
    "all": [(), (1,)],
    "cumsum": [(), (0,)],
    "cumprod": [(), (1,)],
    "argsort": [(), (0,)],
    "ravel": [(), ("F",)],
    "flatten": [(), ("F",)],
    "reshape": [(3, 2), ((3, 2),), (-1,), ([6],)],
    "transpose": [(), ((1, 0),), (1, 0), (None,)],
    "swapaxes": [(0, 1)],
    "squeeze": [()],
    "repeat": [(2,), (2, 1)],
    "take": [([0, 1],), ([0, 1], 1)],
    "clip": [(-1, 1), (None, 1), (-1, None)],
    "round": [(), (1,)],
    "copy": [()],
    "astype": [("int32",)],
    "dot": [(X.T,)],
    "trace": [(), (1,)],
    "diagonal": [(), (1,)],
    "conj": [()],
    "tolist": [()],
}


@pytest.mark.parametrize("name", CALLS)
def test_as_numpys_method(name):
    for args in CALLS[name]:
        want = getattr(X, name)(*args)
        got = getattr(np.array(X), name)(*args)
        got = got.asnumpy() if isinstance(got, np.ndarray) else got
        onp.testing.assert_allclose(got, want, rtol=1e-6)
        assert onp.shape(got) == onp.shape(want)


def test_keywords_and_out():
    x, out = np.array(X), np.zeros((2, 1))
    assert x.sum(axis=1, keepdims=True, out=out) is out
    assert out.tolist() == X.sum(1, keepdims=True).tolist()
    assert x.clip(min=0).tolist() == X.clip(min=0).tolist()
    assert x.mean(axis=0, dtype="float64").dtype == "float64"


def test_nonzero_method():
    x = np.array(X)
    for mine, theirs in zip(x.nonzero(), X.nonzero(), strict=True):
        onp.testing.assert_array_equal(mine.asnumpy(), theirs)


def test_sort_method_is_in_place():
    x = np.array([[3, 1], [2, 4]])
    assert x.sort(0) is None
    assert x.tolist() == [[2, 1], [3, 4]]


def test_astype_copy_and_casting():
    x = np.array(X)
    assert x.astype("float32", copy=False) is x
    assert x.astype("float32") is not x
    with pytest.raises(TypeError, match="according to the rule 'safe'"):
        x.astype("int32", casting="safe")


@pytest.mark.parametrize(
    "name", ["exp", "sqrt", "abs", "sigmoid", "relu", "tanh", "square", "log1p", "floor"]
)
def test_functions_as_methods_of_1x(name):
    x = np.array([0.25, 0.5])
    function = getattr(np, name, None) or getattr(mx.npx, name)
    assert getattr(x, name)().tolist() == function(x).tolist()


def test_copyto_arrays_and_devices():
    x, y = np.array([1, 2]), np.zeros(2)
    assert x.copyto(y) is y
    assert y.tolist() == [1, 2]
    z = x.copyto(mx.cpu(1))
    assert z.device == mx.cpu(1)
    with pytest.raises(TypeError, match="copyto: expected an array or a device"):
        x.copyto([1, 2])


def test_mxnets_reshape_codes():
    x = np.zeros((2, 3, 4))
    assert x.reshape(-2, -1).shape == (2, 12)
    assert x.reshape(-5, -4).shape == (6, 4)
    assert x.reshape((-6, 1, 2, -4)).shape == (1, 2, 3, 4)
    assert x.reshape(-2, -2, -1, reverse=True).shape == (2, 3, 4)


def test_small_ones():
    x = np.array(X)
    x.fill(3)
    assert x.tolist() == [[3, 3, 3], [3, 3, 3]]
    assert x.mT.shape == (3, 2)
    assert x.as_np_ndarray() is x
    assert x.stype == "default"
    assert x.reshape_like(np.ones((3, 2))).shape == (3, 2)
    assert x.slice_axis(1, 1, None).shape == (2, 2)
    with pytest.raises(ValueError, match="only stype 'default'"):
        x.tostype("csr")


def test_methods_have_signatures_and_docs():
    for name in CALLS:
        if name in ("tolist",):
            continue
        method = getattr(np.ndarray, name)
        assert inspect.getdoc(method), name
        assert inspect.signature(method).parameters, name


def test_compress_takes_the_array_first():
    x = np.array([[1, 2], [3, 4]])
    assert x.compress([False, True], axis=0).tolist() == [[3.0, 4.0]]
    assert x.compress(np.array([True, False, False, True])).tolist() == [1.0, 4.0]
    out = np.zeros((2, 1))
    assert x.compress([True, False], 1, out) is out
    assert out.tolist() == [[1.0], [3.0]]


def test_round():
    assert round(np.array([2.567, -1.25]), 1).tolist() == pytest.approx([2.6, -1.2])
    assert round(np.array(2.5)).item() == 2.0
