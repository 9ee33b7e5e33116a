"""Corners in which NumPy 2 decides: integers at the ends of their range, integer powers, numbers as arrays, complex
numbers on branch cuts, and errors that say what came.
"""

from __future__ import annotations

import operator

import numpy as onp
import pytest

from mxnp import MXNetError, autograd, np, npx

COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]
ENDS = {
    "int8": [-128, 0, 127],
    "uint8": [0, 255],
    "int64": [-(2**63), 2**53 + 1, 2**63 - 1],
    "uint64": [0, 2**53 + 1, 2**63, 2**64 - 1],
}
BEYOND = [-(2**70), -(2**63) - 1, -(2**63), -1, 2**53, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**70]


@pytest.mark.parametrize("compare", COMPARISONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", ENDS)
@pytest.mark.parametrize("number", BEYOND)
def test_integers_compare_with_any_integer(compare, dtype, number):
    x = onp.array(ENDS[dtype], dtype)
    assert compare(np.array(x), number).tolist() == [compare(int(v), number) for v in x]
    assert compare(number, np.array(x)).tolist() == [compare(number, int(v)) for v in x]


@pytest.mark.parametrize("compare", COMPARISONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("signed", ["int8", "int64"])
def test_signed_compare_with_unsigned(compare, signed):
    """Exactly, where no dtype holds both; inside a fused expression too."""
    x, y = onp.array(ENDS[signed], signed), onp.array(ENDS["uint64"], "uint64")
    want = [[compare(int(a), int(b)) for b in y] for a in x]
    assert compare(np.array(x)[:, None], np.array(y)).tolist() == want
    assert compare(np.array(y)[:, None], np.array(x)).T.tolist() == [
        [compare(int(b), int(a)) for b in y] for a in x
    ]
    chained = np.where(compare(np.array(x)[:, None], np.array(y)), 1, 0) * 2
    assert chained.tolist() == (2 * onp.array(want)).tolist()


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
@pytest.mark.parametrize("base", [[2, 3], 2])
def test_integers_to_negative_integer_powers(dtype, base):
    x = np.array(onp.array(base, dtype)) if isinstance(base, list) else base
    y = np.array(onp.array([1, -1], dtype))
    with pytest.raises(ValueError, match="Integers to negative integer powers are not allowed") as caught:
        (x**y).wait_to_read()
    assert isinstance(caught.value, MXNetError)
    z = np.array(onp.array([5, 6], dtype))
    with pytest.raises(ValueError, match="negative integer powers"):
        np.power(x, y, out=z)
        z.wait_to_read()
    assert z.tolist() == [5, 6], "a failed write changes nothing"
    assert (np.array(onp.array([2, 3], dtype)) ** np.array(onp.array([3, 0], dtype))).tolist() == [8, 1]


def test_negative_exponents_of_floats_and_a_strided_exponent():
    assert (np.array([2.0, 4.0]) ** np.array(onp.array([-1, -2]))).tolist() == [0.5, 0.0625]
    steps = np.array(onp.array([3, -9, 2, -9]))[::2]
    assert (np.array(onp.array([[2], [3]])) ** steps).tolist() == [[8, 4], [27, 9]]


def test_a_gradient_of_an_integer_power():
    x = np.array(onp.array([2, 3]))
    x.attach_grad()
    with autograd.record():
        y = x ** np.array(onp.array([2, 3]))
    y.backward()
    assert x.grad.tolist() == [4, 27]


@pytest.mark.parametrize(
    ("name", "dtype", "want"),
    [
        ("rint", "int32", "float32"),
        ("rint", "bool", "float32"),
        ("rint", "int8", "float32"),
        ("floor", "int8", "int8"),
        ("floor", "bool", "bool"),
        ("ceil", "uint16", "uint16"),
        ("trunc", "int64", "int64"),
        ("round", "int16", "int16"),
        ("round", "bool", "float32"),
        ("square", "bool", "int8"),
        ("conj", "bool", "int8"),
        ("reciprocal", "bool", "int8"),
        ("reciprocal", "uint8", "uint8"),
        ("round", "complex64", "complex64"),
    ],
)
def test_dtypes_of_whole_numbers(name, dtype, want):
    assert getattr(np, name)(np.ones(2, dtype)).dtype == want


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint64"])
def test_the_reciprocal_of_whole_numbers(dtype):
    x = onp.array([0, 1, 2], dtype)
    with onp.errstate(all="ignore"):
        assert np.reciprocal(np.array(x)).tolist() == onp.reciprocal(x).tolist()


def test_numpys_dtypes_in_numpys_mode():
    npx.set_np(dtype=True)
    try:
        assert [np.rint(np.ones(2, d)).dtype.name for d in ("int8", "int16", "int64")] == [
            "float16",
            "float32",
            "float64",
        ]
    finally:
        npx.set_np()


CIRCULAR = ["sin", "cos", "tan", "sinh", "cosh", "tanh"]
INVERSE = ["arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh"]
COMPLEX = [*CIRCULAR, *INVERSE, "exp", "expm1", "exp2", "log", "log2", "log10", "sqrt", "sign"]
CUTS = [0.0, -0.0, 0.5, -0.5, 2.0, -2.0, 1e-8, 1e8, 30.0, -30.0]


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_functions_on_their_cuts(name):
    """With the sign of each zero: it says on which side of a cut the number lies."""
    z = onp.array([complex(a, b) for a in CUTS for b in CUTS])
    with onp.errstate(all="ignore"):
        want = getattr(onp, name)(z)
    got = getattr(np, name)(np.array(z)).asnumpy()
    sound = onp.isfinite(want)
    assert (onp.isfinite(got) == sound).all()
    onp.testing.assert_allclose(got[sound], want[sound], rtol=1e-7, atol=1e-15)
    if name != "sign":
        for part in ("real", "imag"):
            mine, theirs = getattr(got[sound], part), getattr(want[sound], part)
            clear = onp.abs(theirs) > 1e-12
            assert (onp.signbit(mine) == onp.signbit(theirs))[clear].all()


def test_complex_functions_far_out():
    x = np.array(onp.array([complex(800, 1), complex(onp.inf, 2), complex(-onp.inf, 0)]))
    assert np.tanh(x).tolist() == [1, 1, -1]
    assert np.sign(np.array(onp.array([complex(onp.inf, 1), 0j, complex(0, -onp.inf)]))).tolist() == [
        1,
        0,
        -1j,
    ]
    tiny = np.array(onp.array([1e-300 + 0j, 1e-20 + 1e-20j]))
    assert np.log1p(tiny).tolist() == [1e-300 + 0j, 1e-20 + 1e-20j]


def test_the_sign_of_a_complex_number_has_no_rule():
    z = np.array(onp.array([1 + 2j]))
    z.attach_grad()
    with autograd.record():
        y = np.sign(z)
    with pytest.raises(MXNetError, match=r"sign: no gradient: the sign of a complex number"):
        y.backward()


def test_sorting_a_number():
    for x in (2.5, np.array(2.5)):
        for axis in (-1, 0):
            with pytest.raises(
                onp.exceptions.AxisError, match=f"axis {axis} is out of bounds for array of dimension 0"
            ):
                np.sort(x, axis)
            assert np.argsort(x, axis).tolist() == [0]
        assert np.sort(x, None).tolist() == [2.5]
        assert np.argsort(x, None).tolist() == [0]


@pytest.mark.parametrize("axis", [0, -1, None])
def test_reducing_a_number(axis):
    x = np.array(2.5)
    assert [f(x, axis).item() for f in (np.sum, np.max, np.prod, np.mean, np.argmax)] == [
        2.5,
        2.5,
        2.5,
        2.5,
        0,
    ]
    with pytest.raises(onp.exceptions.AxisError):
        np.sum(x, 1)


def test_an_array_without_axes_as_an_index_gives_a_copy():
    x = np.array([[1, 2], [3, 4]])
    for key in (np.array(1, dtype="int64"), (np.array(1, dtype="int64"), slice(None))):
        row = x[key]
        assert row.tolist() == [3, 4]
        row[...] = 9
        assert x.tolist() == [[1, 2], [3, 4]]
    x.attach_grad()
    with autograd.record():
        y = x[np.array(1, dtype="int64")] * 2
    y.backward()
    assert x.grad.tolist() == [[0, 0], [2, 2]]
    x[np.array(0, dtype="int64")] = 7
    assert x.tolist() == [[7, 7], [3, 4]]
    x[1][...] = 5
    assert x.tolist() == [[7, 7], [5, 5]], "a Python integer still gives a view"


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (
            lambda: np.partition(np.array([3, 1, 2]), 3),
            ValueError,
            r"partition: kth\(=3\) out of bounds \(3\)",
        ),
        (lambda: np.partition(np.array([3, 1, 2]), (0, -4)), ValueError, r"kth\(=-4\) out of bounds \(3\)"),
        (
            lambda: np.argpartition(np.array([3, 1]), 2),
            ValueError,
            r"argpartition: kth\(=2\) out of bounds \(2\)",
        ),
        (lambda: np.partition(np.array([3, 1]), 0.5), TypeError, "Partition index must be integer"),
        (lambda: np.unravel_index(7, (2, 3)), ValueError, "index 7 is out of bounds for array with size 6"),
        (lambda: np.choose(np.array([5]), [np.ones(1)]), IndexError, "choose: index 5 is out of bounds"),
        (lambda: np.choose(np.array([1j]), [np.ones(1)]), IndexError, "choose: arrays used as indices"),
        (
            lambda: npx.sequence_last(np.ones((3, 2)), np.array([0, 1]), use_sequence_length=True),
            IndexError,
            "sequence_last: index -1 is out of bounds for axis 0 with size 3",
        ),
        (
            lambda: npx.sequence_last(np.ones((3, 2)), np.array([4, 1]), use_sequence_length=True),
            IndexError,
            "sequence_last: index 3",
        ),
        (
            lambda: npx.sequence_reverse(np.ones((3, 2)), np.array([4, 1]), use_sequence_length=True),
            IndexError,
            "sequence_reverse: index 3",
        ),
        (
            lambda: npx.random.bernoulli(np.array([0.5, 1.5])),
            ValueError,
            "bernoulli: prob must be from 0 to 1, got 1.5",
        ),
        (
            lambda: np.random.randint(np.array([0, 5]), np.array([3, 4])),
            ValueError,
            "5 and 4",
        ),
        (
            lambda: np.concatenate([np.array(1.0), np.array(2.0)]),
            ValueError,
            r"zero-dimensional arrays cannot be concatenated, got 2 arrays of shape \(\)\nhint: stack",
        ),
        (lambda: np.transpose(np.ones((2, 3)), (0,)), ValueError, r"axes don't match array: .*\(2, 3\)"),
        (lambda: np.squeeze(np.ones((2, 1)), 0), ValueError, r"not equal to one: axis 0 of shape \(2, 1\)"),
    ],
)
def test_errors_say_what_came(call, error, match):
    with pytest.raises(error, match=match) as caught:
        call().wait_to_read()
    assert isinstance(caught.value, MXNetError)
