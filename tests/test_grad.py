"""Gradients of every spec row, first and second order, against central differences in random directions.

Where a row says that there is no gradient, its reason is checked to be the core's (test_completeness).
"""

from __future__ import annotations

import numpy as onp
import pytest

from mxnp import MXNetError, _core, autograd, np, npx
from specs import ROWS
from specs.drive import call, engine, outputs
from specs.row import FLOATS, Case, Row
from specs.tolerance import DERIVATIVE

EPS = {1: 1e-5, 2: 1e-4}


def differentiable(row: Row) -> bool:
    return isinstance(row.grad, int) and "float64" in row.dtypes


def leaves(row: Row, inputs: list[onp.ndarray]) -> list[int]:
    """Which inputs a gradient flows to: those of the row's own dtype."""
    return [i for i in range(len(inputs)) if row.domain_of(i).dtype is None]


def total(row: Row, case: Case, arrays, weights):
    """A number made of the result: its sum, weighted."""
    y = call(row, arrays, case)
    y = y if isinstance(y, np.ndarray) else y[0]
    return np.sum(y * weights)


def value(row: Row, case: Case, inputs: list[onp.ndarray], weights: onp.ndarray) -> float:
    """The same number without recording."""
    y = outputs(call(row, [np.array(x) for x in inputs], case))[0]
    return float((y.astype("float64") * weights).sum())


def moved(inputs, at, direction, step):
    """The inputs, those named by `at` moved along `direction`."""
    out = list(inputs)
    for i, d in zip(at, direction, strict=True):
        out[i] = inputs[i] + step * d
    return out


def gradients(row, case, inputs, at, weights, create_graph=False):
    """The inputs as arrays, and the gradients of the weighted sum with respect to those named by `at`."""
    arrays = [np.array(x) for x in inputs]
    for i in at:
        arrays[i].attach_grad()
    with autograd.record():
        z = total(row, case, arrays, weights)
        grads = autograd.grad(
            [z], [arrays[i] for i in at], create_graph=create_graph, retain_graph=create_graph
        )
        return arrays, grads


def parameters(order: int):
    """A parameter for each smooth case of each row checked to this order."""
    out = []
    for n, row in enumerate(ROWS):
        if differentiable(row) and row.grad >= order:
            cases = [c for c in row.cases if c.smooth and sum(map(onp.prod, c.shapes)) < 500]
            out += [pytest.param(row, c, id=f"{row.name}-{n}.{i}") for i, c in enumerate(cases)]
    return out


@pytest.mark.parametrize(("row", "case"), parameters(1))
def test_first_order(row, case):
    inputs = row.draw(case, "float64")
    at = leaves(row, inputs)
    rng = row.seed(str(case), "direction")
    shape = outputs(call(row, [np.array(x) for x in inputs], case))[0].shape
    weights = rng.standard_normal(shape)
    direction = [rng.standard_normal(inputs[i].shape) for i in at]
    up, down = (value(row, case, moved(inputs, at, direction, s * EPS[1]), weights) for s in (1, -1))
    _, grads = gradients(row, case, inputs, at, np.array(weights))
    for i, g in zip(at, grads, strict=True):
        assert g.shape == inputs[i].shape
        assert g.dtype == "float64"
    got = sum(float((g.asnumpy() * d).sum()) for g, d in zip(grads, direction, strict=True))
    rtol, atol = DERIVATIVE[1]
    size = max(1.0, onp.abs(weights).sum() if weights.size else 1.0)
    onp.testing.assert_allclose(got, (up - down) / (2 * EPS[1]), rtol=rtol, atol=atol * size)


@pytest.mark.parametrize(("row", "case"), parameters(2))
def test_second_order(row, case):
    """The derivative of <gradient, v> in a random direction; `create_graph` keeps the gradient differentiable."""
    inputs = row.draw(case, "float64")
    at = leaves(row, inputs)
    rng = row.seed(str(case), "second")
    shape = outputs(call(row, [np.array(x) for x in inputs], case))[0].shape
    weights = np.array(rng.standard_normal(shape))
    v = [rng.standard_normal(inputs[i].shape) for i in at]
    direction = [rng.standard_normal(inputs[i].shape) for i in at]

    def slope(step):
        _, grads = gradients(row, case, moved(inputs, at, direction, step), at, weights)
        return sum(float((g.asnumpy() * d).sum()) for g, d in zip(grads, v, strict=True))

    numeric = (slope(EPS[2]) - slope(-EPS[2])) / (2 * EPS[2])
    with autograd.record():
        arrays, grads = gradients(row, case, inputs, at, weights, create_graph=True)
        along = sum(
            (np.sum(g * np.array(d)) for g, d in zip(grads, v, strict=True)), np.zeros((), dtype="float64")
        )
    if not _core.has_history(along):  # the gradient is the same everywhere
        onp.testing.assert_allclose(numeric, 0, atol=DERIVATIVE[2][1] * max(1.0, float(onp.prod(shape))))
        return
    along.backward()
    got = sum(float((arrays[i].grad.asnumpy() * d).sum()) for i, d in zip(at, direction, strict=True))
    rtol, atol = DERIVATIVE[2]
    onp.testing.assert_allclose(got, numeric, rtol=rtol, atol=atol * max(1.0, float(onp.prod(shape))))


@pytest.mark.parametrize("row", [r for r in ROWS if r.grad == 0 and "float64" in r.dtypes], ids=str)
def test_locally_constant(row):
    """The gradient is zero, not missing: a sum with such a term trains on."""
    case = row.cases[0]
    arrays = [np.array(x) for x in row.draw(case, "float64")]
    at = [i for i in range(len(arrays)) if arrays[i].dtype == "float64"]
    for i in at:
        arrays[i].attach_grad()
    with autograd.record():
        y = call(row, arrays, case)
        z = np.sum(y.astype("float64")) + sum(np.sum(arrays[i]) for i in at)
    z.backward()
    for i in at:
        onp.testing.assert_array_equal(arrays[i].grad.asnumpy(), onp.ones(arrays[i].shape))


@pytest.mark.parametrize(
    "row", [r for r in ROWS if differentiable(r) and r.grad > 0 and r.elementwise], ids=str
)
def test_broadcasting(row):
    """The gradient of a broadcast operand is the sum over what it was broadcast to."""
    count = len(row.cases[0].shapes)
    if count < 2:
        pytest.skip("one operand")
    wide = Case(((3, 4),) * count)
    inputs = row.draw(Case((((1, 4), (3, 1), ()) * 2)[:count]), "float64")
    weights = row.seed("weights").standard_normal((3, 4))
    at = leaves(row, inputs)
    _, narrow = gradients(row, Case(tuple(x.shape for x in inputs)), inputs, at, np.array(weights))
    full = [onp.ascontiguousarray(onp.broadcast_to(x, (3, 4))) for x in inputs]
    _, spread = gradients(row, wide, full, at, np.array(weights))
    for i, n, s in zip(at, narrow, spread, strict=True):
        want = (
            s.asnumpy().sum(0, keepdims=inputs[i].shape[:1] == (1,)) if inputs[i].ndim else s.asnumpy().sum()
        )
        if inputs[i].shape == (3, 1):
            want = s.asnumpy().sum(1, keepdims=True)
        assert n.shape == inputs[i].shape
        onp.testing.assert_allclose(n.asnumpy(), want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("row", [r for r in ROWS if differentiable(r) and r.grad > 0], ids=str)
def test_grad_req_add(row):
    """'add' accumulates over two backward passes; 'write' keeps the last; 'null' gets none."""
    case = next(c for c in row.cases if c.smooth)
    inputs = row.draw(case, "float64")
    at = leaves(row, inputs)
    seen = {}
    for req in ("write", "add", "null"):
        arrays = [np.array(x) for x in inputs]
        for i in at:
            arrays[i].attach_grad(req)
        others = [i for i in at if req == "null"]
        if others:
            arrays[others[0]].attach_grad("write")
        for _ in range(2):
            with autograd.record():
                y = call(row, arrays, case)
                z = np.sum(y if isinstance(y, np.ndarray) else y[0])
            z.backward()
        seen[req] = [arrays[i].grad for i in at]
    for once, twice in zip(seen["write"], seen["add"], strict=True):
        onp.testing.assert_allclose(twice.asnumpy(), 2 * once.asnumpy(), rtol=1e-12, atol=1e-12)
    assert all(g is None or not g.asnumpy().any() for g in seen["null"][1:])


SAMPLE = [r for r in ROWS if differentiable(r) and r.grad > 0]


@pytest.mark.parametrize("row", SAMPLE, ids=str)
def test_engines_agree(row):
    """Gradients are fused or not, early or late: bit for bit the same."""
    case = next(c for c in row.cases if c.smooth)
    inputs = row.draw(case, "float64")
    at = leaves(row, inputs)
    shape = outputs(call(row, [np.array(x) for x in inputs], case))[0].shape
    weights = row.seed("weights").standard_normal(shape)
    found = []
    for kind in ("threaded", "naive"):
        with engine(kind):
            _, grads = gradients(row, case, inputs, at, np.array(weights))
            found.append([g.asnumpy().tobytes() for g in grads])
    assert found[0] == found[1]


@pytest.mark.parametrize("dtype", [d for d in FLOATS if d != "float64"])
@pytest.mark.parametrize("row", [r for r in SAMPLE if r.elementwise], ids=str)
def test_other_dtypes(row, dtype):
    """The gradient has its input's dtype, and float64's value within that dtype's reach."""
    if dtype not in row.dtypes:
        pytest.skip(f"no {dtype}")
    case = row.cases[0]
    inputs = row.draw(case, dtype)
    at = leaves(row, inputs)
    weights = onp.ones(outputs(call(row, [np.array(x) for x in inputs], case))[0].shape)
    _, grads = gradients(row, case, inputs, at, np.array(weights.astype(inputs[-1].dtype)))
    exact = [x.astype("float64") if x.dtype.kind != "b" else x for x in inputs]
    _, want = gradients(row, case, exact, at, np.array(weights))
    reach = {"float16": 2e-2, "bfloat16": 2e-1, "float32": 1e-4}[dtype]
    for i, g, w in zip(at, grads, want, strict=True):
        assert g.dtype == inputs[i].dtype
        onp.testing.assert_allclose(g.asnumpy().astype("float64"), w.asnumpy(), rtol=reach, atol=reach)


# ---- What MXNet programs rely on at the kinks

KINKS = [
    ("abs", lambda x: np.abs(x), 0.0, 0.0),
    ("relu", lambda x: npx.relu(x), 0.0, 0.0),
    ("maximum", lambda x: np.maximum(x, 0), 0.0, 1.0),
    ("minimum", lambda x: np.minimum(x, 0), 0.0, 1.0),
    ("clip low", lambda x: np.clip(x, 0, 1), 0.0, 1.0),
    ("clip high", lambda x: np.clip(x, 0, 1), 1.0, 1.0),
    ("clip outside", lambda x: np.clip(x, 0, 1), 1.5, 0.0),
]


@pytest.mark.parametrize(("name", "f", "at", "want"), KINKS, ids=[k[0] for k in KINKS])
def test_subgradients(name, f, at, want):
    x = np.array([at])
    x.attach_grad()
    with autograd.record():
        y = f(x)
    y.backward()
    assert x.grad.tolist() == [want]


def test_ties_of_a_maximum_share_nothing():
    """Each of several equal maxima gets the whole gradient."""
    x = np.array([2.0, 1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        y = np.max(x)
    y.backward()
    assert x.grad.tolist() == [1, 0, 1]


def test_where_keeps_nan_of_the_other_branch_out():
    """A gradient of the result that is not finite stays on its own side."""
    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    x.attach_grad()
    y.attach_grad()
    with autograd.record():
        z = np.where(np.array([True, False]), x, y)
    z.backward(np.array([onp.nan, onp.inf]))
    assert onp.isnan(x.grad.tolist()[0])
    assert x.grad.tolist()[1] == 0
    assert y.grad.tolist() == [0, onp.inf]


def test_integers_get_gradients():
    """As in MXNet: the gradient of an integer array has its dtype."""
    x = np.array([1, 2, 3], dtype="int32")
    x.attach_grad()
    with autograd.record():
        y = x * x
    y.backward()
    assert x.grad.tolist() == [2, 4, 6]
    assert x.grad.dtype == "int32"


IN_PLACE = [
    ("*= number", lambda y, w: y.__imul__(3), 3.0),
    ("/= number", lambda y, w: y.__itruediv__(4), 0.25),
    ("+= number", lambda y, w: y.__iadd__(3), 1.0),
    ("*= array", lambda y, w: y.__imul__(w), 5.0),
    ("/= array", lambda y, w: y.__itruediv__(w), 0.2),
    ("-= array", lambda y, w: y.__isub__(w), 1.0),
]


@pytest.mark.parametrize(("name", "write", "factor"), IN_PLACE, ids=[case[0] for case in IN_PLACE])
def test_in_place_updates_of_a_result(name, write, factor):
    """Exact where the rule does not need what was overwritten."""
    x, w = np.array([1.0, 2.0]), np.array([5.0, 5.0])
    x.attach_grad()
    with autograd.record():
        y = x * 2
        write(y, w)
        z = np.sum(y)
    z.backward()
    onp.testing.assert_allclose(x.grad.asnumpy(), [2 * factor] * 2, rtol=1e-6)


def test_an_in_place_product_of_two_results_is_refused():
    """Its rule needs the factor that was overwritten: an error at backward, never a wrong gradient."""
    x = np.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        y = x * 2
        y *= x
    with pytest.raises(MXNetError, match=r"multiply.*modified in place"):
        y.backward()


@pytest.mark.parametrize("product", [np.multiply, np.matmul, np.dot])
@pytest.mark.parametrize("side", [0, 1])
def test_a_factor_without_a_gradient_of_its_own(product, side):
    """Only the other factor is kept: the one with the gradient may be overwritten afterwards."""
    a, b = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[5.0, 6.0], [7.0, 8.0]])
    a.attach_grad()
    with autograd.record():
        h = a * 1
        y = np.sum(product(*((h, b) if side == 0 else (b, h))))
        h[...] = 0
    y.backward()
    ones = onp.ones((2, 2))
    other = b.asnumpy()
    want = other if product is np.multiply else ones @ other.T if side == 0 else other.T @ ones
    onp.testing.assert_allclose(a.grad.asnumpy(), want, rtol=1e-6)
