"""Rows of sorting, and of what sorting finds."""

from __future__ import annotations

import numpy as onp

from specs.reduce import bad_axis
from specs.row import FLOATS, REAL, Bad, Case, Domain, Row, shapes

MANY = Domain(-40, 40, distinct=True)
FEW = Domain(-3, 3)
LINES = (
    shapes((3, 4)),
    shapes((3, 4), axis=0),
    shapes((2, 3, 4), axis=1),
    shapes((7,), axis=-1),
    shapes((0, 3), axis=0),
    Case(((3, 4),), {"axis": None}, core=None),
)


def stable_argsort(x, axis=-1):
    """Positions in order, equal ones as they came."""
    return onp.argsort(x, axis=axis, kind="stable")


def topk(x, axis=-1, k=1, ret_typ="indices", is_ascend=False, dtype="float32"):
    """MXNet's topk, from a stable sort."""
    order = onp.argsort(x if is_ascend else -x.astype("float64"), axis=axis, kind="stable")
    order = onp.take(order, onp.arange(k), axis=axis)
    if ret_typ == "value":
        return onp.take_along_axis(x, order, axis)
    if ret_typ == "mask":
        mask = onp.zeros(x.shape, x.dtype)
        onp.put_along_axis(mask, order, 1, axis)
        return mask
    return order.astype(dtype)


ROWS = (
    Row("np.sort", onp.sort, REAL + ("bool",), LINES, domain=(MANY,), bad=bad_axis("np.sort")),
    Row(
        "np.argsort",
        stable_argsort,
        REAL + ("bool",),
        LINES,
        domain=(FEW,),
        result="int64",
        grad=0,
        bad=bad_axis("np.argsort"),
    ),
    Row(
        "npx.topk",
        topk,
        REAL,
        (
            Case(((3, 4),), {"k": 2}),
            Case(((3, 4),), {"k": 2, "axis": 0}),
            Case(((3, 4),), {"k": 3, "is_ascend": True}),
        ),
        domain=(MANY,),
        result="float32",
        grad="positions",
        bad=(
            Bad(lambda np, npx: npx.topk(np.ones((2, 3)), k=4), ValueError, "k"),
            Bad(lambda np, npx: npx.topk(np.ones((2, 3)), k=1, ret_typ="best"), ValueError, "ret_typ"),
        ),
    ),
    Row(
        "npx.topk",
        topk,
        FLOATS,
        (
            Case(((3, 4),), {"k": 2, "ret_typ": "value"}),
            Case(((3, 4),), {"k": 2, "axis": 0, "ret_typ": "value"}),
            Case(((2, 5),), {"k": 2, "ret_typ": "mask"}, smooth=False),
        ),
        domain=(MANY,),
    ),
    Row(
        "np.unique",
        onp.unique,
        REAL,
        (shapes((3, 4)), shapes((0,))),
        op=None,
        domain=(FEW,),
        grad="sizes depend on data",
    ),
)
