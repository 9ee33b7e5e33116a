"""mxnp.test_utils: its checks must fail when what they check is wrong."""

import os
import random

import numpy as onp
import pytest

from mxnp import np
from mxnp import test_utils as tu


def test_tolerances_are_mxnets():
    assert tu.default_rtols()[onp.dtype("float16")] == 1e-2
    assert tu.default_rtols()[onp.dtype("float32")] == 1e-4
    assert tu.default_atols()[onp.dtype("float64")] == 1e-20
    assert tu.default_atols()[onp.dtype("int64")] == 0
    assert tu.default_numeric_eps()[onp.dtype("float32")] == 2.0**-9
    assert tu.get_tols(onp.ones(1, "float16"), onp.ones(1, "float32"), None, None) == (1e-2, 1e-1)
    assert tu.get_tols(onp.ones(1, "float64"), 2.0, None, 0.5) == (1e-5, 0.5)
    assert tu.get_rtol(None, "float32") == 1e-4
    assert tu.get_atol(3) == 3
    assert tu.get_etol() == 0
    assert tu.effective_dtype([1]) == onp.float64
    assert tu.get_tolerance(onp.ones(1, "float32"), None, tu.default_rtols()) == 1e-4


@pytest.mark.parametrize("make", [onp.array, lambda x: np.array(x, dtype=onp.asarray(x).dtype)])
def test_almost_equal(make):
    a = make(onp.array([[1, 2], [3, 4]], "float32"))
    near = make(onp.array([[1, 2], [3, 4.0001]], "float32"))
    far = make(onp.array([[1, 2], [3, 4.1]], "float32"))
    tu.assert_almost_equal(a, near)
    assert tu.almost_equal(a, near)
    assert not tu.almost_equal(a, far)
    with pytest.raises(
        AssertionError, match=r"25% of 4 elements .*rtol=1\.0+e-04(.|\n)*\(1, 1\), x=4\.0+, y=4\.0999"
    ):
        tu.assert_almost_equal(a, far, names=("x", "y"))
    with pytest.raises(AssertionError):
        tu.assert_almost_equal(a, near, rtol=1e-7, atol=0)
    tu.assert_almost_equal(a, far, rtol=0, atol=0.2)
    tu.assert_almost_equal_with_err(a, far, etol=0.3)
    with pytest.raises(AssertionError):
        tu.assert_almost_equal_with_err(a, far, etol=0.2)
    assert tu.find_max_violation(a, far)[0] == (1, 1)


def test_integers_nan_inf_and_shapes():
    with pytest.raises(AssertionError):
        tu.assert_almost_equal(onp.array([2**53]), onp.array([2**53 + 1]))
    nan, one = onp.array([onp.nan]), onp.array([1.0])
    for pair in (
        (nan, one),
        (one, nan),
        (nan, nan),
        (onp.array([onp.inf]), one),
        (one, onp.array([-onp.inf])),
    ):
        with pytest.raises(AssertionError):
            tu.assert_almost_equal(*pair)
    tu.assert_almost_equal(nan, nan, equal_nan=True)
    with pytest.raises(AssertionError):
        tu.assert_almost_equal(nan, one, equal_nan=True)
    tu.assert_almost_equal(onp.array([onp.inf]), onp.array([onp.inf]))
    tu.assert_almost_equal_ignore_nan(onp.array([onp.nan, 2]), onp.array([1.0, 2]))
    with pytest.raises(AssertionError):
        tu.assert_almost_equal_ignore_nan(onp.array([onp.nan, 2]), onp.array([1.0, 3]))
    tu.assert_almost_equal(onp.ones(2), onp.ones((2, 2)))
    with pytest.raises(AssertionError, match=r"a.shape = \(2,\) and b.shape = \(2, 2\)"):
        tu.assert_almost_equal(onp.ones(2), onp.ones((2, 2)), use_broadcast=False)
    tu.assert_almost_equal(onp.zeros((0, 3)), onp.zeros((0, 3)))
    tu.assert_allclose(np.ones(2), onp.ones(2))


def test_same():
    assert tu.same(onp.ones(2), np.ones(2))
    assert not tu.same(onp.ones(2), onp.ones((2, 2)))
    assert not tu.same(nan := onp.array([onp.nan]), nan)
    x = np.ones((2, 3), dtype="float32")
    assert tu.same_array(x, x)
    assert not tu.same_array(x, np.ones((2, 3), dtype="float32"))
    assert tu.same(x, onp.ones((2, 3)))
    tu.compare_ndarray_tuple((None, [x]), (None, [x]))
    with pytest.raises(AssertionError):
        tu.compare_ndarray_tuple((x, [x]), (x, [x + 1]))


def test_assert_exception():
    tu.assert_exception(int, ValueError, "x")
    with pytest.raises(AssertionError, match="int did not raise ValueError"):
        tu.assert_exception(int, ValueError, "1")
    with pytest.raises(ValueError):
        tu.assert_exception(int, KeyError, "x")


def test_random_helpers():
    onp.random.seed(0)
    random.seed(0)
    for _ in range(50):
        assert all(1 <= n <= 4 for n in tu.rand_shape_nd(5, 4))
        first, second, third = tu.rand_shape_3d(2, 3, 4)
        assert (first <= 2, second <= 3, third <= 4) == (True, True, True)
        assert len(tu.rand_shape_2d()) == 2
        x, y = tu.rand_coord_2d(1, 3, 5, 6)
        assert (x in (1, 2), y) == (True, 5)
    assert 0 in {n for _ in range(50) for n in tu.rand_shape_nd(3, 2, allow_zero_size=True)}
    assert tu.random_sample([5, 6, 7, 8], 4) == [5, 6, 7, 8]
    one, two = tu.random_arrays((2,), (3, 1))
    assert (one.shape, two.dtype) == ((2,), onp.float32)
    assert tu.random_arrays((2,)).shape == (2,)
    (uniform,) = tu.random_uniform_arrays((50,), low=2, high=3)
    assert uniform.min() >= 2
    drawn = tu.rand_ndarray((40,), dtype="float64")
    assert drawn.dtype == onp.float64
    assert abs(drawn.asnumpy()).max() <= 1
    with pytest.raises(NotImplementedError, match="csr"):
        tu.rand_ndarray((2,), stype="csr")


def test_array_helpers():
    data = onp.arange(24.0).reshape(2, 3, 4)
    onp.testing.assert_array_equal(
        tu.np_reduce(data, (0, -1), True, onp.sum), data.sum((0, 2), keepdims=True)
    )
    onp.testing.assert_array_equal(tu.np_reduce(data, None, False, onp.max), data.max())
    onp.testing.assert_array_equal(tu.collapse_sum_like(data, (3, 1)), data.sum((0, 2)).reshape(3, 1))
    assert tu.create_vector(3).asnumpy().tolist() == [0, 1, 2]
    assert tu.create_2d_np_tensor(2, 3).asnumpy().tolist() == [[0, 0, 0], [1, 1, 1]]
    assert tu.assign_each(onp.array([1, 2]), lambda x: x * 3).tolist() == [3, 6]
    assert tu.assign_each2(onp.array([1, 2]), onp.array([3, 4]), lambda x, y: x * y).tolist() == [3, 8]


def test_environment(monkeypatch):
    monkeypatch.setenv("MXNP_A", "old")
    monkeypatch.delenv("MXNP_B", raising=False)
    with pytest.raises(KeyError), tu.environment({"MXNP_A": None, "MXNP_B": 3}):
        assert tu.getenv("MXNP_A") is None
        assert os.environ["MXNP_B"] == "3"
        raise KeyError
    assert os.environ["MXNP_A"] == "old"
    assert "MXNP_B" not in os.environ
    with tu.environment("MXNP_A", "new"):
        assert os.environ["MXNP_A"] == "new"
    with pytest.raises(ValueError, match="a name and a value"), tu.environment(1):
        pass


def test_retry():
    calls = []

    @tu.retry(3)
    def third_time(fail_until):
        calls.append(1)
        assert len(calls) >= fail_until
        return "done"

    assert third_time(3) == "done"
    assert len(calls) == 3
    calls.clear()
    with pytest.raises(AssertionError):
        third_time(4)
    with pytest.raises(ValueError, match="at least 1"):
        tu.retry(0)


def test_devices():
    from mxnp import device

    assert tu.default_device() == device.current_device()
    tu.set_default_device(device.cpu(1))
    try:
        assert tu.default_context() == device.cpu(1)
    finally:
        tu.set_default_device(None)
    assert isinstance(tu.list_gpus(), list)
    assert tu.use_np(test_devices) is test_devices


def test_check_numeric_gradient():
    x = onp.array([[0.3, -1.2], [0.7, 2.0]])
    tu.check_numeric_gradient(lambda a, b: (np.tanh(a) * b, a.sum()), [x, x.T + 0.1], dtype="float64")
    tu.check_numeric_gradient(lambda a: np.tanh(a), [x.astype("float32")])
    tu.check_numeric_gradient(lambda a, b: a * b, {"a": x, "b": x}, grad_nodes=["b"], dtype="float64")
    with pytest.raises(AssertionError, match="gradient of argument 0"):
        tu.check_numeric_gradient(lambda a: (a * 2).detach() + a, [x], dtype="float64")


def test_check_gluon_hybridize_consistency():
    from mxnp.gluon import nn

    x = np.array([[0.5, -1.0, 2.0]], dtype="float32")
    tu.check_gluon_hybridize_consistency(lambda: nn.Dense(2, activation="tanh"), [x])
    tu.check_gluon_hybridize_consistency(
        lambda: nn.Activation("relu"), [x], numpy_func=lambda a: onp.maximum(a, 0)
    )
    with pytest.raises(AssertionError, match="expected"):
        tu.check_gluon_hybridize_consistency(lambda: nn.Activation("relu"), [x], numpy_func=lambda a: a)
