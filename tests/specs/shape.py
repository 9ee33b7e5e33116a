"""Rows of functions that give the same elements in another shape or order, without moving them."""

from __future__ import annotations

import numpy as onp

from specs.row import ALL, Bad, Case, Row, shapes


def moved(name: str, *cases: Case, **kw) -> Row:
    """A row of a view, against NumPy's function of that name."""
    return Row(f"np.{name}", getattr(onp, name), ALL, cases, **kw)


ROWS = (
    moved(
        "reshape",
        Case(((3, 4),), {"shape": (2, 6)}),
        Case(((3, 4),), {"shape": -1}, core={"shape": (12,)}),
        Case(((2, 3, 4),), {"shape": (4, -1)}, core={"shape": (4, 6)}),
        Case(((),), {"shape": (1, 1)}),
        Case(((0, 3),), {"shape": (3, 0, 2)}),
        bad=(
            Bad(
                lambda np, npx: np.reshape(np.ones((2, 3)), (4,)),
                ValueError,
                r"cannot reshape array of size 6 into shape \(4,\)",
            ),
            Bad(
                lambda np, npx: np.reshape(np.ones((2, 3)), (-1, 4)),
                ValueError,
                "cannot reshape array of size 6",
            ),
            Bad(
                lambda np, npx: np.reshape(np.ones((2, 3)), (-1, -1)),
                ValueError,
                "can only specify one unknown dimension",
            ),
        ),
    ),
    moved(
        "transpose",
        Case(((3, 4),), {}, core={"axes": (1, 0)}),
        Case(((2, 3, 4),), {"axes": (2, 0, 1)}),
        Case(((2, 3, 4),), {"axes": (0, -1, 1)}, core={"axes": (0, 2, 1)}),
        Case(((),), {}, core={"axes": ()}),
        bad=(
            Bad(lambda np, npx: np.transpose(np.ones((2, 3)), (0,)), ValueError, "axes don't match array"),
            Bad(lambda np, npx: np.transpose(np.ones((2, 3)), (0, 0)), ValueError, "axis|axes"),
        ),
    ),
    moved("swapaxes", Case(((2, 3, 4),), {"axis1": 0, "axis2": 2}), op=None),
    moved("moveaxis", Case(((2, 3, 4),), {"source": 0, "destination": -1}), op=None),
    moved("ravel", shapes((3, 4)), shapes(()), shapes((0, 2)), op=None),
    moved(
        "broadcast_to",
        Case(((3, 1),), {"shape": (2, 3, 4)}),
        Case(((),), {"shape": (2,)}),
        Case(((3,),), {"shape": (0, 3)}),
        bad=(
            Bad(
                lambda np, npx: np.broadcast_to(np.ones((2, 3)), (2, 4)),
                ValueError,
                r"could not be broadcast together",
            ),
        ),
    ),
    moved(
        "expand_dims",
        Case(((3, 4),), {"axis": 0}),
        Case(((3, 4),), {"axis": (0, -1)}),
        Case(((),), {"axis": 0}),
        bad=(
            Bad(
                lambda np, npx: np.expand_dims(np.ones((2, 3)), 4),
                onp.exceptions.AxisError,
                "axis 4 is out of bounds for array of dimension 3",
            ),
        ),
    ),
    moved(
        "squeeze",
        shapes((1, 3, 1)),
        Case(((1, 3, 1),), {"axis": 0}),
        Case(((1, 1),), {"axis": (0, 1)}),
        shapes((2, 3)),
        bad=(
            Bad(
                lambda np, npx: np.squeeze(np.ones((2, 3)), 0),
                ValueError,
                "cannot select an axis to squeeze out which has size not equal to one",
            ),
        ),
    ),
    moved(
        "flip",
        shapes((3, 4)),
        Case(((3, 4),), {"axis": 0}),
        Case(((2, 3, 4),), {"axis": (0, -1)}),
        shapes((0, 2)),
        bad=(
            Bad(
                lambda np, npx: np.flip(np.ones((2, 3)), 2),
                onp.exceptions.AxisError,
                "axis 2 is out of bounds for array of dimension 2",
            ),
        ),
    ),
    moved("atleast_1d", shapes(()), shapes((2, 3)), op=None),
    moved("atleast_2d", shapes(()), shapes((3,)), op=None),
    moved("diagonal", shapes((3, 4)), shapes((3, 3), offset=1), op=None),
)
