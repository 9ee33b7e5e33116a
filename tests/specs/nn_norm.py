"""Rows of normalisations, against written-out formulas. Running statistics are tests/npx's to check."""

from __future__ import annotations

import numpy as onp

from specs.row import Bad, Case, Domain, Row

SCALE = Domain(0.5, 1.5)


def layer_norm(x, gamma, beta, axis=-1, eps=1e-5):
    """Mean 0 and variance 1 along an axis, then a learned scale and shift."""
    mean, var = x.mean(axis, keepdims=True), x.var(axis, keepdims=True)
    shape = [1] * x.ndim
    shape[axis] = -1
    return (x - mean) / onp.sqrt(var + eps) * gamma.reshape(shape) + beta.reshape(shape)


def batch_norm(x, gamma, beta, mean, var, eps=1e-3, fix_gamma=True, use_global_stats=False, axis=1, **_):
    """By the running statistics, as in prediction."""
    shape = [1] * x.ndim
    shape[axis] = -1
    scale = onp.ones_like(gamma) if fix_gamma else gamma
    normal = (x - mean.reshape(shape)) / onp.sqrt(var.reshape(shape) + eps)
    return normal * scale.reshape(shape) + beta.reshape(shape)


def group_norm(x, gamma, beta, num_groups=1, eps=1e-3):
    """Mean 0 and variance 1 over each group of channels, then scaled and shifted by channel."""
    grouped = x.reshape(x.shape[0], num_groups, -1)
    mean, var = grouped.mean(-1, keepdims=True), grouped.var(-1, keepdims=True)
    shape = [1, -1, *[1] * (x.ndim - 2)]
    return ((grouped - mean) / onp.sqrt(var + eps)).reshape(x.shape) * gamma.reshape(shape) + beta.reshape(
        shape
    )


def instance_norm(x, gamma, beta, eps=1e-3):
    """Mean 0 and variance 1 over each channel of each sample."""
    return group_norm(x, gamma, beta, x.shape[1], eps)


ROWS = (
    Row(
        "npx.group_norm",
        group_norm,
        ("float32", "float64"),
        (
            Case(((2, 4, 3), (4,), (4,)), {"num_groups": 2, "eps": 1e-3}),
            Case(((2, 6, 2, 2), (6,), (6,)), {"num_groups": 3, "eps": 1e-5}),
        ),
        domain=(Domain(), SCALE, Domain()),
        loose=16,
        bad=(
            Bad(
                lambda np, npx: npx.group_norm(
                    np.ones((2, 4, 3)), np.ones((4,)), np.ones((4,)), num_groups=3
                ),
                ValueError,
                "group",
            ),
        ),
    ),
    Row(
        "npx.instance_norm",
        instance_norm,
        ("float32", "float64"),
        (Case(((2, 3, 5), (3,), (3,)), {"eps": 1e-3}), Case(((2, 3, 3, 2), (3,), (3,)), {"eps": 1e-5})),
        domain=(Domain(), SCALE, Domain()),
        loose=16,
    ),
    Row(
        "npx.layer_norm",
        layer_norm,
        ("float32", "float64"),
        (
            Case(((3, 7), (7,), (7,)), {"axis": -1, "eps": 1e-5}),
            Case(((2, 3, 4), (3,), (3,)), {"axis": 1, "eps": 1e-3}),
            Case(((0, 4), (4,), (4,)), {"axis": -1, "eps": 1e-5}, smooth=False),
        ),
        domain=(Domain(), SCALE, Domain()),
        loose=16,
        bad=(
            Bad(
                lambda np, npx: npx.layer_norm(np.ones((2, 3)), np.ones((3,)), np.ones((3,)), axis=2),
                onp.exceptions.AxisError,
                "axis 2 is out of bounds for array of dimension 2",
            ),
            Bad(
                lambda np, npx: npx.layer_norm(np.ones((2, 3)), np.ones((4,)), np.ones((3,)), axis=-1),
                ValueError,
                "gamma",
            ),
        ),
    ),
    Row(
        "npx.batch_norm",
        batch_norm,
        ("float32", "float64"),
        (
            Case(((4, 3), (3,), (3,), (3,), (3,)), {"fix_gamma": False}),
            Case(((2, 3, 4), (3,), (3,), (3,), (3,)), {"fix_gamma": False, "axis": 1, "eps": 1e-5}),
            Case(((2, 4, 3), (3,), (3,), (3,), (3,)), {"axis": -1}, smooth=False),
        ),
        domain=(Domain(), SCALE, Domain(), Domain(), Domain(0.5, 2.0)),
        writes=True,
        grad="training and running statistics are tests/npx's",
        loose=16,
    ),
)
