"""Gradients where functions have poles, kinks and infinities: a zero that comes in stays zero whatever the slope, and
what mathematics defines there is finite and right, to second order.
"""

from __future__ import annotations

import numpy as onp
import pytest

from mxnp import autograd, np, npx
from specs import ROWS
from specs.drive import call
from specs.row import Case, Row

SINGULAR = (-onp.inf, -2.0, -1.0, -0.0, 0.0, 0.5, 1.0, 2.0, onp.inf, onp.nan)


def differentiable(row: Row) -> bool:
    return isinstance(row.grad, int) and row.grad > 0 and "float64" in row.dtypes


ELEMENTWISE = [r for r in ROWS if differentiable(r) and r.elementwise]


def leaves(row: Row, count: int) -> list[int]:
    """The inputs that gradients flow to: those of the row's own dtype."""
    return [i for i in range(count) if row.domain_of(i).dtype is None]


def mesh(row: Row) -> list[onp.ndarray]:
    """Every combination of singular points, for as many inputs as the row has."""
    count = len(row.cases[0].shapes)
    found = onp.meshgrid(*[onp.array(SINGULAR)] * count)
    return [
        onp.ascontiguousarray(x.ravel()).astype(row.domain_of(i).dtype or "float64")
        for i, x in enumerate(found)
    ]


def attached(inputs, at):
    arrays = [np.array(x) for x in inputs]
    for i in at:
        arrays[i].attach_grad()
    return arrays


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("row", ELEMENTWISE, ids=str)
def test_a_zero_gradient_stays_zero(row, dtype):
    """At poles, at kinks, outside the domain and at what is not a number."""
    if dtype not in row.dtypes:
        pytest.skip(f"no {dtype}")
    inputs = [x.astype(dtype) if row.domain_of(i).dtype is None else x for i, x in enumerate(mesh(row))]
    at = leaves(row, len(inputs))
    arrays = attached(inputs, at)
    with autograd.record():
        y = call(row, arrays, Case(tuple(x.shape for x in inputs)))
    y.backward(np.zeros(y.shape, dtype=y.dtype))
    for i in at:
        assert not arrays[i].grad.asnumpy().any(), f"{row}: {arrays[i].grad} at {inputs}"


def second(row, inputs, at, mask, weights, along):
    """Gradients of the masked and weighted sum, and the gradients of their sums along directions."""
    arrays = attached(inputs, at)
    case = Case(tuple(x.shape for x in inputs))
    with autograd.record():
        y = call(row, arrays, case)
        z = np.sum(np.where(np.array(mask), y, 0) * np.array(weights))
        first = autograd.grad([z], [arrays[i] for i in at], create_graph=True, retain_graph=True)
        total = sum(np.sum(g * np.array(d)) for g, d in zip(first, along, strict=True)) + 0 * np.sum(
            sum(np.where(np.array(mask), arrays[i], 0) for i in at)
        )
    total.backward()
    return [g.asnumpy() for g in first], [arrays[i].grad.asnumpy() for i in at]


@pytest.mark.parametrize("row", ELEMENTWISE, ids=str)
def test_the_branch_not_taken_adds_nothing(row):
    """`where(mask, f(x), 0)` has the gradients of f alone, first and second, where the mask holds, and zeros beside."""
    singular = mesh(row)
    count = len(singular)
    regular = row.draw(Case(((12,),) * count), "float64")
    inputs = [onp.concatenate([a, b.astype(a.dtype)]) for a, b in zip(regular, singular, strict=True)]
    mask = onp.arange(inputs[0].size) < 12
    at = leaves(row, count)
    rng = row.seed("edges")
    weights = rng.standard_normal(inputs[0].size)
    along = [rng.standard_normal(inputs[0].size) for _ in at]
    got = second(row, inputs, at, mask, weights, along)
    want = second(row, regular, at, mask[:12], weights[:12], [d[:12] for d in along])
    for order, (mine, alone) in enumerate(zip(got, want, strict=True), 1):
        for g, w in zip(mine, alone, strict=True):
            onp.testing.assert_allclose(g[:12], w, rtol=1e-12, atol=1e-12, err_msg=f"order {order}")
            assert not g[12:].any(), f"{row}: order {order} leaks {g[12:]}"


def test_the_guard_everybody_writes():
    """The pole of the branch not taken is at the edge itself."""
    x = np.array([0.0, 1.0, 1.5, 3.0])
    x.attach_grad()
    with autograd.record():
        y = np.where(x > 1, np.log(x - 1), x)
    y.backward()
    onp.testing.assert_allclose(x.grad.asnumpy(), [1, 1, 2, 0.5], rtol=1e-6)


# Sums of products: there a zero in the gradient does not say that the factor was not used.
PRODUCTS = {
    "np.matmul",
    "np.dot",
    "np.inner",
    "np.outer",
    "np.tensordot",
    "np.vdot",
    "np.einsum",
    "np.kron",
    "np.cross",
    "np.linalg.matrix_norm",
    "np.linalg.norm",
    "np.linalg.vecdot",
    "np.linalg.multi_dot",
    "np.linalg.matrix_power",
    "npx.fully_connected",
    "npx.batch_dot",
    "npx.convolution",
    "npx.deconvolution",
}


@pytest.mark.parametrize(
    "row",
    [r for r in ROWS if differentiable(r) and not r.elementwise and r.name not in PRODUCTS],
    ids=str,
)
def test_a_zero_gradient_stays_zero_through_lines(row):
    """The same of reductions, softmaxes, normalisations, selections."""
    for case in (c for c in row.cases if c.smooth and 0 < sum(map(onp.prod, c.shapes)) < 200):
        inputs = row.draw(case, "float64")
        at = leaves(row, len(inputs))
        for i in at:
            flat = inputs[i].reshape(-1)
            flat[: len(SINGULAR) : 2] = SINGULAR[: flat.size : 2][: flat[: len(SINGULAR) : 2].size]
        arrays = attached(inputs, at)
        with autograd.record():
            y = call(row, arrays, case)
        y = y if isinstance(y, np.ndarray) else y[0]
        y.backward(np.zeros(y.shape, dtype=y.dtype))
        for i in at:
            assert not arrays[i].grad.asnumpy().any(), f"{row} {case}: {arrays[i].grad}"


INF = onp.inf
# (name, function, points, slopes, second derivatives)
POINTS = [
    ("x ** 0", lambda x: x**0, [0.0, 2.0], [0, 0], [0, 0]),
    ("x ** 0.0 as arrays", lambda x: x ** np.zeros_like(x), [0.0, 2.0], [0, 0], [0, 0]),
    ("x ** 1", lambda x: x**1, [0.0, -2.0], [1, 1], [0, 0]),
    ("x ** 2", lambda x: x**2, [0.0, -3.0], [0, -6], [2, 2]),
    ("x ** 3", lambda x: x**3, [0.0, -2.0], [0, 12], [0, -12]),
    ("0 ** x", lambda x: np.zeros_like(x) ** x, [1.0, 2.5], [0, 0], [0, 0]),
    ("0.0 ** x", lambda x: 0.0**x, [1.0, 2.5], [0, 0], [0, 0]),
    ("arctan2(x, 0)", lambda x: np.arctan2(x, np.zeros_like(x)), [0.0, 1.0], [0, 0], [0, 0]),
    ("arctan2(x, 1)", lambda x: np.arctan2(x, np.ones_like(x)), [0.0, INF, -INF], [1, 0, 0], [0, 0, 0]),
    ("arctan2(1, x)", lambda x: np.arctan2(np.ones_like(x), x), [0.0, INF, 1e30], [-1, 0, 0], [0, 0, 0]),
    ("hypot(x, 0)", lambda x: np.hypot(x, np.zeros_like(x)), [0.0, 2.0], [0, 1], [0, 0]),
    ("silu", lambda x: npx.silu(x), [INF, -INF, 0.0, -2000.0], [1, 0, 0.5, 0], [0, 0, 0.5, 0]),
    (
        "gelu",
        lambda x: npx.gelu(x),
        [INF, -INF, 0.0, 2000.0],
        [1, 0, 0.5, 1],
        [0, 0, onp.sqrt(2 / onp.pi), 0],
    ),
    ("mish", lambda x: npx.mish(x), [INF, -INF, 0.0], [1, 0, 0.6], [0, 0, 0.64]),
    ("softplus", lambda x: npx.softrelu(x), [INF, -INF, 0.0], [1, 0, 0.5], [0, 0, 0.25]),
    ("log_sigmoid", lambda x: npx.log_sigmoid(x), [INF, -INF, 0.0], [0, 1, 0.5], [0, 0, -0.25]),
    ("sigmoid", lambda x: npx.sigmoid(x), [INF, -INF, 0.0], [0, 0, 0.25], [0, 0, 0]),
    ("tanh", lambda x: np.tanh(x), [INF, -INF, 0.0], [0, 0, 1], [0, 0, 0]),
    ("erf", lambda x: npx.erf(x), [INF, -INF], [0, 0], [0, 0]),
    ("elu", lambda x: npx.leaky_relu(x, act_type="elu", slope=1.0), [INF, -INF], [1, 0], [0, 0]),
    (
        "logaddexp(x, x)",
        lambda x: np.logaddexp(x, np.array(x.asnumpy())),
        [INF, -INF, 1.0],
        [0.5, 0.5, 0.5],
        [0, 0, 0.25],
    ),
    ("norm", lambda x: np.linalg.norm(x.reshape(-1, 1), axis=1), [0.0, -2.0], [0, -1], [0, 0]),
    ("norm 3", lambda x: np.linalg.norm(x.reshape(-1, 1), ord=3, axis=1), [0.0, -2.0], [0, -1], [0, 0]),
    ("std", lambda x: np.std(np.stack([x, -x]), axis=0), [0.0, -2.0], [0, -1], [0, 0]),
    (
        "prod of x, 0, 3",
        lambda x: np.prod(np.stack([x, 0 * x + 0, 0 * x + 3]), 0),
        [0.0, 2.0],
        [0, 0],
        [0, 0],
    ),
    ("prod of x, x, 3", lambda x: np.prod(np.stack([x, x, 0 * x + 3]), 0), [0.0, 2.0], [0, 12], [6, 6]),
    ("prod of x, x, x", lambda x: np.prod(np.stack([x, x, x]), 0), [0.0, 2.0], [0, 12], [0, 12]),
    ("cumprod of x, x", lambda x: np.cumprod(np.stack([x, x]), 0).sum(0), [0.0, 2.0], [1, 5], [2, 2]),
    (
        "cumprod of x, x, 3, x",
        lambda x: np.cumprod(np.stack([x, x, 0 * x + 3, x]), 0).sum(0),
        [0.0, 2.0],
        [1, 53],
        [8, 44],
    ),
]


@pytest.mark.parametrize(("name", "f", "points", "slopes", "curves"), POINTS, ids=[p[0] for p in POINTS])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_slopes_at_the_edges(name, f, points, slopes, curves, dtype):
    x = np.array(points, dtype=dtype)
    x.attach_grad()
    with autograd.record():
        (first,) = autograd.grad(f(x), x, create_graph=True)
        again = first + x * 0 if onp.isfinite(points).all() else first
    onp.testing.assert_allclose(first.asnumpy(), slopes, rtol=1e-5, atol=1e-6)
    again.backward()
    onp.testing.assert_allclose(x.grad.asnumpy(), curves, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("function", [npx.softmax, lambda x: x * 2])
def test_a_complex_head_gradient_of_real_numbers_is_refused(function):
    x = np.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        y = function(x)
    with pytest.raises(
        TypeError, match="head gradient of an array of float32 must be real, got complex64\nhint"
    ):
        y.backward(np.ones(2, dtype="complex64"))
