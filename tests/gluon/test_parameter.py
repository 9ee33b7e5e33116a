"""Parameters: shapes, initialisation, identity of arrays, gradients, replicas, constants."""

import copy
import pickle

import numpy as onp
import pytest

from mxnp import autograd, gluon, initializer, np
from mxnp.device import cpu
from mxnp.error import MXNetError
from mxnp.gluon.parameter import Constant, DeferredInitializationError, Parameter

BOTH = [cpu(0), cpu(1)]


def ready(shape=(2, 3), init="ones", **kwargs):
    """An initialised parameter."""
    parameter = Parameter("weight", shape=shape, init=init, **kwargs)
    parameter.initialize()
    return parameter


def deferred(shape=(2, 0), **kwargs):
    """A parameter that waits for its shape."""
    parameter = Parameter("weight", shape=shape, allow_deferred_init=True, **kwargs)
    parameter.initialize(init="ones")
    return parameter


# Shape and dtype ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "expected"),
    [(3, (3,)), ((2, 0), (2, -1)), ((-1, 4), (-1, 4)), ([1, 2], (1, 2)), ((), ()), (None, None)],
)
def test_shape_spells_unknown_as_minus_one(shape, expected):
    assert Parameter(shape=shape).shape == expected


def test_shape_fills_unknown_dimensions_only():
    parameter = Parameter("weight", shape=(2, 0, -1))
    parameter.shape = (2, 3, 0)
    assert parameter.shape == (2, 3, -1)
    parameter.shape = (-1, 3, 4)
    assert parameter.shape == (2, 3, 4)
    for bad in [(2, 3, 5), (2, 3), (2, 3, 4, 1)]:
        with pytest.raises(AssertionError, match=r"'weight' has shape \(2, 3, 4\)"):
            parameter.shape = bad
    assert parameter.shape == (2, 3, 4)


def test_bad_arguments():
    with pytest.raises(ValueError, match="negative dimension"):
        Parameter(shape=(2, -3))
    with pytest.raises(AssertionError, match="grad_req must be"):
        Parameter(grad_req="sum")
    with pytest.raises(AssertionError, match="stype"):
        Parameter(stype="dense")
    with pytest.raises(TypeError, match="expected a Device"):
        Parameter(shape=(1,)).initialize(device=[cpu(), 3])
    with pytest.raises(ValueError, match="at least one device"):
        Parameter(shape=(1,)).initialize(device=[])
    with pytest.raises(ValueError, match="two names"):
        Parameter(shape=(1,)).initialize(device=cpu(), ctx=cpu())


def test_repr_and_name():
    assert repr(Parameter("weight", shape=(2, 0))) == "Parameter (shape=(2, -1), dtype=float32)"
    assert Parameter().name == "weight"
    assert Parameter("a", dtype=onp.float16).dtype == "float16"


# Initialisation -----------------------------------------------------------------------------------------------


def test_data_before_initialize():
    parameter = Parameter("weight", shape=(2,))
    for read in (
        parameter.data,
        parameter.grad,
        parameter.list_data,
        parameter.list_grad,
        parameter.list_ctx,
    ):
        with pytest.raises(RuntimeError, match="'weight' has not been initialized") as caught:
            read()
        assert not isinstance(caught.value, DeferredInitializationError)
    with pytest.raises(RuntimeError, match="has not been initialized"):
        parameter.set_data(np.ones(2))


def test_data_while_deferred():
    parameter = deferred()
    for read in (parameter.data, parameter.grad, parameter.list_data, parameter._finish_deferred_init):
        with pytest.raises(DeferredInitializationError, match=r"\(2, -1\) is not known"):
            read()
    assert parameter.list_ctx() == [cpu()]
    parameter.shape = (2, 3)
    parameter._finish_deferred_init()
    onp.testing.assert_array_equal(parameter.data().asnumpy(), onp.ones((2, 3)))


def test_unknown_shape_without_deferral():
    for shape in (None, (2, 0)):
        with pytest.raises(ValueError, match="cannot be initialized") as caught:
            Parameter("weight", shape=shape).initialize()
        assert isinstance(caught.value, MXNetError)


def test_own_init_comes_before_the_default_and_after_the_argument():
    parameter = Parameter("weight", shape=(2,), init="ones")
    parameter.initialize(default_init=initializer.Zero())
    onp.testing.assert_array_equal(parameter.data().asnumpy(), [1, 1])
    parameter.initialize(init=initializer.Constant(3.0), force_reinit=True)
    onp.testing.assert_array_equal(parameter.data().asnumpy(), [3, 3])
    other = Parameter("anything", shape=(2,))
    other.initialize(default_init=initializer.One())
    onp.testing.assert_array_equal(other.data().asnumpy(), [1, 1])


def test_custom_initialiser_fills_in_place_and_sees_the_name():
    seen = []

    class Ramp(initializer.Initializer):
        def _init_weight(self, name, data):
            seen.append((str(name), isinstance(name, str)))
            data[:] = np.arange(data.size).reshape(data.shape)

    parameter = Parameter("gain", shape=(2, 2))
    parameter.initialize(init=Ramp())
    onp.testing.assert_array_equal(parameter.data().asnumpy(), [[0, 1], [2, 3]])
    assert seen == [("gain", True)]


def test_initialise_while_recording_leaves_no_trace():
    with autograd.record():
        parameter = ready()
        loss = (parameter.data() * 2).sum()
    loss.backward()
    onp.testing.assert_array_equal(parameter.grad().asnumpy(), onp.full((2, 3), 2))


# Identity and in-place updates --------------------------------------------------------------------------------


def test_set_data_writes_in_place():
    parameter = ready()
    held, gradient = parameter.data(), parameter.grad()
    parameter.set_data(np.full((2, 3), 5.0))
    assert parameter.data() is held
    onp.testing.assert_array_equal(held.asnumpy(), onp.full((2, 3), 5))
    parameter.set_data(onp.arange(6, dtype="int64").reshape(2, 3))
    onp.testing.assert_array_equal(held.asnumpy(), onp.arange(6).reshape(2, 3))
    assert held.dtype == onp.float32
    with autograd.record():
        loss = parameter.data().sum()
    loss.backward()
    onp.testing.assert_array_equal(gradient.asnumpy(), onp.ones((2, 3)))


@pytest.mark.parametrize("shape", [(3, 2), (6,), (2, 3, 1), ()])
def test_set_data_of_another_shape_changes_nothing(shape):
    parameter = ready()
    with pytest.raises(AssertionError, match=r"has shape \(2, 3\), which"):
        parameter.set_data(np.zeros(shape))
    onp.testing.assert_array_equal(parameter.data().asnumpy(), onp.ones((2, 3)))


def test_set_data_while_deferred_replaces_the_initialiser():
    parameter = deferred()
    value = np.full((2, 4), 7.0)
    parameter.set_data(value)
    assert parameter.shape == (2, 4)
    parameter._finish_deferred_init()
    onp.testing.assert_array_equal(parameter.data().asnumpy(), onp.full((2, 4), 7))
    value[:] = 0
    assert parameter.data().asnumpy().all()


def test_the_gradient_is_the_arrays_and_can_be_scaled_in_place():
    parameter = ready()
    with autograd.record():
        loss = (parameter.data() * 3).sum()
    loss.backward()
    parameter.grad()[:] *= 0.5
    onp.testing.assert_array_equal(parameter.data().grad.asnumpy(), onp.full((2, 3), 1.5))
    parameter.zero_grad()
    onp.testing.assert_array_equal(parameter.grad().asnumpy(), onp.zeros((2, 3)))


# Gradient requests --------------------------------------------------------------------------------------------


def test_grad_req_add_accumulates():
    parameter = ready(grad_req="add")
    for _ in range(3):
        with autograd.record():
            loss = parameter.data().sum()
        loss.backward()
    onp.testing.assert_array_equal(parameter.grad().asnumpy(), onp.full((2, 3), 3))


def test_grad_req_null_has_no_gradient():
    parameter = ready(grad_req="null")
    for read in (parameter.grad, parameter.list_grad):
        with pytest.raises(RuntimeError, match="grad_req='null'"):
            read()
    parameter.zero_grad()
    assert Parameter(differentiable=False).grad_req == "null"


def test_grad_req_can_change_and_the_data_stays():
    parameter = ready()
    held = parameter.data()
    parameter.grad_req = "null"
    with pytest.raises(RuntimeError, match="grad_req='null'"):
        parameter.grad()
    parameter.grad_req = "write"
    with autograd.record():
        loss = parameter.data().sum()
    loss.backward()
    onp.testing.assert_array_equal(parameter.grad().asnumpy(), onp.ones((2, 3)))
    assert parameter.data() is held


# Casting, devices, copies -------------------------------------------------------------------------------------


def test_cast_makes_new_arrays_only_when_the_dtype_differs():
    parameter = ready()
    held = parameter.data()
    parameter.cast("float32")
    assert parameter.data() is held
    parameter.cast("float64")
    assert parameter.data() is not held
    assert parameter.data().dtype == parameter.grad().dtype == onp.float64
    parameter.dtype = "float16"
    assert parameter.data().dtype == onp.float16
    late = deferred()
    late.set_data(np.ones((2, 3)))
    late.cast("float64")
    late._finish_deferred_init()
    assert late.data().dtype == onp.float64


def test_replicas():
    parameter = Parameter("weight", shape=(2,), init="ones")
    parameter.initialize(ctx=BOTH)
    assert parameter.list_ctx() == parameter.list_device() == BOTH
    assert [array.device for array in parameter.list_data()] == BOTH
    assert parameter.data(cpu(1)) is parameter.list_data()[1]
    assert parameter.data(ctx=cpu(1)) is parameter.data(device=cpu(1))
    parameter.set_data(np.array([1.0, 2.0]))
    for array in parameter.list_data():
        onp.testing.assert_array_equal(array.asnumpy(), [1, 2])
    parameter.list_data()[0][:] = 3.0
    onp.testing.assert_array_equal(parameter.data(cpu(1)).asnumpy(), [1, 2])
    onp.testing.assert_array_equal(parameter._reduce().asnumpy(), [2, 2.5])
    with pytest.raises(RuntimeError, match=r"'weight' was not initialized on device cpu\(2\)"):
        parameter.data(cpu(2))
    assert parameter.data("cpu") is parameter.data(cpu(0))
    with pytest.raises(TypeError, match="expected a Device"):
        parameter.data(BOTH)
    assert [gradient.shape for gradient in parameter.list_grad()] == [(2,), (2,)]


def test_without_a_device_the_current_one_chooses_the_replica():
    parameter = Parameter("weight", shape=(2,))
    parameter.initialize(device=BOTH)
    with cpu(1):
        assert parameter.data() is parameter.list_data()[1]
    assert parameter.data() is parameter.list_data()[0]


def test_initialize_on_the_current_device():
    parameter = Parameter("weight", shape=(2,))
    with cpu(1):
        parameter.initialize()
    assert parameter.list_ctx() == [cpu(1)]
    assert parameter.data().device == cpu(1)


def test_reset_device_moves_data_and_keeps_it_where_it_is():
    parameter = ready()
    held = parameter.data()
    parameter.reset_ctx(cpu(0))
    assert parameter.data() is held
    parameter.reset_device(BOTH)
    assert parameter.list_device() == BOTH
    onp.testing.assert_array_equal(parameter.data(cpu(1)).asnumpy(), onp.ones((2, 3)))
    assert parameter.grad(cpu(1)).shape == (2, 3)
    late = deferred()
    late.reset_device(cpu(1))
    assert late.list_device() == [cpu(1)]
    with pytest.raises(RuntimeError, match="has not been initialized"):
        Parameter(shape=(1,)).reset_device(cpu(1))


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))])
@pytest.mark.parametrize("make", [ready, deferred])
def test_copies(make, duplicate):
    parameter = make()
    other = duplicate(parameter)
    other.shape = (2, 3)
    other._finish_deferred_init()
    onp.testing.assert_array_equal(other.data().asnumpy(), onp.ones((2, 3)))
    with autograd.record():
        loss = other.data().sum()
    loss.backward()
    onp.testing.assert_array_equal(other.grad().asnumpy(), onp.ones((2, 3)))


# Constants ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.array([[1.0, 2.0]]), onp.array([[1, 2]], dtype="float32"), [[1, 2]]])
def test_constant_in_both_spellings(value):
    for constant, name in ((Constant(value), "const"), (Constant("table", value), "table")):
        assert constant.name == name
        assert constant.grad_req == "null"
        constant.initialize(init="zeros")
        onp.testing.assert_array_equal(constant.data().asnumpy(), [[1, 2]])
        constant.grad_req = "write"
        assert constant.grad_req == "null"


def test_constant_keeps_dtype_copies_its_value_and_may_be_empty():
    value = np.array([1, 2], dtype="int32")
    constant = gluon.Constant(value)
    value[:] = 0
    constant.initialize()
    assert constant.data().dtype == onp.int32
    onp.testing.assert_array_equal(constant.data().asnumpy(), [1, 2])
    empty = gluon.Constant(np.zeros((0, 2)))
    empty.initialize()
    assert empty.data().shape == (0, 2)
    with pytest.raises(TypeError, match="expected a value"):
        gluon.Constant()
