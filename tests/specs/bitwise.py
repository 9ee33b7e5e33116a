"""Rows of bitwise functions of integers and bools."""

from __future__ import annotations

import numpy as onp

from specs.row import INTS, Bad, Domain, binary, unary

BITS = Domain(-128, 255)
INTEGERS = "integers only"
SHIFTS = (Domain(-100, 100), Domain(0, 9))


def no_floats(name: str, count: int = 2) -> Bad:
    """A function that refuses floats."""
    return Bad(
        lambda np, npx: getattr(np, name)(*[np.ones((2,))] * count), TypeError, "bitwise.*not supported"
    )


ROWS = (
    *(
        binary(
            f"np.bitwise_{name}",
            getattr(onp, f"bitwise_{name}"),
            INTS + ("bool",),
            domain=(BITS,),
            grad=INTEGERS,
            bad=(no_floats(f"bitwise_{name}"),),
        )
        for name in ("and", "or", "xor")
    ),
    unary(
        "np.invert",
        onp.invert,
        INTS + ("bool",),
        op="bitwise_not",
        domain=(BITS,),
        grad=INTEGERS,
        bad=(no_floats("invert", 1),),
    ),
    binary("np.left_shift", onp.left_shift, INTS, domain=SHIFTS, grad=INTEGERS),
    binary("np.right_shift", onp.right_shift, INTS, domain=SHIFTS, grad=INTEGERS),
)
