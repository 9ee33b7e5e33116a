"""Functions made of several ops, against NumPy's of the same name on the same arguments, in NumPy's mode."""

import numpy as onp
import pytest

from mxnp import np, npx

R = onp.random.RandomState(7)
A = R.normal(size=(3, 4))
B = R.normal(size=(4, 3))
V = R.normal(size=6)
K = R.randint(0, 5, size=(3, 4))
C = R.normal(size=(2, 3, 4))
N = onp.array([3.0, onp.nan, 1.0, onp.nan, 2.0])

CASES = [
    ("split", (A, 2, 1)),
    ("split", (A, [1, 3], 1)),
    ("array_split", (V, 4)),
    ("array_split", (V, [2, 9])),
    ("hsplit", (A, 2)),
    ("hsplit", (V, 3)),
    ("vsplit", (B, 2)),
    ("dsplit", (C, 2)),
    ("unstack", (A,)),
    ("vstack", ([V, V],)),
    ("hstack", ([A, A],)),
    ("hstack", ([V, V],)),
    ("dstack", ([A, A],)),
    ("column_stack", ([V, V],)),
    ("concatenate", ([A, B], None)),
    ("concatenate", ([A, A], 1)),
    ("stack", ([A, A], -1)),
    ("append", (V, [1.0, 2.0])),
    ("append", (A, A, 0)),
    ("insert", (V, 2, 9.0)),
    ("insert", (V, [1, 4], [8.0, 9.0])),
    ("insert", (A, 1, 5.0, 1)),
    ("insert", (A, 0, V[:4], 0)),
    ("delete", (V, 2)),
    ("delete", (V, [0, 3])),
    ("delete", (A, slice(0, 2), 1)),
    ("repeat", (V, 3)),
    ("repeat", (A, [1, 0, 2], 0)),
    ("tile", (A, (2, 1, 3))),
    ("tile", (V, 2)),
    ("resize", (V, (2, 5))),
    ("roll", (V, 2)),
    ("roll", (A, (1, -1), (0, 1))),
    ("roll", (A, 1, (0, 1))),
    ("flip", (A,)),
    ("flip", (A, (0, 1))),
    ("flipud", (A,)),
    ("fliplr", (A,)),
    *[("rot90", (A, k)) for k in range(-1, 5)],
    ("rot90", (C, 1, (1, 2))),
    ("moveaxis", (C, [0, 1], [-1, 0])),
    ("rollaxis", (C, 2, 1)),
    ("rollaxis", (C, 0, 3)),
    ("swapaxes", (C, 0, -1)),
    ("transpose", (C,)),
    ("transpose", (C, (2, 0, 1))),
    ("matrix_transpose", (C,)),
    ("expand_dims", (A, (0, 2))),
    ("squeeze", (A[:1],)),
    ("broadcast_to", (V, (2, 6))),
    ("broadcast_arrays", (A, V[:4])),
    ("atleast_1d", (3.0, V)),
    ("atleast_2d", (3.0, V)),
    ("atleast_3d", (3.0, V, A)),
    ("ravel", (A, "F")),
    ("reshape", (A, (4, 3), "F")),
    ("pad", (A, 1)),
    ("pad", (A, ((1, 2), (0, 3)))),
    *[("pad", (A, ((1, 2), (3, 1)), mode)) for mode in ("edge", "reflect", "symmetric", "wrap")],
    ("diag", (V, 1)),
    ("diag", (A, -1)),
    ("diagonal", (C, 1, 0, 2)),
    ("diagflat", (A,)),
    ("trace", (C, 0, 1, 2)),
    ("tril", (C, 1)),
    ("triu", (A, -1)),
    ("triu", (V,)),
    ("where", (A > 0,)),
    ("where", (A > 0, A, 0.0)),
    ("nonzero", (K,)),
    ("argwhere", (K > 2,)),
    ("flatnonzero", (K - 1,)),
    ("extract", (A > 0, A)),
    ("compress", ([True, False, True], A, 0)),
    ("select", ([A > 1, A > 0], [A, -A], 5.0)),
    ("choose", (K[0] % 3, list(A))),
    ("take", (A, [[0, 2], [1, 1]], 0)),
    ("take", (A, [0, -1])),
    ("take_along_axis", (A, onp.argsort(A, 1), 1)),
    ("searchsorted", (onp.sort(V), A)),
    ("searchsorted", (onp.sort(V), V, "right")),
    ("digitize", (A, [-1.0, 0.0, 1.0])),
    ("digitize", (A, [1.0, 0.0, -1.0], True)),
    ("bincount", (K.ravel(),)),
    ("bincount", (K.ravel(), A.ravel())),
    ("bincount", (K.ravel(), None, 9)),
    ("unravel_index", (onp.array([5, 11]), (3, 4))),
    ("ix_", ([0, 2], [1, 3])),
    ("sort", (A, 0)),
    ("sort", (A, None)),
    ("unique", (K,)),
    ("unique", (K, True, True, True)),
    ("unique", (N,)),
    ("unique", (K, False, False, True, 0)),
    ("isin", (K, [1, 3])),
    ("isin", (K, [1, 3], False, True)),
    ("union1d", (K, [9, 1])),
    ("intersect1d", (K, [9, 1])),
    ("setdiff1d", (K, [1])),
    ("diff", (V,)),
    ("diff", (A, 2, 1)),
    ("diff", (A, 1, 0)),
    ("diff", (A > 0,)),
    ("ediff1d", (V, 9.0, [7.0, 8.0])),
    ("cumsum", (A,)),
    ("cumprod", (A, 1)),
    ("ptp", (A, 1)),
    ("average", (A, 0, [1.0, 2.0, 3.0])),
    ("average", (A, None, onp.abs(A))),
    ("average", (A, 1, None, True)),
    ("median", (A, 1)),
    ("median", (V,)),
    ("median", (N,)),
    ("quantile", (A, [0.1, 0.5, 1.0], 1)),
    ("quantile", (A, 0.3)),
    *[("quantile", (V, 0.3, None, None, False, m)) for m in ("lower", "higher", "nearest", "midpoint")],
    ("percentile", (A, [[10, 90]], (0, 1))),
    ("count_nonzero", (K, 0)),
    ("round", (A, 2)),
    ("round", (K * 37, -1)),
    ("nan_to_num", (N, True, 4.0)),
    ("nan_to_num", (onp.array([onp.inf, -onp.inf, 1.0]),)),
    ("divmod", (V, 0.5)),
    ("modf", (V,)),
    ("isclose", (V, V + 1e-9)),
    ("allclose", (V, V + 1e-9)),
    ("array_equal", (A, A)),
    ("array_equal", (N, N, True)),
    ("array_equiv", (A, A[None])),
    ("isposinf", (onp.array([onp.inf, -onp.inf]),)),
    ("isneginf", (onp.array([onp.inf, -onp.inf]),)),
    ("inner", (A, A)),
    ("outer", (V, A)),
    ("tensordot", (C, A, ([1, 2], [0, 1]))),
    ("tensordot", (A, B, 1)),
    ("tensordot", (A, B, 0)),
    ("kron", (A, B)),
    ("kron", (V, V)),
    ("cross", (B, B[::-1])),
    ("vdot", (A, A)),
    ("vecdot", (A, A[0])),
    ("linalg.norm", (A,)),
    ("linalg.norm", (A, 1)),
    ("linalg.norm", (A, onp.inf)),
    ("linalg.norm", (A, None, 1)),
    ("linalg.norm", (V, 3)),
    ("linalg.norm", (V, 0)),
    ("linalg.norm", (V, -onp.inf)),
    ("linalg.norm", (C, "fro", (1, 2), True)),
    ("linalg.matrix_power", (A[:, :3], 5)),
    ("linalg.matrix_power", (A[:, :3], 0)),
    ("linalg.multi_dot", ([A, B, A],)),
    ("einsum", ("ij,jk->ik", A, B)),
    ("einsum", ("ij,jk", A, B)),
    ("einsum", ("ij->ji", A)),
    ("einsum", ("ii->i", A[:, :3])),
    ("einsum", ("ii", A[:, :3])),
    ("einsum", ("i,j->ij", V, V)),
    ("einsum", ("ij,ij->", A, A)),
    ("einsum", ("bij,bkj->bik", C, C)),
    ("einsum", ("...ij,...kj->...ik", C, A)),
    ("einsum", ("ij...->...i", C)),
    ("einsum", ("bij,jk,kl->bl", C, B, A)),
    ("einsum", ("ijk,i->k", C, V[:2])),
    ("einsum", ("ij,k->k", A, V)),
    ("einsum", (A, [0, 1], B, [1, 2], [0, 2])),
    ("histogram", (A,)),
    ("histogram", (V, [-1.0, 0.0, 1.0])),
    ("histogram", (V, 4, (-1.0, 1.0))),
    ("histogram", (V, 4, None, True)),
    ("histogram", (V, 3, None, None, onp.abs(V))),
    ("interp", (A, onp.arange(4.0) - 1, V[:4])),
    ("interp", (V, onp.arange(3.0), V[:3], -9.0, 9.0)),
    ("trapezoid", (V,)),
    ("trapezoid", (A, onp.arange(3.0) ** 2, 1.0, 0)),
    ("cov", (A,)),
    ("cov", (A, A[::-1], False)),
    ("cov", (V,)),
    ("corrcoef", (A,)),
    ("polyval", (V, A)),
    ("nansum", (N,)),
    ("nanprod", (N,)),
    ("nanmean", (N,)),
    ("nanvar", (N,)),
    ("nanstd", (N, None, None, None, 1)),
    ("nanmax", (N,)),
    ("nanmin", (onp.stack([N, N]), 1)),
    ("nanmean", (K,)),
]


def lookup(module, name):
    for part in name.split("."):
        module = getattr(module, part)
    return module


def to_mxnp(value):
    if isinstance(value, onp.ndarray):
        return np.array(value)
    return (
        [to_mxnp(v) for v in value]
        if isinstance(value, list) and any(hasattr(v, "shape") for v in value)
        else value
    )


def same(got, want):
    if isinstance(want, (list, tuple)):
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            same(a, b)
        return
    want = onp.asarray(want)
    if isinstance(got, np.ndarray):
        assert got.dtype == want.dtype
    onp.testing.assert_allclose(
        got.asnumpy() if isinstance(got, np.ndarray) else got, want, rtol=1e-12, atol=1e-12
    )
    assert onp.shape(got) == want.shape


@pytest.mark.parametrize("row", range(len(CASES)), ids=lambda i: f"{CASES[i][0]}-{i}")
def test_as_numpy(row):
    name, args = CASES[row]
    npx.set_np(dtype=True)
    same(lookup(np, name)(*[to_mxnp(a) for a in args]), lookup(onp, name)(*args))


REDUCTIONS = ["sum", "prod", "max", "min", "mean", "std", "var", "any", "all"]


@pytest.mark.parametrize("name", REDUCTIONS)
def test_where_and_initial(name):
    npx.set_np(dtype=True)
    mask = A > -0.5
    mask[0] = True
    keywords = {"where": mask}
    if name in ("sum", "prod", "max", "min"):
        keywords["initial"] = 0.25
    for axis in (None, 0, 1):
        want = getattr(onp, name)(A, axis=axis, **keywords)
        got = getattr(np, name)(np.array(A), axis=axis, **{**keywords, "where": np.array(mask)})
        onp.testing.assert_allclose(got.asnumpy(), want, rtol=1e-12)


def test_initial_makes_an_empty_maximum():
    assert np.max(np.zeros((0, 2)), axis=0, initial=3).tolist() == [3, 3]
    with pytest.raises(
        ValueError, match="zero-size array to reduction operation maximum which has no identity"
    ):
        np.max(np.zeros((0, 2)), axis=0)


OUTS = [
    lambda out: np.add(np.ones(3), 1, out=out),
    lambda out: np.sum(np.ones((2, 3)), axis=0, out=out),
    lambda out: np.mean(np.ones((2, 3)), axis=0, out=out),
    lambda out: np.max(np.ones((2, 3)), axis=0, initial=0, out=out),
    lambda out: np.cumsum(np.ones(3), out=out),
    lambda out: np.concatenate([np.ones(1), np.ones(2)], out=out),
    lambda out: np.matmul(np.ones((3, 2)), np.ones(2), out=out),
    lambda out: np.dot(np.ones((3, 2)), np.ones(2), out=out),
    lambda out: np.clip(np.ones(3), 0, None, out=out),
    lambda out: np.round(np.ones(3), 1, out=out),
    lambda out: np.take(np.ones(5), [0, 1, 2], out=out),
    lambda out: np.median(np.ones((2, 3)), axis=0, out=out),
    lambda out: np.random.uniform(size=3, out=out),
]


@pytest.mark.parametrize("row", range(len(OUTS)))
def test_out(row):
    out = np.full((3,), -5.0)
    assert OUTS[row](out) is out
    assert (out != -5).all()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: np.reshape(np.ones(6), (4, -1)),
            ValueError,
            r"cannot reshape array of size 6 into shape \(4,-1\)",
        ),
        (
            lambda: np.reshape(np.ones(6), (4,)),
            ValueError,
            r"cannot reshape array of size 6 into shape \(4,\)",
        ),
        (lambda: np.reshape(np.ones(6), (-1, -1)), ValueError, "can only specify one unknown dimension"),
        (lambda: np.transpose(np.ones((2, 3)), (0,)), ValueError, "axes don't match array"),
        (lambda: np.transpose(np.ones((2, 3)), (0, 0)), ValueError, "repeated axis in transpose"),
        (lambda: np.split(np.ones(5), 2), ValueError, "array split does not result in an equal division"),
        (lambda: np.concatenate([]), ValueError, "need at least one array to concatenate"),
        (lambda: np.stack([]), ValueError, "need at least one array to stack"),
        (lambda: np.squeeze(np.ones((2, 1)), 0), ValueError, "size"),
        (lambda: np.moveaxis(np.ones((2, 3)), 0, [0, 1]), ValueError, "same number of elements"),
        (
            lambda: np.moveaxis(np.ones((2, 3)), 5, 0),
            onp.exceptions.AxisError,
            "source: axis 5 is out of bounds",
        ),
        (lambda: np.nonzero(np.array(1)), ValueError, "0d arrays is not allowed"),
        (lambda: np.where(np.ones(2), 1), ValueError, "either both or neither"),
        (lambda: np.quantile(np.ones(3), 1.5), ValueError, r"range \[0, 1\]"),
        (lambda: np.percentile(np.ones(3), 101), ValueError, r"range \[0, 100\]"),
        (lambda: np.quantile(np.ones(3), 0.5, method="best"), ValueError, "not a valid method"),
        (lambda: np.pad(np.ones(3), -1), ValueError, "negative"),
        (lambda: np.pad(np.ones(3), 1, mode="magic"), ValueError, "magic"),
        (lambda: np.pad(np.ones(3), 1.5), TypeError, "integral"),
        (lambda: np.repeat(np.ones(3), -1), ValueError, "negative"),
        (lambda: np.diff(np.ones(3), -1), ValueError, "non-negative"),
        (lambda: np.average(np.ones(2), weights=np.array([1, -1])), ZeroDivisionError, "sum to zero"),
        (lambda: np.average(np.ones((2, 3)), weights=np.ones(2)), TypeError, "Axis must be specified"),
        (lambda: np.inner(np.ones((2, 3)), np.ones(2)), ValueError, "not aligned"),
        (lambda: np.tensordot(np.ones((2, 3)), np.ones((2, 3)), 1), ValueError, "shape-mismatch for sum"),
        (lambda: np.cross(np.ones(2), np.ones(2)), ValueError, "3-dimensional"),
        (lambda: np.bincount(np.array([-1], dtype="int64")), ValueError, "no negative elements"),
        (lambda: np.broadcast_to(np.ones(3), (2,)), ValueError, "broadcast"),
        (lambda: np.std(np.ones(3), ddof=1, correction=1), ValueError, "simultaneously"),
        (lambda: np.max(np.ones(3), where=np.array([True, False, True])), ValueError, "'initial'"),
        (lambda: np.sum(np.ones(3), out=onp.zeros(())), TypeError, "ArrayType"),
        (lambda: np.einsum("ij,jk->ik", np.ones((2, 3)), np.ones((2, 3))), ValueError, "sizes 3 and 2"),
        (lambda: np.einsum("ij->k", np.ones((2, 3))), ValueError, "no operand has"),
        (lambda: np.einsum("i->i", np.ones((2, 3))), ValueError, "does not name the 2 axes"),
        (lambda: np.einsum("i1->i", np.ones((2, 3))), ValueError, "invalid subscript"),
        (lambda: np.einsum("i,j", np.ones(2)), ValueError, "names 2 operands"),
        (lambda: np.interp(1.0, np.ones(2), np.ones(3)), ValueError, "same length"),
        (lambda: np.tril(np.array(1)), ValueError, "at least one dimension"),
        (lambda: np.random.normal(scale=-1), ValueError, "scale"),
    ],
)
def test_bad_input(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize(
    "function",
    [
        onp.mean,
        onp.sum,
        onp.concatenate,
        onp.where,
        onp.linalg.norm,
        onp.sort,
        onp.argmax,
        onp.clip,
        onp.reshape,
    ],
)
def test_numpys_functions_give_mxnps_arrays(function):
    x = np.array([[3.0, 1.0]])
    args = {
        onp.concatenate: ([x, x],),
        onp.where: (x > 1, x, x),
        onp.clip: (x, 0, 2),
        onp.reshape: (x, (2, 1)),
    }
    result = function(*args.get(function, (x,)))
    assert isinstance(result, np.ndarray)


def test_numpys_unknown_functions_work_on_numpys_arrays():
    result = onp.fft.fft(np.array([1.0, 2.0]))
    assert isinstance(result, onp.ndarray)


@pytest.mark.parametrize("name", ["linalg.svd", "random.gamma", "linalg.inv"])
def test_what_has_not_arrived_says_so(name):
    with pytest.raises(NotImplementedError, match="has not arrived"):
        lookup(np, name)
    assert not hasattr(lookup(np, name.split(".")[0]), name.split(".")[1])


def test_shares_memory():
    x = np.arange(6)
    assert np.shares_memory(x, x.reshape(2, 3))
    assert not np.shares_memory(x, x.copy())
    assert not np.shares_memory(x[:3], x[3:])
    assert np.may_share_memory(x, x[::2])


def test_dtype_questions():
    assert np.result_type("int32", "float32") == "float32"
    npx.set_np(dtype=True)
    assert np.result_type("int32", "float32") == "float64"
    assert np.can_cast("int8", "int16")
    assert not np.can_cast("float64", "int8")
    assert np.finfo("float16").max == onp.finfo("float16").max
    assert np.iinfo("uint8").max == 255
    assert np.finfo(np.ones(1, "bfloat16").dtype).bits == 16
    assert np.isdtype("int8", ("bool", "integral"))
    assert not np.isdtype("bfloat16", "integral")


def test_ranges_are_indices():
    x, labels = np.array(A), np.array([0.0, 2.0, 1.0])
    assert x[range(3), labels].tolist() == A[range(3), [0, 2, 1]].tolist()
    assert x[range(2)].tolist() == A[range(2)].tolist()
    x[range(2), [0, 1]] = 0
    assert (x[0, 0].item(), x[1, 1].item()) == (0, 0)
    with pytest.raises(IndexError, match="only integers"):
        x["text"]
    assert np.array(range(3)).tolist() == [0, 1, 2]
