"""Odd input against NumPy, in NumPy's mode: its values where it answers, its class (and MXNetError) where it raises."""

import itertools
import warnings

import numpy as onp
import pytest

from mxnp import MXNetError, autograd, np, npx

U8 = onp.array([3, 5, 250], "uint8")
I64 = onp.array([2**63 - 1, -(2**63), 0], "int64")
INF = onp.array([onp.inf, -onp.inf, onp.nan, -1.5, -0.0])
Z = onp.array([1 + 2j, -1j], "complex64")
CUBE = onp.arange(24.0).reshape(2, 3, 4)
TURNED = onp.arange(6.0).reshape(2, 3).T
INTS = onp.array([[1, -2], [3, 4]])


@pytest.fixture(autouse=True)
def numpy_mode():
    npx.set_np(dtype=True)
    yield
    npx.set_np()


def place(x):
    """`x` with its layout: what is transposed in NumPy is transposed here."""
    if not isinstance(x, onp.ndarray):
        return x
    return np.array(x.T).T if x.ndim > 1 and x.flags.f_contiguous else np.array(x)


ANSWERS = {
    "modf of infinities": lambda m, f: m.modf(f(INF)),
    "modf of integers": lambda m, f: m.modf(f(onp.array([3, -2], "int64"))),
    "isclose of unsigned": lambda m, f: m.isclose(f(U8), f(U8[::-1].copy()), atol=300),
    "isclose of the least integer": lambda m, f: m.isclose(f(I64), 0),
    "float_power of complex": lambda m, f: m.float_power(f(Z), f(Z)),
    "float_power to complex": lambda m, f: m.float_power(f(CUBE[0, 0].astype("float32")), f(Z[:1])),
    "logaddexp2 of half and int": lambda m, f: m.logaddexp2(
        f(onp.array([1.5, 2.25], "float16")), f(onp.array([3, 4], "int32"))
    ),
    "linalg.diagonal": lambda m, f: m.linalg.diagonal(f(CUBE), offset=1),
    "linalg.trace": lambda m, f: m.linalg.trace(f(CUBE), offset=-1),
    "matrix norm of integers": lambda m, f: m.linalg.norm(f(INTS), ord=1),
    "ravel A": lambda m, f: m.ravel(f(TURNED), order="A"),
    "ravel K": lambda m, f: m.ravel(f(TURNED), order="K"),
    "ravel K of a broadcast row": lambda m, f: m.ravel(m.broadcast_to(f(CUBE[0, 0]), (2, 4)), order="K"),
    "reshape A": lambda m, f: m.reshape(f(TURNED), (2, 3), order="A"),
    "flatten A": lambda m, f: f(TURNED).flatten("A"),
    "ravel A of rows": lambda m, f: m.ravel(f(CUBE), order="A"),
    "median of no lines": lambda m, f: m.median(f(onp.ones((0, 3))), axis=1),
    "median of nothing": lambda m, f: m.median(f(onp.ones((0, 3), "float32"))),
    "median of empty lines": lambda m, f: m.median(f(onp.ones((2, 0), "int64")), axis=1, keepdims=True),
    "median beside infinity": lambda m, f: m.median(f(onp.array([-onp.inf, 2, onp.inf, 1, 3]))),
    "median of infinities": lambda m, f: m.median(f(onp.array([onp.inf, 2, onp.inf, onp.inf]))),
    **{
        f"{method} quantile beside infinity": lambda m, f, method=method: m.quantile(
            f(onp.array([1.0, onp.inf, -onp.inf])), 0.6, method=method
        )
        for method in ("lower", "higher", "nearest", "linear")
    },
    "quantile of the greatest numbers": lambda m, f: m.quantile(f(onp.array([1e308, 1.2e308])), 0.25),
    "clip by integers of a wider range": lambda m, f: m.clip(f(U8), -5, 300),
    "clip below only, by a lesser integer": lambda m, f: m.clip(f(U8), -(2**70), None),
    "clip above only, by a greater integer": lambda m, f: m.clip(f(I64), None, 2**63),
    "clip by an integer and a fraction": lambda m, f: m.clip(f(U8), -1, 4.5),
    "division by an integer of a wider range": lambda m, f: m.divide(f(onp.array([-7, 5], "int8")), 300),
    "an integer of a wider range divided": lambda m, f: m.divide(2**70, f(U8)),
    "arctan2 of an integer of a wider range": lambda m, f: m.arctan2(f(onp.array([-7, 5], "int16")), 70000),
    "copysign by a negative integer": lambda m, f: m.copysign(f(U8), -1),
    **{
        f"uint64 to the power of {dtype}": lambda m, f, dtype=dtype: m.power(
            f(onp.array([3, 2, 0], "uint64")), f(onp.array([2, -1, 3], dtype))
        )
        for dtype in ("int8", "int32", "int64")
    },
    "mean where": lambda m, f: m.mean(f(CUBE.astype("float32")), where=f(CUBE > 5)),
    "std where of no spread": lambda m, f: m.std(
        f(onp.ones(3, "float32")), where=f(onp.array([True, True, False]))
    ),
    "var where along an axis": lambda m, f: m.var(f(CUBE), axis=1, where=f(CUBE % 5 > 0)),
    "full from a row": lambda m, f: m.full((2, 4), f(CUBE[0, 0])),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_answers(name):
    with warnings.catch_warnings(action="ignore"):
        expected = ANSWERS[name](onp, lambda x: x)
    found = ANSWERS[name](np, place)
    pairs = zip(expected, found, strict=True) if isinstance(expected, tuple) else [(expected, found)]
    for want, got in pairs:
        want = onp.asarray(want)
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        onp.testing.assert_allclose(got.asnumpy(), want, rtol=1e-6 if want.dtype.itemsize < 8 else 1e-12)
        if want.dtype.kind == "f":
            onp.testing.assert_array_equal(onp.signbit(got.asnumpy()), onp.signbit(want))


def test_quantiles_on_and_beside_infinity():
    """NumPy gives NaN for some of these; where the two in question are opposite infinities, so does mxnp."""
    x = np.array([1, -onp.inf, onp.inf, 2])
    assert np.quantile(x, np.array([0, 1, 0.5, 0.2, 0.8])).tolist() == [
        -onp.inf,
        onp.inf,
        1.5,
        -onp.inf,
        onp.inf,
    ]
    assert onp.isnan(np.quantile(x[1:3], 0.5).item())


def store(value, dtype, key=slice(None)):
    def run(m, f):
        x = f(onp.zeros(3, dtype))
        x[key] = value

    return run


def multiply_into(m, f):
    x = f(onp.arange(5.0))
    x @= x


REFUSALS = {
    "NaN into integers": (store(onp.nan, "int32"), "NaN"),
    "NaN into one integer": (store(onp.nan, "uint8", 0), "NaN"),
    "NaN into listed integers": (store(onp.nan, "int64", [0, 1]), "NaN"),
    "infinity into integers": (store(float("inf"), "int16"), "infinity"),
    "a complex number into floats": (store(1j, "float32"), "complex"),
    "a complex number into integers": (store(1j, "int8", [0, 2]), "complex"),
    "clip by an integer that excludes all": (lambda m, f: m.clip(f(U8), 300, None), "300 out of bounds"),
    "a range beyond any memory": (lambda m, f: m.arange(0, 1e30), "Maximum allowed size exceeded"),
    "full out of range": (lambda m, f: m.full(3, 300, dtype="int8"), "300 out of bounds for int8"),
    "full of a wider value": (lambda m, f: m.full((1,), f(onp.arange(3))), r"\(3,\) into shape \(1,\)"),
    "full of a deeper value": (lambda m, f: m.full((3,), f(onp.ones((2, 3)))), r"\(2, 3\) into shape"),
    "sum into more axes": (lambda m, f: m.sum(f(onp.ones(3)), out=f(onp.ones(3))), "output operand"),
    "max into more rows": (
        lambda m, f: m.max(f(onp.ones((2, 3))), axis=0, out=f(onp.ones((2, 3)))),
        "output operand",
    ),
    "a product into its operand": (multiply_into, "output operand"),
    "a size that is no integer": (lambda m, f: m.zeros((1.5,)), "shape: 'float' object"),
    "a size that is text": (lambda m, f: m.ones("a"), "shape: 'str' object"),
    "a shape of one float": (lambda m, f: m.reshape(f(onp.ones(1)), 1.0), "shape: 'float' object"),
    "an axis that is text": (lambda m, f: m.diff(f(onp.ones(3)), axis="a"), "'str' object"),
    "rows that are no integer": (lambda m, f: m.eye(1.5), "'float' object"),
    "an axis with a fraction": (lambda m, f: m.sum(f(onp.ones(3)), axis=1.5), "got 1.5"),
    "decimals that are text": (lambda m, f: m.round(f(onp.ones(1)), "a"), "decimals: 'str' object"),
    "order K of reshape": (lambda m, f: m.reshape(f(CUBE), -1, order="K"), "order"),
    "an unknown order": (lambda m, f: m.ravel(f(onp.ones((0, 3))), order="z"), "order"),
    "vecdot of a number": (lambda m, f: m.vecdot(f(onp.ones(3)), f(onp.array(1.0))), "vecdot"),
    "bins without an axis": (
        lambda m, f: m.digitize(f(onp.ones(3)), f(onp.array(1.0))),
        "digitize: object of too",
    ),
    "complex bins": (lambda m, f: m.digitize(f(onp.ones(2)), f(Z)), "digitize: x and bins"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name):
    run, text = REFUSALS[name]
    with pytest.raises((OverflowError, IndexError, TypeError, ValueError)) as expected:
        run(onp, lambda x: x.copy())
    base = next(
        c for c in (OverflowError, IndexError, TypeError, ValueError) if isinstance(expected.value, c)
    )
    with pytest.raises(MXNetError, match=text) as found:
        run(np, np.array)
    assert isinstance(found.value, base)
    assert "Float(" not in str(found.value)


def test_full_of_nan_has_no_integer():
    with pytest.raises(ValueError, match="full: cannot convert float NaN") as found:
        np.full(3, float("nan"), dtype="int8")
    assert isinstance(found.value, MXNetError)


def test_slice_axis_names_the_axis():
    with pytest.raises(MXNetError, match="axis 1 is out of bounds"):
        np.ones(3).slice_axis(1, 0, 1)
    with pytest.raises(MXNetError, match="axis 0 is out of bounds"):
        np.ones(()).slice_axis(0, 0, 1)


def test_logaddexp2_keeps_a_number_weak():
    assert np.logaddexp2(np.ones(2, dtype="float16"), 1.0).dtype == onp.float16


def test_rounding_to_more_places_than_a_double_has():
    assert np.round(np.array([15]), -400).item() == 0


DRAWS = {
    "rayleigh": lambda m: m.random.rayleigh(-1, size=2),
    "weibull": lambda m: m.random.weibull(-1, size=2),
    "pareto": lambda m: m.random.pareto(0, size=2),
    "power": lambda m: m.random.power(onp.nan, size=2),
    "laplace": lambda m: m.random.laplace(0, -1, 2),
    "gumbel": lambda m: m.random.gumbel(0, -1, 2),
    "logistic": lambda m: m.random.logistic(0, -1, 2),
}


@pytest.mark.parametrize("name", DRAWS)
def test_parameters_outside_a_distribution(name):
    with pytest.raises(ValueError, match=rf"{name}: .* must be (positive|non-negative)") as found:
        DRAWS[name](np)
    assert isinstance(found.value, MXNetError)


def test_parameters_that_are_no_numbers():
    with pytest.raises(TypeError, match="a str cannot become an array"):
        np.random.gumbel("a", 1.0)
    with pytest.raises(TypeError, match="weibull: a must be real"):
        np.random.weibull(1j)
    with pytest.raises(MXNetError, match=r"laplace: .* shapes \(2,\) \(3,\)"):
        np.random.laplace(np.ones(2), np.ones(3))
    with pytest.raises(MXNetError, match="multinomial: pvals must hold"):
        np.random.multinomial(3, [])
    assert np.random.weibull([1.0, 2.0]).shape == (2,)


BEYOND = {
    "unravel_index": lambda: np.unravel_index(np.array([6]), (2, 3)),
    "unravel_index below": lambda: np.unravel_index(np.array([-1]), (2, 3)),
    "insert": lambda: np.insert(np.ones(3), 9, 1),
    "delete": lambda: np.delete(np.ones(3), 9),
}


@pytest.mark.parametrize("name", BEYOND)
def test_positions_outside_the_array(name):
    with pytest.raises((IndexError, ValueError), match="out of bounds") as found:
        BEYOND[name]()
    assert isinstance(found.value, MXNetError)


def test_histogram_of_nan():
    with pytest.raises(ValueError, match=r"histogram: .*not finite") as found:
        np.histogram(np.array([1.0, onp.nan]))
    assert isinstance(found.value, MXNetError)


NAN = onp.array([0.0, onp.nan], "float32")
LOOKUPS = {
    "an index": lambda i: np.ones((2, 3))[i],
    "a column": lambda i: np.ones((2, 3))[[0, 1], i],
    "take": lambda i: np.take(np.ones(3), i),
    "embedding": lambda i: npx.embedding(i, np.ones((2, 3))),
    "take_along_axis": lambda i: np.take_along_axis(np.ones(3), i, 0),
}


@pytest.mark.parametrize("name", LOOKUPS)
def test_nan_is_no_index(name):
    """Labels are floats in the default mode: NaN must not choose entry 0."""
    npx.set_np()
    with pytest.raises(IndexError, match="out of bounds"):
        LOOKUPS[name](np.array(NAN)).asnumpy()


def test_one_hot_of_nan_is_no_class():
    npx.set_np()
    assert npx.one_hot(np.array(NAN), 2).tolist() == [[1, 0], [0, 0]]


def test_operators_that_no_input_suits():
    with pytest.raises(MXNetError, match="smooth_l1: scalar"):
        npx.smooth_l1(np.ones(2), scalar=0)
    with pytest.raises(MXNetError, match="batch_flatten: expected"):
        npx.batch_flatten(np.ones(()))


def test_std_of_no_spread_has_gradient_zero():
    """With and without a mask: the root's slope there is infinite."""
    for run in (np.std, np.nanstd, lambda x: np.std(x, where=x > 0)):
        x = np.array([2.0, 2.0, 2.0])
        x.attach_grad()
        with autograd.record():
            y = run(x)
        y.backward()
        assert x.grad.tolist() == [0, 0, 0]


def test_masked_spread_of_complex_numbers_is_refused():
    with pytest.raises(TypeError, match="std: dtype complex64"):
        np.std(np.array(Z), where=np.array([True, False]))


def test_matrix_norm_takes_two_axes():
    with pytest.raises(MXNetError, match="matrix_norm: axis must name two axes"):
        np.linalg.matrix_norm(np.ones((2, 2)), axis=0)


SIZES = (0, 1, 2, 300)


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize("function", ["sum", "prod", "mean"])
def test_reductions_of_empty_and_turned_arrays(function, axes):
    for shape in itertools.product(SIZES, repeat=3):
        for order in itertools.permutations(range(3)):
            x = onp.ones(shape, "float32").transpose(order)
            with onp.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # NumPy's mean of nothing
                expected = getattr(onp, function)(x, axis=axes)
            got = getattr(np, function)(np.array(x.transpose(onp.argsort(order))).transpose(order), axis=axes)
            onp.testing.assert_array_equal(got.asnumpy(), expected)


@pytest.mark.parametrize(
    "make",
    [
        lambda m: m.broadcast_to(m.ones((), dtype="float32"), (2**62,)),
        lambda m: m.broadcast_to(m.ones((), dtype="int8"), (2**40, 2**40)),
        lambda m: m.broadcast_to(m.ones((), dtype="int8"), (2**62,)).astype("float32"),
        lambda m: m.add(m.broadcast_to(m.ones((), dtype="int8"), (2**62,)), 1.5),
        lambda m: m.add(m.broadcast_to(m.int8(1), (2**32, 1)), m.broadcast_to(m.int8(1), (1, 2**32))),
        lambda m: m.matmul(m.broadcast_to(m.int8(1), (2**32, 1)), m.broadcast_to(m.int8(1), (1, 2**32))),
    ],
)
def test_sizes_that_no_memory_has(make):
    for module in (onp, np):
        with pytest.raises((ValueError, MemoryError)):
            make(module).sum()
