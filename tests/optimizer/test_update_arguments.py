"""What optimizers' updates are called with at the edges: nothing to update."""

import pytest

import mxnp as mx
from mxnp import gluon

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
