"""Rows of indexing by arrays, as functions; indexing with brackets is test_views.py's."""

from __future__ import annotations

import numpy as onp

from specs.row import ALL, NUMBERS, REAL, Bad, Case, Domain, Row, shapes

AT = Domain(-3, 2, dtype="int64")  # indices of an axis of size 3
UP = Domain(0, 2, dtype="int64")
ANY = Domain()


def picked(x, index, axis=-1, mode="clip", keepdims=False):
    """MXNet's pick: one element for each position of the other axes."""
    index = onp.clip(index.astype("int64"), 0, x.shape[axis] - 1)
    out = onp.take_along_axis(x, onp.expand_dims(index, axis), axis)
    return out if keepdims else out.squeeze(axis)


def one_hot(x, depth, on_value=1.0, off_value=0.0, dtype="float32"):
    """A row for each index; one out of range marks nothing."""
    hit = x.astype("int64")[..., None] == onp.arange(depth)
    return onp.where(hit, on_value, off_value).astype(dtype)


ROWS = (
    Row(
        "np.take",
        onp.take,
        ALL,
        (
            Case(((3, 4), (5,)), {"axis": 0}),
            Case(((2, 3), (2, 2)), {"axis": 1}),
            Case(((3,), ()), {"axis": 0}),
            Case(((3, 2), (0,)), {"axis": 0}),
            Case(((3, 2), (4,)), {}, core=None),
            Case(((3, 4), (5,)), {"axis": 0, "mode": "wrap"}),
            Case(((3, 4), (5,)), {"axis": 0, "mode": "clip"}),
        ),
        domain=(ANY, AT),
        bad=(
            Bad(
                lambda np, npx: np.take(np.ones((2, 3)), np.array([5], dtype="int64"), axis=1).wait_to_read(),
                IndexError,
                r"index 5 is out of bounds for axis 1 with size 3",
            ),
            Bad(
                lambda np, npx: np.take(np.ones((2, 3)), np.array([0], dtype="int64"), axis=2),
                onp.exceptions.AxisError,
                "axis 2 is out of bounds for array of dimension 2",
            ),
            Bad(
                lambda np, npx: np.take(np.ones((2,)), np.array([0], dtype="int64"), axis=0, mode="bounce"),
                ValueError,
                "mode",
            ),
        ),
    ),
    Row(
        "np.take_along_axis",
        onp.take_along_axis,
        ALL,
        (
            Case(((3, 4), (2, 4)), {"axis": 0}),
            Case(((2, 3), (2, 5)), {"axis": 1}),
            Case(((2, 3), (1, 5)), {"axis": -1}),
        ),
        domain=(ANY, AT),
        bad=(
            Bad(
                lambda np, npx: np.take_along_axis(np.ones((2, 3)), np.array([0], dtype="int64"), axis=0),
                ValueError,
                "dimensions",
            ),
        ),
    ),
    Row(
        "npx.pick",
        picked,
        ALL,
        (
            Case(((4, 3), (4,)), {}),
            Case(((3, 4), (4,)), {"axis": 0}),
            Case(((4, 3), (4,)), {"keepdims": True}),
        ),
        domain=(ANY, UP),
        bad=(
            Bad(lambda np, npx: npx.pick(np.ones((2, 3)), np.ones((3,))), ValueError, "index"),
            Bad(
                lambda np, npx: npx.pick(np.ones((2, 3)), np.array([0, -1]), mode="strict").wait_to_read(),
                IndexError,
                "pick: index -1 is out of bounds for axis 1 with size 3",
            ),
            Bad(
                lambda np, npx: npx.pick(np.ones((2, 3)), np.ones(2), mode="nearest"), ValueError, "'strict'"
            ),
        ),
    ),
    Row(
        "npx.one_hot",
        one_hot,
        ("int32", "int64", "uint8", "float32"),
        (
            Case(((4,),), {"depth": 3}),
            Case(((2, 3),), {"depth": 4, "on_value": 2.0, "off_value": -1.0}),
            Case(((3,),), {"depth": 3, "dtype": "int32"}, core=None),
            Case(((0,),), {"depth": 3}),
        ),
        domain=(Domain(0, 3.9),),
        result=lambda dtype: "*",
        grad=0,
        wide=False,
        bad=(Bad(lambda np, npx: npx.one_hot(np.ones((2,), dtype="int32"), -1), ValueError, "negative"),),
    ),
    Row(
        "np.nonzero",
        onp.nonzero,
        ALL,
        (Case(((3, 4),), core=None), Case(((5,),), core=None)),
        domain=(Domain(-1, 1),),
        result="int64",
        grad="indices",
    ),
    Row(
        "np.argwhere",
        onp.argwhere,
        REAL,
        (shapes((3, 4)), shapes((0, 2))),
        op=None,
        domain=(Domain(-1, 1),),
        result="int64",
        grad="indices",
    ),
    Row(
        "np.flatnonzero",
        onp.flatnonzero,
        REAL,
        (shapes((3, 4)),),
        op=None,
        domain=(Domain(-1, 1),),
        result="int64",
        grad="indices",
    ),
    Row(
        "np.searchsorted",
        onp.searchsorted,
        REAL,
        (
            Case(((1,), (5,)), {}),
            Case(((0,), (3,)), {}),
            Case(((1,), (2, 2)), {"side": "right"}),
        ),
        result="int64",
        grad=0,
        bad=(
            Bad(
                lambda np, npx: np.searchsorted(np.ones((3,)), np.ones((2,)), side="middle"),
                ValueError,
                "'left' or 'right'",
            ),
            Bad(
                lambda np, npx: np.searchsorted(np.ones((3, 2)), 1),
                ValueError,
                r"one dimension, got shape \(3, 2\)",
            ),
        ),
    ),
    Row("np.diag", onp.diag, NUMBERS, (shapes((3,)), shapes((3, 3)), shapes((3, 4), k=1)), op=None),
    Row("np.tril", onp.tril, NUMBERS, (shapes((3, 4)), shapes((3, 3), k=-1)), op=None),
    Row("np.triu", onp.triu, NUMBERS, (shapes((3, 4)), shapes((3, 3), k=1)), op=None),
    Row(
        "np.count_nonzero",
        onp.count_nonzero,
        ALL,
        (shapes((3, 4)), shapes((0,)), shapes(()), shapes((70, 130))),
        result="int64",
        domain=(Domain(-1, 1),),
        grad=0,
    ),
)
