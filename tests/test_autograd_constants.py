"""Results that are locally constant (comparisons, rounded numbers, positions) as parts and heads of backward: zeros,
as in MXNet, at no cost to what does have a gradient.
"""

from __future__ import annotations

import numpy as onp
import pytest

from mxnp import MXNetError, autograd, gluon, np, npx


def leaf(values, req="write"):
    x = np.array(values)
    x.attach_grad(req)
    if req != "null":
        x.grad[...] = 7
    return x


CONSTANT = {
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "fix": np.fix,
    "rint": np.rint,
    "round": np.round,
    "sign": np.sign,
    "floor_divide": lambda x: x // 2,
    "isnan": np.isnan,
    "isfinite": np.isfinite,
    "logical_not": np.logical_not,
    "greater": lambda x: x > 1,
    "greater, both": lambda x: x > 2 * x,
    "any": np.any,
    "all": np.all,
    "argmax": np.argmax,
    "argmin": np.argmin,
    "argsort": np.argsort,
    "topk": npx.topk,
    "zeros_like": np.zeros_like,
    "ones_like": np.ones_like,
    "full_like": lambda x: np.full_like(x, 3),
    "stop_gradient": npx.stop_gradient,
    "shape_array": npx.shape_array,
    "arange_like": npx.arange_like,
    "one_hot": lambda x: npx.one_hot(x, 3),
    "nonzero": lambda x: npx.nonzero(x),
    "astype bool": lambda x: x.astype("bool"),
    "sum of floor": lambda x: np.floor(2 * x).sum(),
    "view of floor": lambda x: np.floor(x)[1:].reshape(1, -1),
}


@pytest.mark.parametrize("name", CONSTANT)
def test_a_constant_head_has_gradients_of_zero(name):
    x = leaf([1.5, -2.5, 0.0])
    with autograd.record():
        y = CONSTANT[name](x)
    y.backward()
    assert x.grad.tolist() == [0, 0, 0]
    x = leaf([1.5, -2.5, 0.0])
    with autograd.record():
        y = CONSTANT[name](x * 2)
        (g,) = autograd.grad(y, x)
    assert g.tolist() == [0, 0, 0]
    assert x.grad.tolist() == [7, 7, 7], "autograd.grad leaves gradient arrays alone"


def test_add_adds_nothing():
    x = leaf([1.5], "add")
    with autograd.record():
        y = np.floor(x)
    y.backward()
    assert x.grad.tolist() == [7]


def test_what_reaches_a_leaf_through_a_constant_only_is_zero():
    """Beside a gradient that flows elsewhere."""
    x, w = leaf([1.0, -1.0]), leaf([2.0, 3.0])
    with autograd.record():
        y = (x > 0) * w
    y.backward()
    assert x.grad.tolist() == [0, 0]
    assert w.grad.tolist() == [1, 0]


def test_a_constant_beside_a_slope():
    x = leaf([1.5, -2.5])
    with autograd.record():
        y = np.floor(x) * x + np.where(x > 0, x, 0) + np.argmax(x)
    y.backward()
    assert x.grad.tolist() == [2, -3]


def test_a_mask_keeps_nothing():
    """The factor beside a constant is not saved for it: it may be written afterwards."""
    x = leaf([1.0, -1.0])
    with autograd.record():
        mask = x > 0
        h = x * 3
        y = np.sum(mask * h)
        h[...] = 0
    y.backward()
    assert x.grad.tolist() == [3, 0]


def test_writing_a_constant_into_a_shared_array_while_recording():
    x = leaf([1.0, -1.0])
    flags = np.zeros((2, 2))
    row = flags[0]
    with autograd.record():
        row[...] = x > 0
        flags[1] = np.sign(x)
    assert flags.tolist() == [[1, 0], [1, -1]]


def test_attach_grad_on_a_constant_starts_a_tape():
    x = leaf([1.5])
    with autograd.record():
        y = np.floor(x)
        y.attach_grad()
        z = y * y * x
    z.backward()
    assert y.grad.tolist() == [3]
    assert x.grad.tolist() == [1]
    with autograd.record():
        y = np.floor(x)
        y.attach_grad()
        z = y * y
    z.backward()
    assert y.grad.tolist() == [2]
    assert x.grad.tolist() == [0]


def test_the_gradient_for_a_constant_is_asked_for_in_time():
    x = leaf([1.5])
    with autograd.record():
        y = np.floor(x)
        z = y * y
    with pytest.raises(MXNetError, match=r"locally constant\nhint: call attach_grad\(\)"):
        autograd.grad(z, y)


def test_no_history_is_still_no_history():
    with autograd.record():
        y = np.floor(np.ones(2))
    with pytest.raises(MXNetError, match="no history"):
        y.backward()


def test_a_stopped_gradient_is_a_constant_and_a_detached_array_has_no_history():
    x = leaf([1.0, 2.0])
    with autograd.record():
        y = x * npx.stop_gradient(x) + np.ones_like(x)
        z = x.detach()
    y.backward()
    assert x.grad.tolist() == [1, 2]
    with pytest.raises(MXNetError, match="no history"):
        z.backward()


def test_constants_are_written_in_place_while_recording():
    x = leaf([1.0, 2.0])
    with autograd.record():
        y = np.zeros_like(x)
        first = y[:1]
        first[:] = 3
        y[1] = x[1] * 2 if first is None else 5
        z = x * y
    z.backward()
    assert x.grad.tolist() == [3, 5]


def test_a_count_that_a_loop_carries():
    """After each backward what the count was made from is used up; the count is still an array like any other."""
    w = leaf([1.0, 2.0])
    correct = np.zeros(())
    for _ in range(3):
        with autograd.record():
            out = np.tanh(np.ones((4, 2)) * w)
            correct = correct + (out.argmax(1) == 1).sum()
            loss = (out * out).sum()
        loss.backward()
        assert onp.all(w.grad.asnumpy() != 0)
    correct.backward()
    assert correct.item() == 3 * 4


@pytest.mark.parametrize("hybrid", [False, True])
def test_constants_inside_a_compiled_block(hybrid):
    """A replay has the same zeros, and knows whether an argument is constant."""

    class Steps(gluon.HybridBlock):
        def forward(self, x, y):
            return np.floor(x) * y, np.sign(y)

    net = Steps()
    if hybrid:
        net.hybridize()
    for at in (1.5, 2.5, 3.5):
        x, y = leaf([at]), leaf([at + 1])
        with autograd.record():
            product, sign = net(x * 2, y)
        product.backward()
        assert (x.grad.item(), y.grad.item()) == (0, 2 * at)
        x, y = leaf([at]), leaf([at + 1])
        with autograd.record():
            product, sign = net(x * 2, y)
        sign.backward()
        assert (x.grad.item(), y.grad.item()) == (7, 0)
        with autograd.record():
            product, sign = net(np.floor(x), y)
            product = product * x
        product.backward()
        assert x.grad.item() == (at // 1) * (at + 1)
