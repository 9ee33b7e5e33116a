"""Rows of pooling, against windows written out."""

from __future__ import annotations

import itertools

import numpy as onp

from specs.row import Bad, Case, Domain, Row


def pooling(
    x, kernel=(), stride=None, pad=None, pool_type="max", global_pool=False, count_include_pad=True, **_
):
    """Maximum, mean or sum over windows of `x` (N, C, *space)."""
    if global_pool:
        kernel, stride, pad = x.shape[2:], None, None
    n = len(kernel)
    stride, pad = stride or (1,) * n, pad or (0,) * n
    fill = -onp.inf if pool_type == "max" else 0.0
    around = [(0, 0), (0, 0), *((p, p) for p in pad)]
    padded = onp.pad(x, around, constant_values=fill)
    inside = onp.pad(onp.ones(x.shape), around)
    space = [(s + 2 * p - k) // t + 1 for s, k, t, p in zip(x.shape[2:], kernel, stride, pad, strict=True)]
    cuts = [
        tuple(
            [slice(None)] * 2
            + [slice(k, k + t * size, t) for k, t, size in zip(at, stride, space, strict=True)]
        )
        for at in itertools.product(*map(range, kernel))
    ]
    stacked = onp.stack([padded[cut] for cut in cuts])
    if pool_type == "max":
        return stacked.max(0)
    total = stacked.sum(0)
    if pool_type == "sum":
        return total
    return total / (len(cuts) if count_include_pad else onp.stack([inside[cut] for cut in cuts]).sum(0))


ROWS = (
    Row(
        "npx.pooling",
        pooling,
        ("float32", "float64"),
        (
            Case(((2, 3, 6, 6),), {"kernel": (2, 2), "stride": (2, 2)}),
            Case(((2, 3, 5, 6),), {"kernel": (3, 2), "stride": (2, 1), "pad": (1, 1)}),
            Case(((2, 3, 6, 6),), {"kernel": (2, 2), "stride": (2, 2), "pool_type": "avg"}),
            Case(((2, 3, 5, 5),), {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1), "pool_type": "avg"}),
            Case(
                ((2, 3, 5, 5),),
                {
                    "kernel": (3, 3),
                    "stride": (1, 1),
                    "pad": (1, 1),
                    "pool_type": "avg",
                    "count_include_pad": False,
                },
            ),
            Case(((2, 3, 5, 5),), {"global_pool": True, "pool_type": "avg", "kernel": (1, 1)}),
            Case(((2, 3, 9, 7),), {"global_pool": True, "pool_type": "avg", "kernel": (1, 1)}),
            Case(((2, 3, 5, 5),), {"global_pool": True, "pool_type": "sum", "kernel": (1, 1)}),
            Case(((2, 3, 5, 5),), {"global_pool": True, "pool_type": "max", "kernel": (1, 1)}),
            Case(((2, 3, 9),), {"kernel": (3,), "stride": (2,)}),
        ),
        domain=(Domain(-50, 50, distinct=True),),
        loose=8,
        bad=(
            Bad(
                lambda np, npx: npx.pooling(np.ones((1, 1, 4, 4)), kernel=(2, 2), pool_type="median"),
                ValueError,
                "pool_type",
            ),
            Bad(lambda np, npx: npx.pooling(np.ones((1, 1, 2, 2)), kernel=(5, 5)), ValueError, "pooling"),
        ),
    ),
)
