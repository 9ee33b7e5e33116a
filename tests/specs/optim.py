"""Rows of the optimizers' updates, against their formulas. They write in place: results are the inputs named."""

from __future__ import annotations

import numpy as onp

from specs.row import FLOATS, Bad, Case, Domain, Row, public

NUMBER = Domain(0.05, 0.5, dtype="float64")  # learning rate, weight decay, gradient scale
UPDATE = "an optimizer's update is not differentiated"


def gradient(w, g, wd, rescale, clip):
    """The gradient scaled and clipped, with the decay of the weight."""
    g = g * rescale
    return (g if clip is None else onp.clip(g, -clip, clip)) + wd * w


def sgd_update(w, g, lr, wd, rescale, clip_gradient=None):
    """A step down the gradient."""
    return w - lr * gradient(w, g, wd, rescale, clip_gradient)


def sgd_mom_update(w, g, mom, lr, wd, rescale, momentum=0.0, clip_gradient=None):
    """A step of the momentum."""
    mom = momentum * mom - lr * gradient(w, g, wd, rescale, clip_gradient)
    return w + mom, mom


def adam_update(w, g, mean, var, lr, wd, rescale, beta1=0.9, beta2=0.999, epsilon=1e-8, clip_gradient=None):
    """Kingma and Ba, 2015; the bias correction is part of `lr`."""
    g = gradient(w, g, wd, rescale, clip_gradient)
    mean = beta1 * mean + (1 - beta1) * g
    var = beta2 * var + (1 - beta2) * g * g
    return w - lr * mean / (onp.sqrt(var) + epsilon), mean, var


def cases(arrays: int, **attrs) -> tuple[Case, ...]:
    """`arrays` of one shape, and the three numbers."""
    shapes = ((3, 4), (), (0, 3), (70, 130))
    each = ({}, attrs, attrs, {**attrs, "clip_gradient": 0.1})
    return tuple(Case((*(s,) * arrays, (), (), ()), a) for s, a in zip(shapes, each, strict=True))


def update(name: str, ref, arrays: int, written: tuple[int, ...], *domain: Domain, **attrs) -> Row:
    """A row of an update in place."""

    bad = (
        Bad(
            lambda np, npx: public(np, npx, f"core.{name}")(
                np.ones((2,)), *[np.ones((3,))] * (arrays - 1), 0.1, 0.0, 1.0
            ),
            ValueError,
            rf"{name}.*\(2,\).*\(3,\)",
        ),
        Bad(
            lambda np, npx: public(np, npx, f"core.{name}")(
                *[np.ones((2,), dtype="int32")] * arrays, 0.1, 0.0, 1.0
            ),
            TypeError,
            name,
        ),
        Bad(
            lambda np, npx: public(np, npx, f"core.{name}")(
                np.ones((2,)),
                np.ones((2,), dtype="complex64"),
                *[np.ones((2,))] * (arrays - 2),
                0.1,
                0.0,
                1.0,
            ),
            TypeError,
            rf"{name}: the gradient of a weight of dtype float32 must be real, got complex64",
        ),
    )
    return Row(
        f"core.{name}",
        ref,
        FLOATS,
        cases(arrays, **attrs),
        domain=(*domain, *[NUMBER] * 3),
        written=written,
        writes=True,
        grad=UPDATE,
        loose=4,
        bad=bad,
    )


W = Domain()
POSITIVE = Domain(0.5, 2.0)

ROWS = (
    update("sgd_update", sgd_update, 2, (0,), W, W),
    update("sgd_mom_update", sgd_mom_update, 3, (0, 2), W, W, W, momentum=0.9),
    update("adam_update", adam_update, 4, (0, 2, 3), W, W, W, POSITIVE, beta1=0.8, beta2=0.9),
)
