"""Rows of products of matrices."""

from __future__ import annotations

import numpy as onp

from specs.row import ALL, COMPLEX, FLOATS, INTS, NUMBERS, Bad, Case, Domain, Row, shapes

SMALL = Domain(-2, 2)


def product(name: str, *cases: Case, **kw) -> Row:
    """A row of a product, against NumPy's function of that name."""
    return Row(
        f"np.{name}", getattr(onp, name), kw.pop("dtypes", NUMBERS), cases, domain=(SMALL,), loose=16, **kw
    )


ROWS = (
    product(
        "matmul",
        shapes((3, 4), (4, 5)),
        shapes((4,), (4, 5)),
        shapes((3, 4), (4,)),
        shapes((4,), (4,)),
        shapes((2, 3, 4), (4, 5)),
        shapes((2, 1, 3, 4), (5, 4, 2)),
        shapes((0, 4), (4, 5)),
        shapes((3, 0), (0, 5)),
        shapes((37, 70), (70, 33)),
        dtypes=ALL,
        out=True,
        bad=(
            Bad(
                lambda np, npx: np.matmul(np.ones((2, 3)), np.ones((4, 5))),
                ValueError,
                r"matmul.*mismatch|size 4 is different from 3",
            ),
            Bad(lambda np, npx: np.matmul(np.ones((2, 3)), np.ones(())), ValueError, "matmul"),
            Bad(
                lambda np, npx: np.matmul(np.ones((2, 3, 4)), np.ones((3, 4, 5))),
                ValueError,
                "could not be broadcast together",
            ),
        ),
    ),
    product(
        "dot",
        shapes((3, 4), (4, 5)),
        shapes((4,), (4,)),
        shapes((2, 3, 4), (4,)),
        shapes((2, 3, 4), (5, 4, 2)),
        shapes((), (3,)),
        shapes((2, 3), ()),
        dtypes=ALL,
        bad=(
            Bad(
                lambda np, npx: np.dot(np.ones((2, 3)), np.ones((2, 3))),
                ValueError,
                r"not aligned|\(2, ?3\)",
            ),
        ),
    ),
    product("inner", shapes((3,), (3,)), shapes((2, 3), (4, 3)), op=None, dtypes=FLOATS + COMPLEX),
    product("outer", shapes((3,), (4,)), shapes((2, 2), (3,)), op=None, dtypes=FLOATS + INTS),
    product("vdot", shapes((3,), (3,)), op=None, dtypes=FLOATS),
    product("tensordot", Case(((2, 3, 4), (3, 4, 2)), {"axes": 2}), op=None, dtypes=FLOATS),
    Row(
        "np.trace",
        onp.trace,
        FLOATS + INTS,
        (shapes((3, 4)), shapes((3, 3), offset=1)),
        op=None,
        result="sum",
        loose=4,
    ),
)
