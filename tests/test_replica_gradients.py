"""Gradients on cpu(1): whatever a rule makes for itself is on its operands' device, not on the current one."""

import pytest

from mxnp import autograd, cpu, gluon, np, npx

REPLICA = cpu(1)
LABEL = np.array([0, 1], device=REPLICA)
FUNCTIONS = {
    "scaled": lambda x: x * 2,
    "divided": lambda x: 1 / x,
    "power": lambda x: x**2,
    "maximum": lambda x: np.maximum(x, 0),
    "clip": lambda x: np.clip(x, -1, 1),
    "hard_sigmoid": npx.hard_sigmoid,
    "where": lambda x: np.where(x > 0, x, x * 2),
    "mean": lambda x: x.mean(),
    "var": lambda x: x.var(),
    "norm": np.linalg.norm,
    "index": lambda x: x[[0, 1], 1],
    "pick": lambda x: npx.pick(x, LABEL),
    "take": lambda x: np.take(x, LABEL, axis=0),
    "sort": lambda x: np.sort(x),
    "cumsum": lambda x: np.cumsum(x, axis=1),
    "softmax": npx.softmax,
    "cross-entropy": lambda x: gluon.loss.SoftmaxCrossEntropyLoss()(x, LABEL),
    "l2": lambda x: gluon.loss.L2Loss()(x, np.ones((2, 3), device=REPLICA)),
    "huber": lambda x: gluon.loss.HuberLoss()(x, np.ones((2, 3), device=REPLICA)),
}


def gradient(function, device):
    x = np.array([[1.5, -0.5, 2.0], [0.25, 3.0, -2.0]], device=device)
    x.attach_grad()
    with autograd.record():
        y = function(x)
    y.backward()
    assert x.grad.device == device
    return x.grad.asnumpy()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradient_on_a_replica(name):
    found = gradient(FUNCTIONS[name], REPLICA)
    global LABEL
    with cpu(0):
        kept, LABEL = LABEL, LABEL.to_device(cpu(0))
        try:
            if name not in ("l2", "huber"):
                assert (found == gradient(FUNCTIONS[name], cpu(0))).all()
        finally:
            LABEL = kept


def test_second_order_on_a_replica():
    x = np.array([1.0, 2.0], device=REPLICA)
    x.attach_grad()
    with autograd.record():
        (dx,) = autograd.grad(x**3, [x], create_graph=True)
    dx.backward()
    assert x.grad.tolist() == [6.0, 12.0]
    assert x.grad.device == REPLICA


def test_the_current_device_is_as_before_after_backward():
    from mxnp import current_device

    gradient(FUNCTIONS["scaled"], REPLICA)
    assert current_device() == cpu(0)
