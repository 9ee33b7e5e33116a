"""Rows of functions that put arrays together, repeat or roll them."""

from __future__ import annotations

import numpy as onp

from specs.row import ALL, NUMBERS, Bad, Case, Row, shapes

THREE = (
    shapes((2, 3), (1, 3), (4, 3)),
    shapes((2, 3), (2, 0), (2, 1), axis=1),
    shapes((2, 3), (2, 3), axis=-1),
    shapes((70, 130), (70, 2), axis=1),
)


def joined(name: str, *cases: Case, **kw) -> Row:
    """A row of a function of a list of arrays."""
    ref = getattr(onp, name)
    return Row(f"np.{name}", lambda *xs, **attrs: ref(xs, **attrs), ALL, cases, listed=True, **kw)


def moved(name: str, *cases: Case, **kw) -> Row:
    """A row of a function of one array."""
    return Row(f"np.{name}", getattr(onp, name), ALL, cases, **kw)


ROWS = (
    joined(
        "concatenate",
        *THREE,
        out=True,
        bad=(
            Bad(
                lambda np, npx: np.concatenate([np.ones((2, 3)), np.ones((2, 4))]),
                ValueError,
                "must match exactly|dimension",
            ),
            Bad(
                lambda np, npx: np.concatenate([np.ones((2, 3)), np.ones((2,))]),
                ValueError,
                "same number of dimensions|dimension",
            ),
            Bad(lambda np, npx: np.concatenate([]), ValueError, "need at least one array to concatenate"),
            Bad(
                lambda np, npx: np.concatenate([np.ones((2, 3))], axis=2),
                onp.exceptions.AxisError,
                "axis 2 is out of bounds for array of dimension 2",
            ),
        ),
    ),
    joined(
        "stack",
        shapes((2, 3), (2, 3)),
        shapes((2, 3), (2, 3), (2, 3), axis=-1),
        shapes((), ()),
        shapes((0, 2), (0, 2), axis=1),
        out=True,
        bad=(
            Bad(
                lambda np, npx: np.stack([np.ones((2,)), np.ones((3,))]),
                ValueError,
                "all input arrays must have the same shape",
            ),
            Bad(lambda np, npx: np.stack([]), ValueError, "need at least one array to stack"),
        ),
    ),
    joined("vstack", shapes((2, 3), (1, 3)), shapes((3,), (3,)), op=None),
    joined("hstack", shapes((2, 3), (2, 1)), shapes((3,), (2,)), op=None),
    joined("dstack", shapes((2, 3), (2, 3)), op=None),
    joined("column_stack", shapes((3,), (3,)), shapes((3, 2), (3,)), op=None),
    moved(
        "repeat",
        Case(((3, 4),), {"repeats": 2, "axis": 0}),
        Case(((3, 4),), {"repeats": 3, "axis": -1}),
        Case(((3, 4),), {"repeats": 2}, core=None),
        Case(((3,),), {"repeats": 0, "axis": 0}),
        bad=(
            Bad(lambda np, npx: np.repeat(np.ones((2,)), -1, axis=0), ValueError, "negative"),
            Bad(
                lambda np, npx: np.repeat(np.ones((2,)), 2, axis=1),
                onp.exceptions.AxisError,
                "axis 1 is out of bounds for array of dimension 1",
            ),
        ),
    ),
    moved(
        "tile",
        Case(((3, 4),), {"reps": (2, 1)}),
        Case(((3,),), {"reps": (2, 2)}),
        Case(((2, 3),), {"reps": 2}, core={"reps": (2,)}),
        Case(((2, 3),), {"reps": (0, 1)}),
        bad=(Bad(lambda np, npx: np.tile(np.ones((2,)), -1), ValueError, "negative"),),
    ),
    moved(
        "roll",
        Case(((3, 4),), {"shift": 1, "axis": 0}),
        Case(((3, 4),), {"shift": (1, -2), "axis": (0, 1)}),
        Case(((3, 4),), {"shift": 5}, core=None),
        Case(((0, 4),), {"shift": 1, "axis": 0}),
        bad=(
            Bad(
                lambda np, npx: np.roll(np.ones((2,)), 1, axis=1),
                onp.exceptions.AxisError,
                "axis 1 is out of bounds for array of dimension 1",
            ),
        ),
    ),
    Row(
        "np.pad",
        lambda x, pad_width: onp.pad(x, pad_width),
        NUMBERS,
        (
            Case(((3, 4),), {"pad_width": ((1, 2), (0, 3))}, core=None),
            Case(((3,),), {"pad_width": 2}, core=None),
            Case(((2, 2),), {"pad_width": (1, 0)}, core=None),
        ),
        bad=(Bad(lambda np, npx: np.pad(np.ones((2,)), -1), ValueError, "negative"),),
    ),
)
