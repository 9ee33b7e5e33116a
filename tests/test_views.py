"""Views and indices against NumPy: the same values, the same shapes and strides, the same sharing of memory."""

from __future__ import annotations

import numpy as onp
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mxnp import MXNetError, np, npx

SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
DTYPES = st.sampled_from(["int32", "float32", "bool", "int64", "float16", "complex64"])


def counted(shape, dtype="int32"):
    """An array whose elements are all different (as far as the dtype can)."""
    return onp.arange(1, onp.prod(shape, dtype=int) + 1).reshape(shape).astype(dtype)


def twins(shape, dtype="int32"):
    """The same array in NumPy and in mxnp."""
    x = counted(shape, dtype)
    return x.copy(), np.array(x)


def assert_same(y, want, what=""):
    """Equal dtype, shape and elements."""
    got = y.asnumpy()
    assert got.dtype == onp.asarray(want).dtype, what
    assert got.shape == onp.shape(want), what
    onp.testing.assert_array_equal(got, want, err_msg=str(what))


def assert_same_view(y, want, what=""):
    """Equal elements, and the same steps through memory along every axis that has steps."""
    assert_same(y, want, what)
    if want.size:
        steps = [(n, a, b) for n, a, b in zip(want.shape, y.strides, want.strides, strict=True) if n > 1]
        assert all(a == b for _, a, b in steps), f"{what}: strides {y.strides}, NumPy's {want.strides}"


@st.composite
def arrays_and_basic_indices(draw, min_dims=0):
    """(shape, index) of integers, slices, None and an ellipsis."""
    shape = draw(hnp.array_shapes(min_dims=min_dims, max_dims=4, min_side=0, max_side=5))
    return shape, draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True, max_dims=6))


def open_ended(index):
    """The index with an ellipsis, so that NumPy gives a view for a single element too."""
    index = index if isinstance(index, tuple) else (index,)
    return index if any(item is ... for item in index) else (*index, ...)


@given(arrays_and_basic_indices(), DTYPES)
def test_basic_get(case, dtype):
    shape, index = case
    x, a = twins(shape, dtype)
    assert_same_view(
        a[index], x[index] if isinstance(x[index], onp.ndarray) else onp.asarray(x[index]), index
    )


@given(arrays_and_basic_indices())
def test_a_basic_index_is_a_view(case):
    """Writing to the view changes the array, and writing to the array changes the view."""
    shape, index = case
    x, a = twins(shape)
    view, wanted = a[index], x[open_ended(index)]
    view[...] = -view
    wanted[...] = -wanted
    assert_same(a, x, index)
    a += 7
    x += 7
    assert_same(view, wanted, index)


@given(arrays_and_basic_indices(), st.data())
def test_basic_set(case, data):
    shape, index = case
    x, a = twins(shape)
    target = onp.asarray(x[index]).shape
    kept = data.draw(st.integers(0, len(target)))
    shape_of_value = tuple(data.draw(st.sampled_from([n, 1])) for n in target[kept:])
    value = -100 - counted(shape_of_value)
    x[index] = value
    a[index] = np.array(value)
    assert_same(a, x, index)


@given(arrays_and_basic_indices(), st.sampled_from([0, -3, 7.9, True, 2.0]))
def test_basic_set_of_a_number(case, value):
    shape, index = case
    x, a = twins(shape)
    x[index] = value
    a[index] = value
    assert_same(a, x, index)


@given(arrays_and_basic_indices(), DTYPES, DTYPES)
def test_basic_set_casts(case, target, source):
    """The value is converted as NumPy's assignment converts, without asking."""
    assume(not (source.startswith("complex") and not target.startswith("complex")))
    shape, index = case
    x, a = twins(shape, target)
    value = counted(onp.asarray(x[index]).shape, source)
    x[index] = value
    a[index] = np.array(value)
    assert_same(a, x, index)


@given(arrays_and_basic_indices(), st.sampled_from(["__iadd__", "__isub__", "__imul__"]))
def test_in_place_operators_on_views(case, name):
    shape, index = case
    x, a = twins(shape)
    view = x[open_ended(index)]
    getattr(view, name)(3)
    part = a[index]
    assert getattr(part, name)(3) is part
    assert_same(a, x, index)


# ---- Chains of views


@st.composite
def steps(draw, shape):
    """One change of layout that NumPy makes without copying, as (name, function of np and array)."""
    ndim = len(shape)
    kinds = ["index", "transpose", "expand_dims", "reshape"]
    kinds += ["squeeze"] if 1 in shape else []
    kinds += ["flip"] if ndim else []  # that of no axes is a number in NumPy, not a view
    kinds += ["swapaxes", "moveaxis"] if ndim > 1 else []
    kind = draw(st.sampled_from(kinds))
    if kind == "index":
        index = draw(hnp.basic_indices(shape, allow_newaxis=True, max_dims=5))
        return f"[{index}]", lambda xp, x: x[open_ended(index)]
    if kind == "transpose":
        axes = tuple(draw(st.permutations(range(ndim))))
        return f"transpose{axes}", lambda xp, x: xp.transpose(x, axes)
    if kind == "flip":
        axis = draw(st.integers(-ndim, ndim - 1))
        return f"flip({axis})", lambda xp, x: xp.flip(x, axis)
    if kind == "expand_dims":
        axis = draw(st.integers(-ndim - 1, ndim))
        return f"expand_dims({axis})", lambda xp, x: xp.expand_dims(x, axis)
    if kind == "squeeze":
        axis = draw(st.sampled_from([i for i, n in enumerate(shape) if n == 1]))
        return f"squeeze({axis})", lambda xp, x: xp.squeeze(x, axis)
    if kind == "reshape":
        size = int(onp.prod(shape))
        new = draw(st.sampled_from(factored(size)))
        return f"reshape{new}", lambda xp, x: xp.reshape(x, new)
    a, b = draw(st.integers(0, ndim - 1)), draw(st.integers(-ndim, -1))
    return f"{kind}({a},{b})", lambda xp, x: getattr(xp, kind)(x, a, b)


def factored(size):
    """Some shapes of `size` elements."""
    if size == 0:
        return [(0,), (0, 2), (3, 0)]
    out = [(size,), (1, size), (size, 1)]
    out += [(k, size // k) for k in range(2, size) if size % k == 0]
    return out


@given(st.data())
def test_chains_of_views(data):
    """Each view of a chain lies in memory as NumPy's does; a write through the last is seen by all that share."""
    x, a = twins(data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4)))
    wanted, got, names = [x], [a], []
    for _ in range(data.draw(st.integers(1, 5))):
        name, step = data.draw(steps(wanted[-1].shape))
        names.append(name)
        wanted.append(step(onp, wanted[-1]))
        got.append(step(np, got[-1]))
        assert_same(got[-1], wanted[-1], names)
    wanted[-1][...] = -wanted[-1]
    got[-1][...] = -got[-1]
    wanted[0][...] += 1000
    got[0][...] += 1000
    for i, (y, want) in enumerate(zip(got, wanted, strict=True)):
        assert_same(y, want, f"view {i} of {names}")


@given(st.data())
def test_assignment_between_views_of_one_array(data):
    """`a[i] = a[j]` where both overlap: what is read is what was there before."""
    n = data.draw(st.integers(1, 12))
    x, a = twins((n, 3))
    slices = hnp.basic_indices((n, 3), min_dims=1, max_dims=2)
    target = data.draw(slices)
    source = data.draw(slices)
    try:
        x[target] = x[source].copy()
    except ValueError:
        assume(False)
    a[target] = a[source]
    assert_same(a, x, (target, source))


@given(SHAPES, st.data())
def test_broadcast_to(shape, data):
    more = tuple(data.draw(st.lists(st.integers(0, 3), max_size=2)))
    to = more + tuple(data.draw(st.integers(0, 3)) if n == 1 else n for n in shape)
    x, a = twins(shape)
    assert_same(np.broadcast_to(a, to), onp.broadcast_to(x, to))


@given(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, min_side=0, max_side=3))
def test_broadcasting_of_operands(case):
    (x, a), (y, b) = (twins(shape) for shape in case.input_shapes)
    assert_same(a - b, x - y)


@given(SHAPES, SHAPES)
def test_shapes_that_do_not_broadcast(left, right):
    try:
        onp.broadcast_shapes(left, right)
    except ValueError:
        with pytest.raises(ValueError, match="could not be broadcast together") as caught:
            np.zeros(left) + np.zeros(right)
        assert isinstance(caught.value, MXNetError)


# ---- Indices that are arrays


@st.composite
def advanced(draw):
    """(shape, index) with arrays of integers or masks among integers, slices, None and an ellipsis."""
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4))
    common = draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3))
    dotted = draw(st.sampled_from([None, 0, 1, 2]))
    index: list = []
    for axis, size in enumerate(shape):
        if axis == dotted:
            index.append(...)
            continue
        kind = draw(st.sampled_from(["array", "array", "slice", "int", "mask"]))
        if kind == "array":
            index.append(
                draw(hnp.arrays("int64", thinned(draw, common), elements=st.integers(-size, size - 1)))
            )
        elif kind == "mask":
            index.append(draw(hnp.arrays("bool", (size,))))
        elif kind == "int":
            index.append(draw(st.integers(-size, size - 1)))
        else:
            index.append(draw(st.slices(size)))
        if draw(st.integers(0, 7)) == 0:
            index.append(None)
    index = tuple(index[: draw(st.integers(1, len(index)))])
    assume(any(isinstance(item, onp.ndarray) for item in index))
    try:
        counted(shape)[index]
    except IndexError:  # a mask with another number of hits than the arrays beside it
        assume(False)
    return shape, index


def thinned(draw, shape):
    """A shape that broadcasts to `shape`."""
    kept = shape[draw(st.integers(0, len(shape))) :]
    return tuple(draw(st.sampled_from([n, 1])) if n else n for n in kept)


def of_mxnp(index, every):
    """The index with its NumPy arrays turned into mxnp's: all, or every second one."""
    changed = [
        np.array(item) if isinstance(item, onp.ndarray) and (every or i % 2) else item
        for i, item in enumerate(index)
    ]
    return tuple(changed)


@given(advanced(), DTYPES, st.booleans())
def test_advanced_get(case, dtype, every):
    shape, index = case
    x, a = twins(shape, dtype)
    y = a[of_mxnp(index, every)]
    assert_same(y, x[index], index)
    if any(isinstance(item, onp.ndarray) and item.ndim for item in index):
        y[...] = 0
        assert_same(a, x, "a copy, not a view")


@given(advanced(), st.booleans(), st.booleans())
def test_advanced_set(case, every, whole):
    shape, index = case
    x, a = twins(shape)
    value = -counted(x[index].shape) if whole else onp.int32(-5)
    x[index] = value
    a[of_mxnp(index, every)] = np.array(value)
    assert_same(a, x, index)


@given(advanced())
def test_advanced_indices_of_a_view(case):
    shape, index = case
    x, a = twins(shape[::-1])
    assert_same(a.T[index], x.T[index], index)
    x.T[index] = -1
    a.T[index] = -1
    assert_same(a, x, index)


@given(advanced())
def test_in_place_operator_at_an_advanced_index(case):
    """`a[i] += 1` counts an index that is named twice once, as in NumPy."""
    shape, index = case
    x, a = twins(shape)
    x[index] += 10
    a[index] += 10
    assert_same(a, x, index)


@given(st.data())
def test_masks(data):
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4))
    mask = data.draw(hnp.arrays("bool", shape[: data.draw(st.integers(0, len(shape)))]))
    x, a = twins(shape)
    assert_same(a[np.array(mask)], x[mask])
    assert_same(a[mask], x[mask])
    x[mask] = -1
    a[np.array(mask)] = -1
    assert_same(a, x)


def test_lists_are_indices():
    x, a = twins((3, 4))
    assert_same(a[[2, 0]], x[[2, 0]])
    assert_same(a[[2, 0], [1, 3]], x[[2, 0], [1, 3]])
    assert_same(a[[[0, 1], [2, 0]]], x[[[0, 1], [2, 0]]])
    assert_same(a[[True, False, True]], x[[True, False, True]])
    assert_same(a[[]], x[[]])


def test_float_arrays_are_indices_where_mxnets_dtypes_hold():
    """Labels are float32 everywhere in MXNet programs; in NumPy's mode they are refused as NumPy does."""
    x, a = twins((3, 4))
    labels = np.array([2.0, 0.0, 1.9])
    assert_same(a[labels], x[[2, 0, 1]])
    assert_same(a[[0, 1, 2], labels], x[[0, 1, 2], [2, 0, 1]])
    npx.set_np(dtype=True)
    with pytest.raises(IndexError, match="integer"):
        a[labels]


# ---- Errors: NumPy's class and the words its users match on

ERRORS = [
    (lambda a: a[3], r"index 3 is out of bounds for axis 0 with size 3"),
    (lambda a: a[-4], r"index -4 is out of bounds for axis 0 with size 3"),
    (lambda a: a[0, 9], r"index 9 is out of bounds for axis 1 with size 4"),
    (lambda a: a[0, 0, 0], r"too many indices for array: array is 2-dimensional, but 3 were indexed"),
    (lambda a: a[..., ...], r"an index can only have a single ellipsis"),
    (lambda a: a["x"], r"only integers, slices|integer"),
    (lambda a: a[1.5], r"only integers, slices|integer"),
    (lambda a: a[onp.array([True, False])], r"boolean index did not match"),
    (
        lambda a: a[onp.array([0, 1]), onp.array([0, 1, 2])],
        r"shape mismatch: indexing arrays could not be broadcast",
    ),
]


@pytest.mark.parametrize(("get", "match"), ERRORS)
def test_bad_indices(get, match):
    x, a = twins((3, 4))
    with pytest.raises(IndexError):
        get(x)
    with pytest.raises(IndexError, match=match) as caught:
        get(a)
    assert isinstance(caught.value, MXNetError)


def test_a_slice_step_of_zero():
    with pytest.raises(ValueError, match="slice step cannot be zero"):
        np.zeros((3,))[::0]


@pytest.mark.parametrize("index", [slice(None), [0, 1, 2], onp.array([True, True, True])])
def test_a_value_that_does_not_fit(index):
    a = np.zeros((3, 4))
    with pytest.raises(ValueError, match="could not") as caught:
        a[index] = np.ones((2,))
    assert isinstance(caught.value, MXNetError)
    assert_same(a, onp.zeros((3, 4), "float32"), "nothing was written")


@pytest.mark.parametrize("write", [False, True])
def test_indices_out_of_range_in_an_array(write):
    """Only the data shows it: the wait says so at the latest, and a write leaves all as it was."""
    a = np.array(counted((3, 4)))
    with pytest.raises(IndexError, match="index 5 is out of bounds for axis 0 with size 3"):
        if write:
            a[np.array([0, 5], dtype="int64")] = 0
            a.wait_to_read()
        else:
            a[np.array([0, 5], dtype="int64")].wait_to_read()
    assert_same(a, counted((3, 4)))
