"""Updates of weights that lie otherwise than densely, and of a weight that is its own gradient."""

import numpy as onp
import pytest

from mxnp import np
from mxnp._ops.optim import adam_update, sgd_mom_update, sgd_update

UPDATES = [(sgd_update, 0, {}), (sgd_mom_update, 1, {"momentum": 0.9}), (adam_update, 2, {})]


def arrays(count: int, view) -> list:
    rng = onp.random.default_rng(0)
    return [view(np.array(rng.uniform(0.1, 1, (40, 6)).astype("float32"))) for _ in range(count)]


def call(update, *columns, lr=0.1, wd=0.0, **attrs):
    """The update of one weight."""
    update(*([array] for array in columns), [lr], [wd], **attrs)


@pytest.mark.parametrize("view", [lambda a: a.T, lambda a: a[::2], lambda a: a[:, 1:4], lambda a: a[::-1]])
@pytest.mark.parametrize(("update", "states", "attrs"), UPDATES)
def test_views_are_updated_as_copies_are(update, states, attrs, view):
    views = arrays(2 + states, view)
    copies = [v.copy() for v in views]
    call(update, *views, wd=0.01, rescale_grad=0.5, **attrs)
    call(update, *copies, wd=0.01, rescale_grad=0.5, **attrs)
    for a, b in zip(views, copies, strict=True):
        onp.testing.assert_array_equal(a.asnumpy(), b.asnumpy())


@pytest.mark.parametrize(("update", "states", "attrs"), UPDATES)
def test_a_weight_that_is_its_own_gradient(update, states, attrs):
    weight, *rest = arrays(1 + states, lambda a: a)
    twin, *others = [a.copy() for a in (weight, *rest)]
    call(update, weight, weight, *rest, wd=0.01, rescale_grad=0.5, **attrs)
    call(update, twin, twin.copy(), *others, wd=0.01, rescale_grad=0.5, **attrs)
    onp.testing.assert_array_equal(weight.asnumpy(), twin.asnumpy())


@pytest.mark.parametrize(("update", "states", "attrs"), UPDATES)
def test_a_gradient_that_is_not_a_number_is_not_clipped_to_one(update, states, attrs):
    weight, grad, *rest = arrays(2 + states, lambda a: a)
    grad[0, 0] = onp.nan
    call(update, weight, grad, *rest, clip_gradient=0.5, **attrs)
    assert onp.isnan(weight.asnumpy()[0, 0])
    assert onp.isfinite(weight.asnumpy()[1:]).all()
