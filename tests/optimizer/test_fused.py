"""The sweeps of SGD and Adam against the same steps written with array operations."""

import numpy as onp
import pytest

from mxnp import np, optimizer

ARGUMENTS = {
    "sgd": [{}, {"momentum": 0.9}, {"momentum": 0.9, "wd": 0.1, "rescale_grad": 0.5, "clip_gradient": 0.3}],
    "adam": [{}, {"wd": 0.1, "rescale_grad": 0.5, "clip_gradient": 0.3, "epsilon": 1e-3}],
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "arguments"), [(n, a) for n, each in ARGUMENTS.items() for a in each])
def test_the_sweep_is_the_step(name, arguments, dtype):
    rng = onp.random.RandomState(0)
    start = rng.normal(size=(3, 5)).astype(dtype)
    weights = []
    for fused in (True, False):
        rng.seed(1)
        weight = np.array(start)
        update = optimizer.create(name, learning_rate=0.1, use_fused_step=fused, **arguments)
        state = update.create_state(0, weight)
        for _ in range(5):
            update.update(0, weight, np.array(rng.normal(size=(3, 5)).astype(dtype)), state)
        weights.append(weight.asnumpy())
    onp.testing.assert_allclose(*weights, rtol=1e-5 if dtype == "float32" else 1e-12)


@pytest.mark.parametrize("base", [optimizer.SGD, optimizer.Adam])
def test_a_subclass_with_a_step_of_its_own_keeps_it(base):
    class Own(base):
        def _apply(self, index, weight, grad, state, lr, wd):
            weight -= 1.0

    own, weight = Own(learning_rate=0.1), np.ones((2,))
    own.update(0, weight, np.ones((2,)), own.create_state(0, weight))
    assert weight.tolist() == [0, 0]
