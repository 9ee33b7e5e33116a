"""Rows of dense layers. Dropout draws at random: tests/npx checks what it promises."""

from __future__ import annotations

import math

from specs.row import FLOATS, Bad, Case, Domain, Row

SMALL = Domain(-2, 2)


def fully_connected(x, weight, bias=None, num_hidden=None, no_bias=False, flatten=True):
    """x weight.T + bias."""
    if flatten:
        x = x.reshape(x.shape[0], math.prod(x.shape[1:]))
    y = x @ weight.T
    return y if no_bias or bias is None else y + bias


ROWS = (
    Row(
        "npx.fully_connected",
        fully_connected,
        FLOATS,
        (
            Case(((3, 4), (5, 4), (5,)), {"num_hidden": 5, "no_bias": False}),
            Case(((3, 2, 2), (5, 4), (5,)), {"num_hidden": 5, "no_bias": False}),
            Case(((3, 2, 4), (5, 4), (5,)), {"num_hidden": 5, "no_bias": False, "flatten": False}),
            Case(((3, 4), (5, 4)), {"num_hidden": 5, "no_bias": True}),
            Case(((0, 4), (5, 4), (5,)), {"num_hidden": 5, "no_bias": False}),
        ),
        domain=(SMALL,),
        loose=16,
        bad=(
            Bad(
                lambda np, npx: npx.fully_connected(
                    np.ones((2, 3)), np.ones((5, 4)), num_hidden=5, no_bias=True
                ),
                ValueError,
                r"fully_connected.*(3|4)",
            ),
            Bad(
                lambda np, npx: npx.fully_connected(
                    np.ones((2, 3)), np.ones((5, 3)), np.ones((4,)), num_hidden=5, no_bias=False
                ),
                ValueError,
                r"fully_connected.*bias",
            ),
        ),
    ),
)
