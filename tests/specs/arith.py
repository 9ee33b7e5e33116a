"""Rows of arithmetic: add, multiply, maximum, floor_divide, clip, sign, rounding."""

from __future__ import annotations

import numpy as onp

from specs.row import (
    ALL,
    FLOATS,
    INTS,
    NUMBERS,
    REAL,
    Bad,
    Domain,
    binary,
    magnitude,
    shapes,
    unary,
)

APART = Domain(avoid=(0.0,), gap=0.25)  # away from a pole, a kink or a division by zero
POSITIVE = Domain(0.25, 3.0)
STEPS = Domain(avoid=tuple(k / 2 for k in range(-8, 9)), gap=0.1)  # away from where rounding jumps


def no_bools(name: str, *args: bool) -> Bad:
    """A function that refuses bools."""

    def call(np, npx):
        return getattr(np, name)(*(np.array([a]) for a in args))

    return Bad(call, TypeError, rf"{name}")


def power(x, y):
    """NumPy's power; integers in their own dtype."""
    return onp.power(x, y)


def real_floor_divide(x, y):
    """Division rounded down, in the operands' dtype."""
    return onp.floor_divide(x, y)


def clipped(x, lo, hi):
    """NumPy's clip."""
    return onp.minimum(onp.maximum(x, lo), hi)


def sign(x):
    """-1, 0 or 1; of complex numbers x / |x|."""
    return onp.sign(x)


ROWS = (
    binary("np.add", onp.add, ALL),
    binary("np.subtract", onp.subtract, NUMBERS, bad=(no_bools("subtract", True, False),)),
    binary("np.multiply", onp.multiply, ALL),
    binary("np.true_divide", onp.true_divide, ALL, result="float", domain=(Domain(), APART)),
    unary("np.negative", onp.negative, NUMBERS, bad=(no_bools("negative", True),)),
    unary("np.positive", onp.positive, NUMBERS),
    unary("np.absolute", onp.absolute, ALL, result=magnitude, domain=(APART,)),
    unary("np.sign", sign, NUMBERS, grad=0, domain=(APART,)),
    unary("np.square", onp.square, NUMBERS),
    unary("np.reciprocal", onp.reciprocal, FLOATS + ("complex64", "complex128"), domain=(APART,)),
    binary("np.maximum", onp.maximum, REAL + ("bool",), domain=(Domain(distinct=True), Domain(-2.9, 3.3))),
    binary("np.minimum", onp.minimum, REAL + ("bool",), domain=(Domain(distinct=True), Domain(-2.9, 3.3))),
    binary("np.fmax", onp.fmax, REAL, domain=(Domain(distinct=True), Domain(-2.9, 3.3))),
    binary("np.fmin", onp.fmin, REAL, domain=(Domain(distinct=True), Domain(-2.9, 3.3))),
    binary(
        "np.floor_divide",
        real_floor_divide,
        REAL,
        domain=(Domain(-9, 9), Domain(-3, 3, avoid=(0.0,), gap=0.5)),
        grad=0,
        wide=False,
        specials=False,
        cases=(shapes((3, 4), (3, 4)), shapes((), (3,)), shapes((5, 67), (67,))),
    ),
    binary(
        "np.remainder",
        onp.remainder,
        REAL,
        domain=(Domain(-9, 9), Domain(-3, 3, avoid=(0.0,), gap=0.5)),
        wide=False,
        specials=False,
        cases=(shapes((3, 4), (3, 4)), shapes((), (3,)), shapes((5, 67), (67,))),
    ),
    binary(
        "np.fmod",
        onp.fmod,
        REAL,
        domain=(Domain(-9, 9), Domain(-3, 3, avoid=(0.0,), gap=0.5)),
        wide=False,
        specials=False,
        cases=(shapes((3, 4), (3, 4)), shapes((), (3,)), shapes((5, 67), (67,))),
    ),
    binary("np.power", power, FLOATS, domain=(POSITIVE, Domain(-2, 2)), loose=4),
    binary(
        "np.float_power",
        onp.float_power,
        ("float64",),
        op=None,
        result="float64",
        domain=(POSITIVE, Domain(-2, 2)),
    ),
    binary("np.hypot", onp.hypot, FLOATS, domain=(APART, APART)),
    binary("np.copysign", onp.copysign, FLOATS, domain=(APART, APART)),
    unary("np.rint", onp.rint, FLOATS, grad=0, domain=(STEPS,)),
    unary("np.floor", onp.floor, REAL, grad=0, domain=(STEPS,)),
    unary("np.ceil", onp.ceil, REAL, grad=0, domain=(STEPS,)),
    unary("np.trunc", onp.trunc, REAL, grad=0, domain=(STEPS,)),
    binary(
        "np.power",
        power,
        INTS,
        domain=(Domain(-3, 3), Domain(0, 4)),
        wide=False,
        grad="integers",
        bad=(
            Bad(
                lambda np, npx: np.power(
                    np.array([2], dtype="int32"), np.array([-1], dtype="int32")
                ).wait_to_read(),
                ValueError,
                r"[Ii]ntegers to negative integer powers are not allowed",
            ),
        ),
    ),
)
