"""Arrays and other libraries' memory: NumPy, buffers, DLPack, pickling and copies."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import sys
import threading
import weakref
from array import array as stdlib_array
from typing import Any

import numpy as onp
import pytest

from mxnp import _core, np

NUMERIC = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
DTYPES = [*NUMERIC, "float16", "float32", "float64", "complex64", "complex128"]


def sample(dtype: str, shape: tuple[int, ...] = (2, 3, 4)) -> onp.ndarray:
    return onp.arange(onp.prod(shape, dtype=int)).reshape(shape).astype(dtype)


# ---- In: what becomes an array


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("index", [(), (slice(None, None, -1),), (Ellipsis, slice(None, None, 2)), (0,)])
def test_numpy_arrays_keep_dtype_and_values(dtype: str, index: tuple[Any, ...]) -> None:
    x = sample(dtype)[index]
    for view in (x, x.T, onp.asfortranarray(x)):
        a = _core.array(view)
        assert a.dtype == view.dtype
        assert a.flags.c_contiguous
        onp.testing.assert_array_equal(a.asnumpy(), view)


def test_numpy_arrays_are_copied_at_the_call() -> None:
    x = onp.zeros(3)
    a = _core.array(x)
    x[:] = 1
    assert a.tolist() == [0, 0, 0]


@pytest.mark.parametrize("big", [False, True])
def test_foreign_byte_order_and_odd_places(big: bool) -> None:
    n = 100_000 if big else 5
    swapped = onp.arange(n, dtype=onp.dtype("int32").newbyteorder())
    assert _core.array(swapped).dtype == onp.int32
    onp.testing.assert_array_equal(_core.array(swapped).asnumpy(), swapped)
    packed = onp.zeros(n, dtype=[("a", "u1"), ("b", "f8")])
    packed["b"] = onp.arange(n)
    onp.testing.assert_array_equal(_core.array(packed["b"]).asnumpy(), packed["b"])


@pytest.mark.parametrize(
    ("obj", "dtype"),
    [
        (3, "float32"),
        (2.5, "float32"),
        (True, "bool"),
        (1j, "complex64"),
        ([1, 2], "float32"),
        ([True, False], "bool"),
        ([True, 2], "float32"),
        ([1, 2j], "complex64"),
        ([], "float32"),
        (((1, 2), (3, 4)), "float32"),
        (range(3), "float32"),
        (onp.float64(1), "float64"),
        (onp.int8(1), "int8"),
        ([onp.int8(1), onp.int16(2)], "int16"),
        ([onp.arange(2), 1.5], None),
        (stdlib_array("i", [1, 2]), "int32"),
        (memoryview(b"ab"), "uint8"),
        (bytearray(b"ab"), "uint8"),
    ],
)
def test_default_dtypes(obj: Any, dtype: str | None) -> None:
    if dtype is None:
        with pytest.raises(ValueError, match="inhomogeneous"):
            _core.array(obj)
        return
    assert _core.array(obj).dtype == dtype


def test_numpys_mode_has_numpys_dtypes() -> None:
    before = _core.set_numpy_dtype(True)
    try:
        for obj in (3, 2.5, True, 1j, [1, 2], [1.0], [True], [], [[1, 2.5]]):
            assert _core.array(obj).dtype == onp.array(obj).dtype
    finally:
        _core.set_numpy_dtype(before)
    assert _core.array([1]).dtype == "float32"


def test_lists_may_hold_arrays() -> None:
    a, b = _core.array([1, 2]), _core.array([3.5, 4])
    assert _core.array([a, b]).tolist() == [[1, 2], [3.5, 4]]
    assert _core.array([a, b]).dtype == "float32"
    assert _core.array([a[0], 7]).tolist() == [1, 7]
    assert _core.array([a.asnumpy().astype("float64"), b]).dtype == "float64"


class HasArray:
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> onp.ndarray:
        return onp.array([1, 2], dtype="int16")


class HasDLPack:
    def __init__(self, x: onp.ndarray) -> None:
        self.x = x

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.x.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.x.__dlpack_device__()


def test_objects_that_give_arrays() -> None:
    assert _core.array(HasArray()).dtype == "int16"
    assert _core.array(HasDLPack(onp.arange(3, dtype="uint8"))).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "obj", ["abc", None, {1: 2}, object(), [None], ["a"], onp.array(["a"]), b"ab", {1, 2}]
)
def test_what_is_no_number_is_a_type_error(obj: Any) -> None:
    if obj == b"ab":
        assert _core.array(obj).tolist() == [97, 98]
        return
    with pytest.raises((TypeError, ValueError)) as caught:
        _core.array(obj)
    assert isinstance(caught.value, RuntimeError), "mxnp's own class"


def test_bad_lists_raise_numpys_errors_as_mxnps() -> None:
    for obj, error in [([[1, 2], [3]], ValueError), ([1, [2]], ValueError)]:
        with pytest.raises(error, match="inhomogeneous") as caught:
            _core.array(obj)
        assert isinstance(caught.value, RuntimeError)
    with pytest.raises(OverflowError, match="300") as overflow:
        _core.array([300], dtype="int8")
    assert isinstance(overflow.value, RuntimeError)
    with pytest.raises(OverflowError, match="out of bounds for int8"):
        _core.array(300, dtype="int8")


@pytest.mark.parametrize("spelling", ["int32", onp.int32, onp.dtype("int32"), onp.dtype(">i4")])
def test_dtype_spellings(spelling: Any) -> None:
    assert _core.array([1], dtype=spelling).dtype == onp.int32


def test_dtypes_of_python_and_unknown_ones() -> None:
    assert _core.dtype(float) == onp.float64
    assert _core.dtype(int) == onp.int64
    assert _core.dtype(bool) == onp.bool_
    for bad in ("U5", "datetime64[s]", object, None, "nonsense"):
        with pytest.raises(TypeError):
            _core.array([1], dtype=bad) if bad is not None else _core.dtype(bad)


def test_copy_false_shares_or_refuses() -> None:
    x = onp.arange(6, dtype="float32").reshape(2, 3)
    for view in (x, x[:, ::-1], x.T, x[::-1, 1:]):
        a = _core.array(view, copy=False)
        onp.testing.assert_array_equal(a.asnumpy(), view)
        a[...] = a + 10
        onp.testing.assert_array_equal(a.asnumpy(), view)
    assert x[0, 0] >= 10, "writes reach NumPy's memory"
    a = _core.array(x)
    assert _core.array(a, copy=None) is a
    assert _core.array(a, copy=False) is a
    assert _core.array(a, copy=None, dtype="int8").dtype == "int8"
    for obj, keywords in [([1, 2], {}), (a, {"dtype": "int8"}), (1.0, {}), (x, {"dtype": "int8"})]:
        with pytest.raises(ValueError, match="Unable to avoid copy"):
            _core.array(obj, copy=False, **keywords)


def test_shared_memory_that_is_read_only_cannot_be_written() -> None:
    x = onp.arange(3.0)
    x.flags.writeable = False
    a = _core.array(x, copy=False)
    assert not a.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        a[0] = 1


def test_buffers_are_shared() -> None:
    frozen = _core.from_buffer(b"ab")
    assert frozen.tolist() == [97, 98]
    assert not frozen.flags.writeable
    memory = bytearray(b"ab")
    a = _core.from_buffer(memory)
    a += 1
    assert memory == b"bc"
    with pytest.raises(ValueError, match="Unable to avoid copy"):
        _core.from_buffer([1, 2])  # type: ignore[arg-type]


def test_ndmin() -> None:
    assert _core.array(1, ndmin=3).shape == (1, 1, 1)
    assert _core.array([[1, 2]], ndmin=1).shape == (1, 2)
    with pytest.raises(ValueError, match="ndmin"):
        _core.array(1, ndmin=65)


def test_hostile_dlpack_sizes_are_refused() -> None:
    import ctypes

    capsule = _core.array([1, 2]).__dlpack__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address = pointer(capsule, b"dltensor")
    # struct DLTensor { void *data; int32 device[2]; int32 ndim; uint32 dtype; int64 *shape; ... }
    shape = ctypes.cast(address + 24, ctypes.POINTER(ctypes.POINTER(ctypes.c_int64)))[0]

    class Hostile:
        def __dlpack__(self, **keywords: Any) -> Any:
            return capsule

    shape[0] = -5
    with pytest.raises(BufferError, match="negative size"):
        _core.from_dlpack(Hostile())


# ---- Out: values in Python's hands


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_come_back(dtype: str) -> None:
    x = sample(dtype)
    a = _core.array(x)
    assert a.tolist() == x.tolist()
    assert a.item(5) == x.item(5)
    assert type(a.item(5)) is type(x.item(5))
    assert a.item(1, 2, -1) == x.item(1, 2, -1)
    assert a.tobytes() == x.tobytes()
    assert a[..., ::-2].tolist() == x[..., ::-2].tolist()
    assert a.T.tobytes() == x.T.tobytes()
    assert a.itemsize == x.itemsize
    assert a.nbytes == x.nbytes
    assert a.strides == x.strides
    onp.testing.assert_array_equal(a.asnumpy(), x)


def test_asnumpy_is_private_and_writable() -> None:
    a = _core.array([1, 2, 3])
    x = a.asnumpy()
    x[0] = 9
    assert a.tolist() == [1, 2, 3]
    a[1] = 7
    assert x.tolist() == [9, 2, 3]


def test_bfloat16() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = onp.array([1.5, -2, 3e38, float("inf")], dtype=ml_dtypes.bfloat16)
    a = _core.array(x)
    assert a.dtype == x.dtype
    assert a.tolist() == [float(v) for v in x]
    for back in (a.asnumpy(), onp.asarray(a), pickle.loads(pickle.dumps(a)).asnumpy()):
        assert back.dtype == x.dtype
        assert back.tobytes() == x.tobytes()
    assert _core.array([1, 2.5], dtype="bfloat16").tolist() == [1, 2.5]
    with pytest.raises(BufferError):
        memoryview(a)


def test_item_errors() -> None:
    a = _core.array([[1, 2], [3, 4]])
    with pytest.raises(ValueError, match="can only convert an array of size 1"):
        a.item()
    with pytest.raises(IndexError, match="index 4 is out of bounds for axis 0 with size 4"):
        a.item(4)
    with pytest.raises(ValueError, match="incorrect number of indices"):
        a.item(0, 0, 0)
    with pytest.raises(ValueError, match="not a scalar"):
        a.asscalar()


def test_array_protocol() -> None:
    a = _core.array([[1, 2, 3], [4, 5, 6]])
    view = onp.asarray(a)
    assert not view.flags.writeable
    assert not a.__array__().flags.writeable
    assert a.__array__(copy=True).flags.writeable
    assert onp.asarray(a, dtype="int64").dtype == "int64"
    assert onp.array(a).flags.writeable
    onp.testing.assert_array_equal(onp.asarray(a.T), a.asnumpy().T)
    with pytest.raises(ValueError, match="Unable to avoid copy"):
        a.__array__("int8", copy=False)
    a[0, 0] = 9
    assert view[0, 0] == 9, "a write is finished before the call returns: the memory is shared"
    a += 1
    assert view[1].tolist() == [5, 6, 7]


@pytest.mark.parametrize("dtype", DTYPES)
def test_buffers(dtype: str) -> None:
    x = sample(dtype)
    a = _core.array(x)
    lent = memoryview(a)
    assert lent.readonly
    assert (lent.shape, lent.strides, lent.itemsize) == (x.shape, x.strides, x.itemsize)
    onp.testing.assert_array_equal(onp.frombuffer(bytes(lent), dtype).reshape(x.shape), x)
    onp.testing.assert_array_equal(onp.asarray(memoryview(a[:, ::-1])), x[:, ::-1])


def test_writing_through_the_buffer_protocol() -> None:
    import io

    a = _core.array([0, 0], dtype="uint8")
    assert io.BytesIO(b"\x07\x08").readinto(a) == 2
    assert a.tolist() == [7, 8]
    with pytest.raises((BufferError, TypeError)):
        io.BytesIO(b"\x07\x08").readinto(_core.array([[1, 2], [3, 4]], dtype="uint8")[:, 0])


def test_a_lent_buffer_outlives_its_array() -> None:
    a = _core.array(onp.arange(1000.0))
    lent, view = memoryview(a), onp.asarray(a)
    del a
    gc.collect()
    assert lent[999] == 999
    assert view[999] == 999


def test_a_foreign_owner_is_released() -> None:
    x = onp.arange(4.0)
    owner = weakref.ref(x)
    a = _core.array(x, copy=False)
    b = a * 2
    del x
    assert owner() is not None
    assert b.tolist() == [0, 2, 4, 6]
    del a, b
    _core.waitall()
    _core.array(1)  # any call into the module empties the list
    gc.collect()
    assert owner() is None


@pytest.mark.parametrize("dtype", DTYPES)
def test_dlpack_both_ways(dtype: str) -> None:
    x = sample(dtype)
    a = _core.array(x)
    onp.testing.assert_array_equal(onp.from_dlpack(a), x)
    onp.testing.assert_array_equal(onp.from_dlpack(a.T), x.T)
    for view in (x, x[::-1, :, ::2], x.T, x[0, 0, 0]):
        if not isinstance(view, onp.ndarray):
            continue
        b = _core.from_dlpack(view)
        onp.testing.assert_array_equal(b.asnumpy(), view)
    _core.from_dlpack(x)[0, 0, 0] = 1
    assert x[0, 0, 0] == 1, "memory is shared"
    assert _core.from_dlpack(a).same_memory(a) is False
    assert a.__dlpack_device__() == (1, 0)


def test_dlpack_lifetimes_and_flags() -> None:
    a = _core.array([1, 2, 3])
    lent = onp.from_dlpack(a)
    a[0] = 5
    assert lent[0] == 5
    del a
    gc.collect()
    assert lent.tolist() == [5, 2, 3]
    capsule = _core.array([1]).__dlpack__()  # one that nobody takes is deleted with its tensor
    del capsule
    x = onp.arange(3.0)
    owner = weakref.ref(x)
    b = _core.from_dlpack(x)
    del x
    assert owner() is not None
    del b
    _core.array(1)
    gc.collect()
    assert owner() is None
    frozen = onp.arange(3.0)
    frozen.flags.writeable = False
    assert not _core.from_dlpack(frozen).flags.writeable
    assert _core.from_dlpack(frozen, copy=True).flags.writeable
    c = _core.array([1, 2])
    private = onp.from_dlpack(c, copy=True)
    c[0] = 9
    assert private.tolist() == [1, 2]
    with pytest.raises(TypeError, match="__dlpack__"):
        _core.from_dlpack([1, 2])


def test_dlpack_with_torch() -> None:
    torch = pytest.importorskip("torch")
    t = torch.arange(6).reshape(2, 3)
    a = _core.from_dlpack(t)
    t[0, 0] = 9
    assert a.tolist() == [[9, 1, 2], [3, 4, 5]]
    assert torch.from_dlpack(a.T).tolist() == [[9, 3], [1, 4], [2, 5]]


@pytest.mark.parametrize("dtype", DTYPES)
def test_pickles_and_copies(dtype: str) -> None:
    x = sample(dtype)
    a = _core.array(x, device="cpu(1)")
    for b in (pickle.loads(pickle.dumps(a)), copy.copy(a), copy.deepcopy(a)):
        assert (b.dtype, b.shape, b.device) == (a.dtype, a.shape, a.device)
        onp.testing.assert_array_equal(b.asnumpy(), x)
        assert not b.same_memory(a)
    part = pickle.dumps(_core.array(onp.zeros(1_000_000))[:2])
    assert len(part) < 1000, "a view is pickled as what it shows"


def test_weak_references_and_no_hash() -> None:
    a = _core.array([1])
    ref = weakref.ref(a)
    assert ref() is a
    del a
    assert ref() is None
    with pytest.raises(TypeError, match="unhashable"):
        hash(_core.array([1]))


# ---- Waiting for shared memory

WAITING = {
    "assignment": lambda x, y: x.__setitem__(slice(None), y),
    "in place": lambda x, y: x.__iadd__(y),
    "mask": lambda x, y: x.__setitem__(x == 7, y[0, 0]),
    "out": lambda x, y: np.add(x, y, out=x),
    "a reader": lambda x, y: x + y,
    "a view's reader": lambda x, y: x[1] * y[0],
}


@pytest.mark.parametrize("wait", WAITING.values(), ids=WAITING)
@pytest.mark.skipif(os.environ.get("MXNP_ENGINE") == "naive", reason="nothing is pending in the naive engine")
def test_other_threads_run_while_a_call_on_shared_memory_is_waited_for(wait: Any) -> None:
    big = np.ones((400, 400))
    memory = onp.zeros((400, 400), "float32")
    x = _core.from_buffer(memory)
    count, done = [0], threading.Event()

    def run() -> None:
        while not done.is_set():
            count[0] += 1
            os.sched_yield()  # gives up the GIL

    other = threading.Thread(target=run)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)  # from now on a thread has the GIL until it gives it up
    other.start()
    try:
        for _ in range(1000):
            y = big @ big
            y[...] = y @ big
            before = count[0]
            wait(x, y)
            if count[0] != before:
                break
        else:
            pytest.fail("the wait kept the GIL")
    finally:
        done.set()
        sys.setswitchinterval(interval)
        other.join()
