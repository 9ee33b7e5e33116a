"""Rows of arithmetic: add, multiply, maximum, floor_divide, clip, sign, where."""

from __future__ import annotations

import numpy as onp

from specs.row import (
    ALL,
    BINARY,
    COMPLEX,
    FLOATS,
    INTS,
    NUMBERS,
    REAL,
    UNARY,
    Bad,
    Case,
    Domain,
    Row,
    binary,
    magnitude,
    shapes,
    unary,
)

APART = Domain(avoid=(0.0,), gap=0.25)  # away from a pole, a kink or a division by zero
POSITIVE = Domain(0.25, 3.0)
QUOTIENT = (Domain(-9, 9), Domain(-3, 3, avoid=(0.0,), gap=0.5))
SMALL = (shapes((3, 4), (3, 4)), shapes((), (3,)), shapes((5, 67), (67,)))


def no_bools(name: str, *args: bool) -> Bad:
    """A function that refuses bools."""

    def call(np, npx):
        return getattr(np, name)(*(np.array([a]) for a in args))

    return Bad(call, TypeError, rf"{name}")


def small(dtype: str) -> str:
    """What arithmetic gives that bool has no part in."""
    return "int8" if dtype == "bool" else dtype


def scale(g, d):
    """`g * d`, and 0 where g is 0."""
    return onp.where(g == 0, g, g * d)


def unscale(g, d):
    """`g / d`, and 0 where g is 0."""
    return onp.where(g == 0, g, g / d)


ROWS = (
    binary("np.add", onp.add, ALL),
    binary("np.subtract", onp.subtract, NUMBERS, bad=(no_bools("subtract", True, False),)),
    binary("np.multiply", onp.multiply, ALL),
    binary("np.true_divide", onp.true_divide, ALL, result="float", domain=(Domain(), APART)),
    binary("core._scale", scale, ALL, op="_scale", specials=False, scalar=False),
    binary(
        "core._unscale",
        unscale,
        FLOATS + COMPLEX,
        op="_unscale",
        domain=(Domain(), APART),
        specials=False,
        scalar=False,
    ),
    unary("np.negative", onp.negative, NUMBERS, bad=(no_bools("negative", True),)),
    unary("np.positive", onp.positive, NUMBERS),
    unary("np.absolute", onp.absolute, ALL, result=magnitude, domain=(APART,)),
    unary(
        "np.sign",
        onp.sign,
        REAL + COMPLEX,
        grad=0,
        domain=(APART,),
        bad=(no_bools("sign", True),),
    ),
    unary("np.fabs", onp.fabs, REAL, result="float", domain=(APART,)),
    Row("np.copy", onp.copy, ALL, UNARY),
    unary("np.conjugate", onp.conjugate, ALL, result=small),
    unary("np.square", onp.square, ALL, result=small),
    unary("np.reciprocal", onp.reciprocal, INTS + ("bool",), result=small, wide=False, grad="integers"),
    unary("np.reciprocal", onp.reciprocal, FLOATS + ("complex64", "complex128"), domain=(APART,)),
    binary("np.maximum", onp.maximum, REAL + ("bool",), domain=(Domain(distinct=True), Domain(-2.9, 3.3))),
    binary("np.minimum", onp.minimum, REAL + ("bool",), domain=(Domain(distinct=True), Domain(-2.9, 3.3))),
    binary("np.fmax", onp.fmax, REAL, domain=(Domain(distinct=True), Domain(-2.9, 3.3))),
    binary("np.fmin", onp.fmin, REAL, domain=(Domain(distinct=True), Domain(-2.9, 3.3))),
    binary(
        "np.floor_divide",
        onp.floor_divide,
        REAL,
        domain=QUOTIENT,
        grad=0,
        wide=False,
        specials=False,
        cases=SMALL,
    ),
    binary(
        "np.remainder",
        onp.remainder,
        REAL,
        op="mod",
        domain=QUOTIENT,
        wide=False,
        specials=False,
        cases=SMALL,
    ),
    binary(
        "np.fmod",
        onp.fmod,
        REAL,
        domain=QUOTIENT,
        wide=False,
        specials=False,
        cases=SMALL,
    ),
    binary("np.power", onp.power, FLOATS, domain=(POSITIVE, Domain(-2, 2)), loose=4),
    Row(
        "np.float_power",
        onp.float_power,
        ("float64",),
        BINARY,
        op=None,
        result="float64",
        domain=(POSITIVE, Domain(-2, 2)),
    ),
    Row(
        "np.clip",
        onp.clip,
        REAL,
        (
            Case(((3, 4),), {"a_min": 1, "a_max": 2}, core=None),
            Case(((3, 4),), {"a_min": None, "a_max": 1}, core=None),
            shapes((3, 4), (4,), (3, 1)),
            shapes((0, 4), (4,), ()),
        ),
        domain=(Domain(avoid=(1.0, 2.0)), Domain(0, 0.5), Domain(1.5, 2)),
        bad=(
            Bad(
                lambda np, npx: np.clip(np.ones((2,)), np.ones((3,)), 1), ValueError, "could not be broadcast"
            ),
        ),
    ),
    binary("np.hypot", onp.hypot, FLOATS, domain=(APART, APART)),
    binary("np.copysign", onp.copysign, FLOATS, domain=(APART, APART)),
    binary(
        "np.power",
        onp.power,
        INTS,
        domain=(Domain(-3, 3), Domain(0, 4)),
        wide=False,
        grad="integers",
        bad=(
            Bad(
                lambda np, npx: np.power(np.array([2], dtype="int32"), -1),
                ValueError,
                r"[Ii]ntegers to negative integer powers are not allowed",
            ),
        ),
    ),
    Row(
        "core.integer_power",
        onp.power,
        INTS,
        SMALL,
        op="integer_power",
        domain=(Domain(-3, 3), Domain(0, 4)),
        wide=False,
        grad="integers",
    ),
    Row(
        "np.where",
        onp.where,
        ALL,
        (
            shapes((3, 4), (3, 4), (3, 4)),
            shapes((4,), (3, 1), ()),
            shapes((), (3,), (3,)),
            shapes((0, 2), (0, 2), (1, 2)),
            shapes((5, 67), (5, 67), (67,)),
        ),
        domain=(Domain(dtype="bool"), Domain()),
        bad=(
            Bad(
                lambda np, npx: np.where(np.ones((2,)), np.ones((3,)), np.ones((3,))),
                ValueError,
                "could not be broadcast together",
            ),
        ),
    ),
)
