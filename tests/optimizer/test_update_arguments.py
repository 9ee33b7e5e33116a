"""Optimizers at the edges: nothing to update, copies in place of arrays, memory that weights share."""

import numpy as onp
import pytest

import mxnp as mx
from mxnp import _core, gluon, np, npx

NAMES = ["sgd", "nag", "adam", "adamw", "lamb", "rmsprop"]


@pytest.mark.parametrize("name", NAMES)
def test_no_weights_are_no_error(name):
    optimizer = mx.optimizer.create(name)
    mx.optimizer.get_updater(optimizer)([], [], [])
    assert optimizer.num_update == 0


@pytest.mark.parametrize("name", NAMES)
def test_a_step_without_any_fresh_gradient_changes_nothing(name):
    weight = gluon.Parameter("weight", shape=(3,), init="one")
    weight.initialize()
    gluon.Trainer([weight], name).step(1, ignore_stale_grad=True)
    assert weight.data().tolist() == [1, 1, 1]


def test_what_is_updated_in_place_must_be_an_array():
    with pytest.raises(TypeError, match=r"sgd_update: input 0 is updated in place.*got numpy.ndarray"):
        mx.optimizer.SGD().update(0, onp.ones(3, "float32"), np.ones(3), None)
    x, one, zero = np.ones((4, 3)), np.ones(3), np.zeros(3)
    with mx.autograd.train_mode(), pytest.raises(TypeError, match="batch_norm: input 3 is updated in place"):
        npx.batch_norm(x, one, zero, onp.zeros(3, "float32"), np.ones(3))
    npx.batch_norm(x, one, zero, onp.zeros(3, "float32"), onp.ones(3, "float32"))  # which only reads them


@pytest.mark.parametrize(("name", "momentum"), [("sgd", {}), ("sgd", {"momentum": 0.9}), ("adam", {})])
@pytest.mark.parametrize("distance", [1, 7, 40_000])
def test_a_weight_that_overlaps_its_gradient_has_the_same_bits_for_any_number_of_threads(
    name, momentum, distance
):
    def run(threads):
        _core.set_num_threads(threads)
        base = np.arange(200_000, dtype="float32") % 97
        optimizer = mx.optimizer.create(name, learning_rate=0.5, **momentum)
        weight = base[distance:]
        state = optimizer.create_state(0, weight)
        optimizer.update(0, weight, base[:-distance], state)
        return base.asnumpy()

    before = _core.num_threads()
    try:
        alone = run(1)
        assert all((run(threads) == alone).all() for threads in (2, 3, 8) for _ in range(5))
    finally:
        _core.set_num_threads(before)
    if name == "sgd" and not momentum:
        expected = onp.arange(200_000, dtype="float32") % 97
        for i in range(distance, len(expected), distance):
            here = expected[i : i + distance]
            here -= onp.float32(0.5) * expected[i - distance : i - distance + len(here)]
        assert (alone == expected).all()
