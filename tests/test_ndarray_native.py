"""The native parts of arrays: operators, scalars, devices, ufuncs, op calls and gradients through `_core`."""

from __future__ import annotations

import inspect
import operator
import pickle
from typing import Any

import numpy as onp
import pytest

from mxnp import _core

BINARY = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
]
COMPARE = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
BITS = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]

# NumPy's ufuncs on our arrays are ours once there is a Ufunc of that name; `mxnp.np` makes them at import.
for name in ("add", "subtract", "multiply", "true_divide", "floor_divide", "mod", "power", "matmul"):
    _core._ufunc(name, name)
for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
    _core._ufunc(name, name)


@pytest.mark.parametrize("op", BINARY + COMPARE)
def test_operators_and_their_reflections(op: Any) -> None:
    x, y = onp.array([1.0, 2.5, 4.0], "float32"), onp.array([[2.0], [3.0]], "float32")
    a, b = _core.array(x), _core.array(y)
    for got, want in [
        (op(a, b), op(x, y)),
        (op(a, 2), op(x, 2)),
        (op(2, a), op(2, x)),
        (op(a, 2.5), op(x, 2.5)),
        (op(2.5, a), op(2.5, x)),
        (op(a, y), op(x, y)),
        (op(x, b), op(x, y)),
        (op(a, [1, 2, 3]), op(x, onp.array([1, 2, 3], "float32"))),
    ]:
        assert type(got) is _core.ndarray
        assert got.dtype == want.dtype
        onp.testing.assert_allclose(got.asnumpy(), want, rtol=1e-6)


@pytest.mark.parametrize("op", BITS)
def test_bit_operators(op: Any) -> None:
    x = onp.array([1, 2, 5], "int32")
    a = _core.array(x)
    for got, want in [(op(a, a), op(x, x)), (op(a, 3), op(x, 3)), (op(3, a), op(3, x))]:
        assert got.dtype == want.dtype
        assert got.tolist() == want.tolist()
    with pytest.raises(TypeError):
        op(_core.array([1.0]), 1)


def test_unary_operators_matmul_and_divmod() -> None:
    x = onp.array([[1.0, -2.0], [3.0, 4.0]], "float32")
    a = _core.array(x)
    assert (-a).tolist() == (-x).tolist()
    assert (+a).tolist() == x.tolist()
    assert abs(a).tolist() == abs(x).tolist()
    assert (~_core.array(onp.array([1, 2]))).tolist() == [-2, -3]
    assert (a @ a).tolist() == (x @ x).tolist()
    assert (x @ a).tolist() == (x @ x).tolist()
    quotient, rest = divmod(a, 2)
    assert quotient.tolist() == (x // 2).tolist()
    assert rest.tolist() == (x % 2).tolist()
    quotient, rest = divmod(7, _core.array([2.0, 4.0]))
    assert (quotient.tolist(), rest.tolist()) == ([3, 1], [1, 3])
    with pytest.raises(TypeError, match="modulus"):
        pow(a, 2, 3)


@pytest.mark.parametrize("op", ["iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow"])
def test_in_place_operators_write_the_same_memory(op: str) -> None:
    x = onp.array([1.0, 2.0, 5.0], "float32")
    a = _core.array(x)
    view = a[:]
    inplace = getattr(operator, op)
    for other in (2, 0.5, onp.array([1.0, 2.0, 3.0]), [3, 2, 1]):
        result = inplace(a, _core.array(other) if isinstance(other, list) else other)
        assert result is a
        x = inplace(x, onp.array(other, "float32") if isinstance(other, list) else other)
        onp.testing.assert_allclose(view.asnumpy(), x, rtol=1e-6)
        assert a.dtype == "float32"
    a += a
    onp.testing.assert_allclose(a.asnumpy(), x + x, rtol=1e-6)


def test_in_place_conversions_follow_the_same_kind_rule() -> None:
    a = _core.array([1, 2], dtype="int32")
    with pytest.raises(TypeError, match="same_kind"):
        a += 1.5
    assert a.tolist() == [1, 2]
    with pytest.raises(ValueError, match="broadcast"):
        a += _core.array([[1, 2], [3, 4]], dtype="int32")


def test_scalars_out_of_range_are_overflow_errors() -> None:
    a = _core.array([1, 2], dtype="int8")
    for bad in (300, -(2**40), 2**200):
        with pytest.raises(OverflowError):
            a + bad
    assert (a == 300).tolist() == [False, False]
    big = _core.array([1], dtype="uint64")
    assert (big + (2**64 - 2)).tolist() == [2**64 - 1]


def test_truth_and_numbers() -> None:
    assert bool(_core.array([[3]]))
    assert not bool(_core.array(0.0))
    assert float(_core.array([[1.5]])) == 1.5
    assert int(_core.array([2.9])) == 2
    assert complex(_core.array(1j)) == 1j
    assert [10, 20, 30][_core.array(onp.array(1))] == 20
    assert f"{_core.array([1.256]):.2f}" == "1.26"
    assert "%d %.1f" % (_core.array([3]), _core.array(2.5)) == "3 2.5"  # noqa: UP031
    for bad in ([1, 2], []):
        with pytest.raises(ValueError, match="ambiguous"):
            bool(_core.array(bad))
        with pytest.raises(TypeError, match="only length-1 arrays"):
            float(_core.array(bad))
    with pytest.raises(TypeError, match="only integer scalar arrays"):
        operator.index(_core.array(1.0))
    with pytest.raises(TypeError, match="len\\(\\) of unsized object"):
        len(_core.array(1))
    assert len(_core.array([[1], [2]])) == 2
    assert 2 in _core.array([1, 2])
    assert 3 not in _core.array([1, 2])
    assert "x" not in _core.array([1, 2])


def test_facts_cannot_be_set() -> None:
    a = _core.array([[1, 2]])
    assert (a.shape, a.ndim, a.size, a.strides) == ((1, 2), 2, 2, (8, 4))
    for name in ("shape", "dtype", "strides", "T", "grad", "size"):
        with pytest.raises(AttributeError):
            setattr(a, name, None)


def test_broadcasting_errors_are_raised_on_the_line() -> None:
    with pytest.raises(ValueError, match=r"could not be broadcast together with shapes \(2,\) \(3,\)"):
        _core.array([1, 2]) + _core.array([1, 2, 3])


# ---- Devices


def test_devices() -> None:
    d = _core.Device("cpu", 1)
    assert (d.device_type, d.device_id, d.device_typeid, repr(d), str(d)) == ("cpu", 1, 1, "cpu(1)", "cpu(1)")
    assert d == _core.Device("cpu(1)") == _core.Device(d) == _core.Device(1, 1)
    assert d != _core.Device("cpu")
    assert d != "cpu(1)"
    assert len({d, _core.Device("cpu", 1), _core.Device("gpu", 1)}) == 2
    assert pickle.loads(pickle.dumps(d)) == d
    assert _core.Device("cuda:2") == _core.Device("gpu", 2)
    for bad in ("tpu", "cpu(x)", 9, None, ("cpu", -1)):
        with pytest.raises((ValueError, TypeError)):
            _core.Device(*bad) if isinstance(bad, tuple) else _core.Device(bad)


def test_device_blocks_nest_and_are_per_thread() -> None:
    import threading

    assert repr(_core.current_device()) == "cpu(0)"
    with _core.Device("cpu", 1):
        assert _core.array(1).device == _core.Device("cpu", 1)
        with _core.Device("cpu", 2):
            assert repr(_core.current_device()) == "cpu(2)"
            seen: list[str] = []
            thread = threading.Thread(target=lambda: seen.append(repr(_core.current_device())))
            thread.start()
            thread.join()
            assert seen == ["cpu(0)"]
        assert repr(_core.current_device()) == "cpu(1)"
        assert _core.op("full")(1.0, shape=(2,), dtype="float32").device == _core.current_device()
        assert _core.op("full")(1.0, shape=(2,), dtype="float32", device="cpu(5)").device.device_id == 5
    assert repr(_core.current_device()) == "cpu(0)"


def test_arrays_move_and_do_not_mix() -> None:
    a = _core.array([1, 2])
    b = a.as_in_ctx(_core.Device("cpu", 1))
    assert repr(b.ctx) == repr(b.device) == repr(b.context) == "cpu(1)"
    assert not b.same_memory(a)
    assert a.to_device("cpu") is a
    assert b.as_in_context("cpu").tolist() == [1, 2]
    with pytest.raises(ValueError, match="different devices: cpu\\(0\\) and cpu\\(1\\)"):
        a + b
    assert (b + onp.ones(2)).device == b.device
    with pytest.raises(NotImplementedError, match="gpu"):
        a.as_in_ctx("gpu")
    with pytest.raises(NotImplementedError, match="gpu"):
        _core.array([1], device="gpu")


def test_gradients_move_between_devices() -> None:
    x = _core.array([1.0, 2.0])
    x.attach_grad()
    _core.set_recording(True)
    y = (x * 3).as_in_ctx("cpu(1)") * _core.array([1.0, 10.0], device="cpu(1)")
    _core.set_recording(False)
    y.backward()
    assert x.grad is not None
    assert x.grad.device == x.device
    assert x.grad.tolist() == [3, 30]


# ---- Ufuncs and ops


def test_ufunc_calls() -> None:
    add = _core.Ufunc("add", "test_add", "Adds.")
    a = _core.array([1.0, 2.0])
    assert (add.nin, add.nout, add.nargs, add.__name__, add.__doc__) == (2, 1, 3, "test_add", "Adds.")
    assert list(inspect.signature(add).parameters)[:3] == ["x1", "x2", "out"]
    assert add(a, 1).tolist() == [2, 3]
    assert add(1, 2).item() == 3
    assert add([1, 2], a).tolist() == [2, 4]
    out = _core.array([0.0, 0.0])
    assert add(a, 1, out) is out
    assert add(a, 1, out=out) is out
    assert add(a, 1, out=(out,)) is out
    assert out.tolist() == [2, 3]
    assert add(a, 1, dtype="float64").dtype == "float64"
    assert add(a, 1, out=None, where=True, casting="same_kind", order="K").tolist() == [2, 3]
    assert pickle.loads(pickle.dumps(add)) is add
    for call, text in [
        (lambda: add(a), "positional arguments"),
        (lambda: add(a, 1, out, 2), "positional arguments"),
        (lambda: add(a, 1, nonsense=2), "nonsense"),
        (lambda: add(a, 1, out=onp.zeros(2)), "ArrayType"),
        (lambda: add(a, "x"), "cannot become an array"),
        (lambda: add(a, 1, out, out=out), "both"),
        (lambda: add(a, 1.5, dtype="int32"), "Cannot cast"),
        (lambda: add(a, 1, out=_core.array([0, 0], dtype="int8")), "same_kind"),
    ]:
        with pytest.raises(TypeError, match=text):
            call()
    with pytest.raises(ValueError, match="casting"):
        add(a, 1, casting="odd")
    assert add.reduce(a).item() == 3  # by what it computes, not by its name


def test_ufunc_where() -> None:
    add = _core.Ufunc("add", "test_add")
    a = _core.array([1.0, 2.0, 3.0])
    mask = _core.array([True, False, True])
    assert add(a, 1, where=mask).tolist() == [2, 0, 4]
    out = _core.array([7.0, 7.0, 7.0])
    assert add(a, 1, out=out, where=mask) is out
    assert out.tolist() == [2, 7, 4]


def test_op_calls() -> None:
    total = _core.op("sum")
    assert total is _core.op("sum")
    assert total.gradient == "vjp"
    assert total.arity == (1, 1)
    a = _core.array([[1, 2], [3, 4]])
    assert total(a, axis=0).tolist() == [4, 6]
    assert total(a, axis=(0, 1), keepdims=True).tolist() == [[10]]
    assert total(a, axis=onp.int64(1), dtype=onp.float64).dtype == "float64"
    assert _core.call("sum", [a], axis=_core.array(onp.array(0))).tolist() == [4, 6]
    out = _core.array([0.0, 0.0])
    assert total(a, axis=0, out=out) is out
    assert out.tolist() == [4, 6]
    with pytest.raises(ValueError, match="axis 2 is out of bounds for array of dimension 2"):
        total(a, axis=2)
    with pytest.raises(IndexError):
        total(a, axis=2)
    with pytest.raises(TypeError, match="unexpected keyword argument 'foo'"):
        total(a, foo=1)
    with pytest.raises(TypeError, match="axis"):
        total(a, axis="x")
    with pytest.raises(TypeError, match="takes 1 arrays, got 2"):
        total(a, a)
    with pytest.raises(AttributeError, match="nothing_like_this"):
        _core.op("nothing_like_this")


def test_every_op_says_what_it_is() -> None:
    names = _core.op_names()
    assert len(names) == len(set(names))
    for name in names:
        found = _core.op(name)
        assert found.name == name
        assert found.gradient
        assert found.arity[1] is None or found.arity[0] <= found.arity[1]


def test_types_of_results() -> None:
    a = _core.array([1], dtype="int32")
    assert _core.result_type(a, 2.5) == "float32"
    assert _core.result_type(a, onp.float64) == "float64"
    assert _core.result_type("int8", "uint8") == "int16"
    assert _core.promote_types("int32", "float16") == "float16"
    assert _core.can_cast("int8", "int16")
    assert not _core.can_cast("float32", "int32", "same_kind")
    assert _core.can_cast(a, "int8", "same_kind")


# ---- Gradients


def test_gradient_objects() -> None:
    x = _core.array([1.0, 2.0])
    assert x.grad is None
    x.attach_grad()
    assert _core.grad_req(x) == "write"
    g = x.grad
    assert g is not None
    assert g is x.grad
    assert g.tolist() == [0, 0]
    for _ in range(2):
        _core.set_recording(True)
        y = x * x
        _core.set_recording(False)
        y.backward()
        assert g.tolist() == [2, 4]
        assert x.grad is g
    with pytest.raises(ValueError, match="grad_req"):
        x.attach_grad("sometimes")
    x.drop_grad()
    assert x.grad is None


def test_add_and_head_gradients() -> None:
    x = _core.array([1.0, 2.0])
    x.attach_grad("add")
    for _ in range(3):
        _core.set_recording(True)
        y = x * 3
        _core.set_recording(False)
        _core.backward([y], [_core.array([1.0, 10.0])])
    assert x.grad is not None
    assert x.grad.tolist() == [9, 90]
    with pytest.raises(ValueError, match="1 heads, but 2 head gradients"):
        _core.backward([y], [None, None])
    with pytest.raises(TypeError, match="takes arrays, got int"):
        _core.backward([3])


def test_higher_gradients() -> None:
    x = _core.array([2.0])
    x.attach_grad()
    _core.set_recording(True)
    y = x * x * x
    (first,) = _core.grad([y], [x], create_graph=True)
    _core.set_recording(False)
    first.backward()
    assert first.tolist() == [12]
    assert x.grad is not None
    assert x.grad.tolist() == [12]


def test_marked_variables() -> None:
    x, g = _core.array([1.0]), _core.array([0.0])
    _core.mark_variables([x], [g])
    assert x.grad is g
    _core.set_recording(True)
    y = x * 5
    _core.set_recording(False)
    y.backward()
    assert g.tolist() == [5]


def test_a_users_rule_and_its_own_exception() -> None:
    x = _core.array([1.0, 2.0])
    x.attach_grad()
    seen: list[Any] = []

    def rule(heads: list[Any]) -> list[Any]:
        seen.append([h.tolist() for h in heads])
        return [heads[0] * 100]

    _core.set_recording(True)
    y = _core.array([5.0, 6.0])
    _core.record_custom([x], [y], rule)
    z = y * 2
    _core.set_recording(False)
    z.backward()
    assert seen == [[[2, 2]]]
    assert x.grad is not None
    assert x.grad.tolist() == [200, 200]

    class Mine(Exception):
        pass

    def broken(heads: list[Any]) -> list[Any]:
        raise Mine("text")

    _core.set_recording(True)
    y = _core.array([5.0, 6.0])
    _core.record_custom([x], [y], broken)
    _core.set_recording(False)
    with pytest.raises(Mine, match="text"):
        y.backward()
    assert (_core.array([1.0]) + 1).item() == 2
