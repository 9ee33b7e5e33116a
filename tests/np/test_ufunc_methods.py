"""np.add.reduce and its relatives against NumPy's, and what those that have not arrived say."""

import numpy as onp
import pytest

from mxnp import np
from mxnp.error import MXNetError

REDUCED = ["add", "multiply", "maximum", "minimum", "logical_and", "logical_or"]
DATA = onp.array([[3, 0, 2, 5, -1], [1, 4, 4, 0, 7], [2, 2, -6, 1, 1]], "float64")


def both(name, method, *args, **kwargs):
    """mxnp's result and NumPy's, the arrays among `args` given to each as its own."""
    mine = getattr(getattr(np, name), method)(
        *(np.array(a) if isinstance(a, onp.ndarray) else a for a in args), **kwargs
    )
    return mine, getattr(getattr(onp, name), method)(*args, **kwargs)


def check(mine, theirs):
    assert isinstance(mine, np.ndarray)
    assert mine.dtype == theirs.dtype
    onp.testing.assert_array_equal(mine.asnumpy(), theirs)


@pytest.mark.parametrize("name", REDUCED)
@pytest.mark.parametrize("options", [{}, {"axis": 1}, {"axis": (0, 1)}, {"axis": None}, {"keepdims": True}])
@pytest.mark.parametrize("data", [DATA, DATA.astype("int32"), DATA > 1], ids=["f64", "i32", "bool"])
def test_reduce(name, options, data):
    check(*both(name, "reduce", data, **options))


@pytest.mark.parametrize("name", REDUCED)
def test_reduce_takes_numpys_options(name):
    initial = name != "multiply"
    check(*both(name, "reduce", DATA, initial=initial))
    check(*both(name, "reduce", DATA, where=DATA > 0, initial=initial))
    out = np.zeros(5, dtype="bool" if name.startswith("logical") else "float64")
    assert getattr(np, name).reduce(np.array(DATA), out=out) is out
    onp.testing.assert_array_equal(out.asnumpy(), getattr(onp, name).reduce(DATA))


@pytest.mark.parametrize("name", ["add", "multiply", "maximum"])
def test_reduce_in_another_dtype(name):
    check(*both(name, "reduce", DATA, dtype="float32"))


@pytest.mark.parametrize("name", REDUCED)
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("data", [DATA, DATA.astype("int32"), DATA > 1], ids=["f64", "i32", "bool"])
def test_accumulate(name, axis, data):
    check(*both(name, "accumulate", data, axis=axis))


def test_accumulate_of_nothing():
    check(*both("maximum", "accumulate", DATA[:0]))
    with pytest.raises(TypeError, match="cannot accumulate on a scalar"):
        np.add.accumulate(np.array(1.0))


@pytest.mark.parametrize("name", ["add", "subtract", "power", "arctan2", "greater", "hypot"])
def test_outer(name):
    for other in (onp.array([2.0, 3.0]), onp.array(2.0)):
        mine, theirs = both(name, "outer", DATA, other)
        # The same bits as the function itself gives; NumPy's may differ in the last place.
        check(
            mine,
            getattr(np, name)(np.expand_dims(np.array(DATA), (2,) * other.ndim), np.array(other)).asnumpy(),
        )
        onp.testing.assert_allclose(mine.asnumpy(), theirs, rtol=4e-16 if theirs.dtype == "float64" else 0)


def test_gradients_pass():
    from mxnp import autograd

    x = np.array([[1.0, 4.0], [3.0, 2.0]])
    x.attach_grad()
    with autograd.record():
        y = (np.maximum.accumulate(x) * np.array([[1.0, 2.0], [10.0, 20.0]])).sum()
    y.backward()
    assert x.grad.tolist() == [[1, 22], [10, 0]]


def test_what_there_is_not():
    x = np.ones(3)
    for method in ("reduce", "accumulate"):
        with pytest.raises(
            NotImplementedError, match=rf"subtract\.{method} has not arrived.*add, multiply"
        ) as e:
            getattr(np.subtract, method)(x)
        assert isinstance(e.value, MXNetError)
        with pytest.raises(ValueError, match=rf"exp\.{method}: only supported for binary functions"):
            getattr(np.exp, method)(x)
    with pytest.raises(NotImplementedError, match=r"add\.at has not arrived"):
        np.add.at(x, [0, 0], 1)
    with pytest.raises(NotImplementedError, match=r"add\.reduceat has not arrived"):
        np.add.reduceat(x, [0, 1])
    with pytest.raises(ValueError, match=r"exp\.outer: only supported for binary functions"):
        np.exp.outer(x, x)
