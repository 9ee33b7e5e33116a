"""repr and str: NumPy's text, with the dtype shown where it is not the mode's default."""

import numpy as onp
import pytest

from mxnp import np, npx


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: np.array([1, 2]), "array([1., 2.])"),
        (lambda: np.array([1, 2], dtype="int64"), "array([1, 2], dtype=int64)"),
        (lambda: np.array([1, 2], dtype="int32"), "array([1, 2], dtype=int32)"),
        (lambda: np.array(3.5), "array(3.5)"),
        (lambda: np.array([1, 2]) > 1, "array([False,  True])"),
        (lambda: np.array([1, 2], dtype="float64"), "array([1., 2.], dtype=float64)"),
        (lambda: np.array([1], dtype="float16"), "array([1.], dtype=float16)"),
        (lambda: np.array([1], dtype="bfloat16"), "array([1], dtype=bfloat16)"),
        (lambda: np.array([1 + 2j]), "array([1.+2.j], dtype=complex64)"),
        (lambda: np.array([], dtype="int32"), "array([], dtype=int32)"),
        (lambda: np.zeros((0, 3)), "array([], shape=(0, 3))"),
        (lambda: np.array([[1, 2], [3, 4]]), "array([[1., 2.],\n       [3., 4.]])"),
    ],
)
def test_repr_in_the_default_mode(make, text):
    assert repr(make()) == text


@pytest.mark.parametrize(
    "values",
    [[1, 2], [1.5], [True], [1 + 2j], 3, onp.arange(3, dtype="int32"), onp.ones(2, "float32"), [[1.0], [2]]],
)
def test_repr_in_numpys_mode_is_numpys(values):
    npx.set_np(dtype=True)
    assert repr(np.array(values)) == repr(onp.array(values))


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (1001,), (40, 50), (2, 0)])
def test_str_is_numpys(shape):
    values = onp.random.RandomState(0).normal(size=shape).astype("float32")
    assert str(np.array(values)) == str(values)
    assert f"{np.array(values)}" == str(values)


def test_a_long_last_line_gets_the_dtype_below_it():
    x = np.arange(20, dtype="int16")
    assert repr(x) == repr(x.asnumpy())


def test_print_options_are_numpys():
    with np.printoptions(precision=2):
        assert repr(np.array([1.23456])) == "array([1.23])"
    assert repr(np.array([1.23456])) == "array([1.23456])"


def test_another_device_is_shown():
    import mxnp as mx

    assert repr(np.ones(1, device=mx.cpu(0))) == "array([1.])"


def test_views_print_their_own_elements():
    x = np.arange(6).reshape(2, 3)
    assert repr(x.T[::-1]) == "array([[2., 5.],\n       [1., 4.],\n       [0., 3.]])"
