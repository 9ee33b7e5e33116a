"""Result dtypes: NumPy 2's in NumPy's mode for every pair, and MXNet's stated differences in the default mode."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as onp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mxnp import MXNetError, _core, np, npx
from specs.row import ALL, BOOL, COMPLEX, FLOATS, INTS
from specs.tolerance import numpy_dtype

NUMPYS = tuple(
    d for d in ALL if d != "bfloat16"
)  # NumPy has no rule for bfloat16; its rules are written out below
PAIRS = list(itertools.product(NUMPYS, repeat=2))
SCALARS = {"bool": True, "int": 3, "float": 2.5, "complex": 1 + 2j}


@pytest.fixture
def numpy_mode():
    npx.set_np(dtype=True)
    yield
    npx.set_np(dtype=False)


def kind(dtype: str) -> int:
    """bool < integer < float < complex."""
    return 0 if dtype in BOOL else 1 if dtype in INTS else 2 if dtype in FLOATS else 3


def default_mode(a: str, b: str) -> str:
    """The common dtype in the default mode: an integer or bool takes on the inexact dtype beside it."""
    low, high = sorted((a, b), key=kind)
    return high if kind(low) < 2 <= kind(high) else onp.result_type(a, b).name


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_pairs_in_numpys_mode(numpy_mode, a, b):
    want = onp.result_type(a, b)
    assert _core.result_type(onp.dtype(a), onp.dtype(b)) == want
    assert np.add(np.ones((2,), dtype=a), np.ones((2,), dtype=b)).dtype == want
    assert np.promote_types(a, b) == want


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_pairs_in_the_default_mode(a, b):
    want = default_mode(a, b)
    assert _core.result_type(onp.dtype(a), onp.dtype(b)) == want
    assert np.add(np.ones((2,), dtype=a), np.ones((2,), dtype=b)).dtype == want


@pytest.mark.parametrize("numpys", [False, True])
@pytest.mark.parametrize("other", ALL)
def test_bfloat16(other, numpys):
    """bfloat16 with a float that is not it: the smallest dtype that holds both; integers give way to it."""
    want = {
        "float16": "float32",
        "float32": "float32",
        "float64": "float64",
        "complex64": "complex64",
        "complex128": "complex128",
    }.get(other, "bfloat16")
    npx.set_np(dtype=numpys)
    for pair in (("bfloat16", other), (other, "bfloat16")):
        x, y = (np.ones((2,), dtype=d) for d in pair)
        assert (x + y).dtype == numpy_dtype(want)
        assert _core.result_type(x, y) == numpy_dtype(want)


@pytest.mark.parametrize("scalar", SCALARS.values(), ids=SCALARS)
@pytest.mark.parametrize("dtype", NUMPYS)
def test_python_scalars_are_weak(numpy_mode, dtype, scalar):
    want = onp.result_type(onp.dtype(dtype), scalar)
    x = np.ones((2,), dtype=dtype)
    assert (x + scalar).dtype == want
    assert (scalar + x).dtype == want
    assert np.multiply(x, scalar).dtype == want
    assert np.ones((), dtype=dtype).__add__(scalar).dtype == want, "0-d arrays keep their dtype too"


@pytest.mark.parametrize("scalar", SCALARS.values(), ids=SCALARS)
@pytest.mark.parametrize("dtype", NUMPYS)
def test_python_scalars_in_the_default_mode(dtype, scalar):
    """As NumPy's, but a float beside integers gives float32, and a complex number complex64."""
    want = onp.result_type(onp.dtype(dtype), scalar).name
    if kind(dtype) < 2 <= kind(want):
        want = "complex64" if kind(want) == 3 else "float32"
    x = np.ones((2,), dtype=dtype)
    assert (x + scalar).dtype == want
    assert (scalar + x).dtype == want


@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("side", ["left", "right"])
def test_integers_that_do_not_fit(dtype, side):
    """As in NumPy 2: an OverflowError for arithmetic, an honest answer for comparisons."""
    info = onp.iinfo(dtype)
    x = np.array([1, 2], dtype=dtype)
    for value in (info.max + 1, info.min - 1):
        with pytest.raises(
            OverflowError, match=rf"Python integer {value} out of bounds for {dtype}"
        ) as caught:
            (x + value) if side == "right" else (value + x)
        assert isinstance(caught.value, MXNetError)
        y = onp.array([1, 2], dtype)
        for compare in ("__lt__", "__gt__", "__eq__", "__ne__", "__le__", "__ge__"):
            assert getattr(x, compare)(value).tolist() == getattr(y, compare)(value).tolist(), (
                compare,
                value,
            )
    assert (x + info.max - info.max).dtype == dtype


@pytest.mark.parametrize("numpys", [False, True])
@pytest.mark.parametrize("name", ["true_divide", "arctan2", "hypot", "copysign", "logaddexp"])
@pytest.mark.parametrize("dtype", INTS)
def test_integers_that_need_not_fit(numpys, name, dtype):
    """What computes in floating point takes any integer."""
    npx.set_np(dtype=numpys)
    x, value = onp.array([1, 2], dtype), int(onp.iinfo(dtype).max) + 1
    got = getattr(np, name)(np.array(x), value)
    want = getattr(onp, name)(x, value)
    assert got.dtype == (want.dtype if numpys else "float32")
    assert got.asnumpy() == pytest.approx(want, rel=1e-2 if want.itemsize == 2 else 1e-6)


def test_an_integer_beyond_every_dtype():
    x = np.ones((2,), dtype="int64")
    with pytest.raises(OverflowError):
        x + 2**70
    assert (x < 2**70).all()
    assert (np.ones((2,), dtype="float32") + 2**70).dtype == "float32"


FLOATING = ("exp", "log", "sqrt", "sin", "tanh", "true_divide", "arctan2", "expm1")


@pytest.mark.parametrize("name", FLOATING)
@pytest.mark.parametrize("dtype", [d for d in NUMPYS if d not in COMPLEX])
def test_floating_functions(name, dtype):
    """Integers become float32 by default and what NumPy makes of them in its mode."""
    args = [onp.ones((2,), dtype)] * (2 if name in {"true_divide", "arctan2"} else 1)
    want = getattr(onp, name)(*args).dtype
    assert getattr(np, name)(*map(np.array, args)).dtype == (dtype if dtype in FLOATS else "float32")
    npx.set_np(dtype=True)
    assert getattr(np, name)(*map(np.array, args)).dtype == want


@pytest.mark.parametrize("numpys", [False, True])
@pytest.mark.parametrize("name", ["sum", "prod", "cumsum", "cumprod", "max", "mean", "var", "argmax", "any"])
@pytest.mark.parametrize("dtype", NUMPYS)
def test_reductions(name, dtype, numpys):
    """Integer reductions are NumPy's in both modes; means of integers are float32 by default."""
    if dtype in COMPLEX and name in {"max", "argmax", "var"}:
        pytest.skip("complex numbers have no order here")
    want = getattr(onp, name)(onp.ones((2, 2), dtype)).dtype
    if not numpys and name in {"mean", "var"} and kind(dtype) < 2:
        want = onp.dtype("float32")
    npx.set_np(dtype=numpys)
    assert getattr(np, name)(np.ones((2, 2), dtype=dtype)).dtype == want


DEFAULTS = {
    "list of ints": lambda: np.array([1, 2]),
    "list of floats": lambda: np.array([1.5]),
    "arange": lambda: np.arange(3),
    "ones": lambda: np.ones(2),
    "zeros": lambda: np.zeros((2,)),
    "full": lambda: np.full((2,), 3),
    "linspace": lambda: np.linspace(0, 1, 3),
    "eye": lambda: np.eye(2),
    "uniform": lambda: np.random.uniform(size=(2,)),
    "normal": lambda: np.random.normal(size=(2,)),
}


@pytest.mark.parametrize("make", DEFAULTS.values(), ids=DEFAULTS)
def test_defaults(make):
    """Data without a dtype of its own is float32, and NumPy's choice in NumPy's mode."""
    assert make().dtype == "float32"
    npx.set_np(dtype=True)
    ints = [DEFAULTS[name] for name in ("list of ints", "arange", "full")]
    assert make().dtype == ("int64" if make in ints else "float64")


def test_what_keeps_its_dtype():
    assert np.array([True, False]).dtype == "bool"
    assert np.array(onp.arange(3)).dtype == "int64"
    assert np.array(onp.float64(1)).dtype == "float64"
    assert np.array([1 + 2j]).dtype == "complex64"
    assert np.array(onp.ones(2, ml_dtypes.bfloat16)).dtype == ml_dtypes.bfloat16


@given(st.lists(st.sampled_from(NUMPYS), min_size=1, max_size=5))
def test_several_dtypes(dtypes):
    """More than two promote as they do pair by pair, whatever their order, where NumPy's rule is one for sets."""
    npx.set_np(dtype=True)
    try:
        assert np.result_type(*dtypes) == onp.result_type(*dtypes) or len(set(dtypes)) > 2
        joined = np.concatenate([np.ones((1,), dtype=d) for d in dtypes])
        assert joined.dtype == np.result_type(*dtypes)
    finally:
        npx.set_np(dtype=False)


@pytest.mark.parametrize("casting", ["no", "equiv", "safe", "same_kind", "unsafe"])
@pytest.mark.parametrize(("a", "b"), PAIRS[::3])
def test_can_cast(casting, a, b):
    assert np.can_cast(a, b, casting) == onp.can_cast(a, b, casting)


@pytest.mark.parametrize("numpys", [False, True])
@pytest.mark.parametrize(("a", "b"), PAIRS[::2])
def test_in_place(a, b, numpys):
    """`x += y` keeps x's dtype where the cast is of the same kind, and is refused otherwise, as in NumPy."""
    npx.set_np(dtype=numpys)
    x, y = np.ones((2,), dtype=a), np.ones((2,), dtype=b)
    common = _core.result_type(x, y)
    if onp.can_cast(common, a, "same_kind"):
        x += y
        assert x.dtype == a
    else:
        with pytest.raises(TypeError, match=r"[Cc]annot cast"):
            x += y
        assert x.tolist() == [1, 1]
