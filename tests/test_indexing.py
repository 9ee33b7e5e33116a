"""Indexing compared with NumPy: random basic, advanced and mixed keys, reading and writing; views and errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as onp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mxnp import _core
from specs.drive import examples

SHAPES = st.lists(st.integers(0, 4), min_size=0, max_size=4).map(tuple)


@contextmanager
def recording() -> Iterator[None]:
    before = _core.set_recording(True)
    try:
        yield
    finally:
        _core.set_recording(before)


def data_of(shape: tuple[int, ...]) -> onp.ndarray:
    return onp.arange(onp.prod(shape, dtype=int), dtype="int64").reshape(shape)


@st.composite
def basic_entries(draw: Any, size: int) -> Any:
    bound = st.one_of(st.none(), st.integers(-size - 2, size + 2))
    step = st.one_of(st.none(), st.integers(-3, 3).filter(bool))
    choices = [st.builds(slice, bound, bound, step)]
    if size:
        choices.append(st.integers(-size, size - 1))
    return draw(st.one_of(choices))


@st.composite
def keys(draw: Any, shape: tuple[int, ...], *, advanced: bool) -> tuple[Any, ...]:
    """A key for `shape`: entries for some of its axes, in order, with new axes and one ellipsis mixed in."""
    entries: list[Any] = []
    taken = draw(st.integers(0, len(shape)))
    lengths = draw(st.sampled_from([(3,), (2, 3), (1,), ()]))
    axis = 0
    while axis < taken:
        size = shape[axis]
        kind = draw(st.sampled_from(["basic", "array", "mask"])) if advanced else "basic"
        if kind == "array" and size:
            values = draw(st.lists(st.integers(-size, size - 1), min_size=6, max_size=6))
            entries.append(onp.resize(onp.array(values), lengths))
            axis += 1
        elif kind == "mask" and not any(isinstance(e, onp.ndarray) for e in entries):
            width = draw(st.integers(1, taken - axis))
            masked = shape[axis : axis + width]
            bits = draw(st.lists(st.booleans(), min_size=1, max_size=8))
            mask = onp.resize(onp.array(bits), masked)
            # A mask goes with arrays of its own length or one element only; here it stands alone.
            entries.append(mask)
            entries.extend(draw(basic_entries(n)) for n in shape[axis + width : taken])
            break
        else:
            entries.append(draw(basic_entries(size)))
            axis += 1
    for _ in range(draw(st.integers(0, 2))):
        entries.insert(draw(st.integers(0, len(entries))), None)
    if draw(st.booleans()):
        entries.insert(draw(st.integers(0, len(entries))), Ellipsis)
    return tuple(entries)


def ours(key: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(_core.array(e) if isinstance(e, onp.ndarray) else e for e in key)


def check_same(got: _core.ndarray, want: Any) -> None:
    want = onp.asarray(want)
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    onp.testing.assert_array_equal(got.asnumpy(), want)


@examples(300)
@given(st.data())
def test_basic_get_is_numpys_view(data: Any) -> None:
    shape = data.draw(SHAPES)
    key = data.draw(keys(shape, advanced=False))
    x = data_of(shape)
    a = _core.array(x)
    try:
        want = x[key]
    except IndexError:  # an ellipsis moved an integer to an axis that is too short for it
        with pytest.raises(IndexError):
            a[key]
        return
    got = a[key]
    check_same(got, want)
    assert got.same_memory(a)


@examples(300)
@given(st.data())
def test_advanced_get(data: Any) -> None:
    shape = data.draw(SHAPES)
    key = data.draw(keys(shape, advanced=True))
    x = data_of(shape)
    try:
        want = x[key]
    except IndexError:
        with pytest.raises(IndexError):
            _core.array(x)[ours(key)].wait_to_read()  # values of index arrays are checked when they are known
        return
    check_same(_core.array(x)[ours(key)], want)
    check_same(_core.array(x)[key], want)  # NumPy arrays index too


@examples(300)
@given(st.data(), st.booleans(), st.sampled_from(["number", "row", "full"]))
def test_set(data: Any, advanced: bool, kind: str) -> None:
    shape = data.draw(SHAPES)
    key = data.draw(keys(shape, advanced=advanced))
    x = data_of(shape)
    try:
        selected = x[key]
    except IndexError:
        return
    selected = onp.asarray(selected)
    if kind == "number" or selected.ndim == 0:
        value: Any = -7
    elif kind == "row":
        value = -1 - onp.arange(selected.shape[-1], dtype="int64")
    else:
        # Equal indices must get equal values: NumPy does not say which one of several stays.
        value = -selected - 1
    a = _core.array(x)
    x[key] = value
    a[ours(key)] = _core.array(value) if isinstance(value, onp.ndarray) else value
    if kind != "row" or not advanced:  # equal indices get different values from a row: no answer is right
        check_same(a, x)


def test_row_values_of_distinct_indices() -> None:
    x = data_of((3, 4))
    a = _core.array(x)
    x[[2, 0], 1:] = [[1, 2, 3], [4, 5, 6]]
    a[[2, 0], 1:] = [[1, 2, 3], [4, 5, 6]]
    check_same(a, x)
    x[:, [3, 0]] = onp.array([8, 9])
    a[:, [3, 0]] = onp.array([8, 9])
    check_same(a, x)


def test_of_equal_indices_the_last_value_stays() -> None:
    a = _core.array(onp.zeros(3, "int64"))
    a[[1, 1, 2]] = _core.array(onp.array([5, 6, 7]))
    assert a.tolist() == [0, 6, 7]


@pytest.mark.parametrize(
    ("shape", "key"),
    [
        ((3, 4, 5), (0, slice(None), onp.array([1, 2]))),
        ((3, 4, 5), (slice(None), 0, onp.array([1, 2]))),
        ((3, 4, 5), (onp.array([0, 2]), slice(1, 3), onp.array([1, 2]))),
        ((3, 4, 5), (onp.array([[0], [2]]), onp.array([1, 2, 3]), slice(None, None, -1))),
        ((3, 4, 5), (slice(None), onp.array([[0], [2]]), onp.array([1, 2, 3]))),
        ((3, 4, 5), (Ellipsis, onp.array([4, 0]))),
        ((3, 4, 5), (onp.array([0, 1]), None, onp.array([1, 2]))),
        ((3, 4, 5), (True, onp.array([0, 1]))),
        ((3, 4, 5), (False,)),
        ((3, 4, 5), (onp.eye(3, 4, dtype=bool),)),
        ((3, 4, 5), (onp.array([True, False, True]), slice(None), onp.array([1, 3]))),
        ((3, 4, 5), (slice(None), onp.array([True, False, True, False]))),
        ((3, 4), (onp.zeros((3, 4), bool),)),
        ((), (Ellipsis,)),
        ((), (onp.array(True),)),
    ],
)
def test_placement_of_the_new_axes(shape: tuple[int, ...], key: tuple[Any, ...]) -> None:
    x = data_of(shape)
    check_same(_core.array(x)[ours(key)], x[key])
    a = _core.array(x)
    a[ours(key)] = -1
    x[key] = -1
    check_same(a, x)


def test_lists_and_zero_dimensional_arrays_index() -> None:
    x = data_of((4, 3))
    a = _core.array(x)
    check_same(a[[1, 3]], x[[1, 3]])
    check_same(a[[True, False, True, False]], x[[True, False, True, False]])
    check_same(a[[]], x[[]])
    check_same(a[_core.array(onp.array(2))], x[2])
    check_same(a[onp.int64(-1)], x[-1])
    check_same(a[[1, 2], _core.array([2.0, 0.0])], x[[1, 2], [2, 0]])  # labels are float32 in MXNet


def test_float_indices_are_truncated_toward_zero_and_refused_in_numpys_mode() -> None:
    a = _core.array(data_of((5,)))
    index = _core.array([1.9, -0.5, 3.0])
    assert a[index].tolist() == [1, 0, 3]
    assert a[_core.array(2.7)].item() == 2
    before = _core.set_numpy_dtype(True)
    try:
        with pytest.raises(IndexError, match="integer"):
            a[index]
        with pytest.raises(IndexError, match="integer"):
            a[_core.array(2.7)]
    finally:
        _core.set_numpy_dtype(before)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (5, "index 5 is out of bounds for axis 0 with size 3"),
        ((0, -5), "index -5 is out of bounds for axis 1 with size 4"),
        ((0, 0, 0), "too many indices for array: array is 2-dimensional, but 3 were indexed"),
        ((Ellipsis, Ellipsis), "an index can only have a single ellipsis"),
        ("x", "only integers, slices"),
        (1.0, "only integers, slices"),
        (
            onp.ones((2, 2), bool),
            "boolean index did not match indexed array along axis 0; size of axis is 3 but",
        ),
        ((onp.array([0, 1]), onp.array([0, 1, 2])), "shape mismatch: indexing arrays could not be broadcast"),
    ],
)
def test_errors_are_numpys(key: Any, text: str) -> None:
    x = data_of((3, 4))
    with pytest.raises(IndexError, match=text.replace("(", r"\(")):
        x[key]
    with pytest.raises(IndexError, match=text.replace("(", r"\(")):
        _core.array(x)[key]
    with pytest.raises(IndexError):
        _core.array(x)[key] = 0


def test_no_index_makes_more_axes_than_there_may_be() -> None:
    with pytest.raises(IndexError, match="number of dimensions"):
        _core.array(1.0)[(None,) * 65]


def test_an_index_out_of_range_in_data_is_raised_by_the_first_wait_and_writes_nothing() -> None:
    a = _core.array(data_of((3, 4)))
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0 with size 3"):
        a[_core.array(onp.array([0, 3]))].wait_to_read()
    with pytest.raises(IndexError, match="index -5 is out of bounds for axis 1 with size 4"):
        a[:, onp.array([1, -5])] = 9
        a.wait_to_read()
    check_same(a, data_of((3, 4)))


def test_values_that_do_not_fit_are_refused() -> None:
    a = _core.array(data_of((3, 4)))
    with pytest.raises(
        ValueError, match=r"could not broadcast input array from shape \(2,\) into shape \(4,\)"
    ):
        a[0] = [1, 2]
    with pytest.raises(ValueError, match="could not be broadcast"):
        a[[0, 1]] = _core.array([1.0, 2.0])
    with pytest.raises(OverflowError):
        _core.array([1, 2], dtype="int8")[0] = 300
    with pytest.raises(TypeError):
        a[0] = "x"
    with pytest.raises(TypeError):
        del a[0]
    check_same(a, data_of((3, 4)))


def test_large_integers_in_lists_keep_every_bit() -> None:
    a = _core.array(onp.zeros(2, "int64"))
    a[:] = [2**53 + 1, -(2**60) - 1]
    assert a.tolist() == [2**53 + 1, -(2**60) - 1]


def test_aliased_assignment_is_exact() -> None:
    x = data_of((6,))
    a = _core.array(x)
    x[1:] = x[:-1].copy()
    a[1:] = a[:-1]
    check_same(a, x)
    a[::-1] = a
    check_same(a, x[::-1])


def test_in_place_operators_on_parts_reach_the_whole() -> None:
    x = data_of((3, 4)).astype("float32")
    a = _core.array(x)
    a[1] += 10
    x[1] += 10
    a[:, ::2] *= 3
    x[:, ::2] *= 3
    a[[0, 2]] -= 1
    x[[0, 2]] -= 1
    check_same(a, x)
    view = a[0]
    view[:] = 0
    assert a[0].tolist() == [0, 0, 0, 0]


def test_gradients_of_getting_and_setting() -> None:
    x = _core.array([1.0, 2.0, 3.0, 4.0])
    x.attach_grad()
    with recording():
        picked = x[[0, 2, 2]] * _core.array([1.0, 10.0, 100.0])
    picked.backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1, 0, 110, 0]

    with recording():
        y = x * 2
        y[_core.array(onp.array([1, 3]))] = x[:2] * 5
    y.backward(_core.array([1.0, 10.0, 100.0, 1000.0]))
    assert x.grad.tolist() == [2 * 1 + 5 * 10, 5 * 1000, 200, 0]

    with recording():
        z = x * 1
        z[_core.array(onp.array([True, False, False, True]))] = 0
    z.backward()
    assert x.grad.tolist() == [0, 1, 1, 0]


def test_a_write_that_would_spoil_a_gradient_is_refused() -> None:
    x = _core.array([1.0, 2.0, 3.0])
    x.attach_grad()
    with recording():
        with pytest.raises(RuntimeError, match="attach_grad"):
            x[0] = 1
        with pytest.raises(RuntimeError, match="attach_grad"):
            x[[0, 1]] = 1
        y = x * 2
        part = y[:2]
        with pytest.raises(RuntimeError, match="shares its memory"):
            part[0] = 5


def test_iteration_gives_views() -> None:
    a = _core.array(data_of((2, 3)))
    rows = list(a)
    assert [r.tolist() for r in rows] == [[0, 1, 2], [3, 4, 5]]
    rows[1][0] = 9
    assert a.tolist() == [[0, 1, 2], [9, 4, 5]]
    with pytest.raises(TypeError, match="iteration over a 0-d array"):
        iter(_core.array(1.0))
