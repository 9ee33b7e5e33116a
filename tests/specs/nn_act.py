"""Rows of activations: relu, sigmoid, softmax and the like, against written-out formulas."""

from __future__ import annotations

import numpy as onp
import scipy.special

from specs.reduce import bad_axis
from specs.row import FLOATS, REAL, Bad, Case, Domain, Row, shapes, unary

APART = Domain(avoid=(0.0,), gap=0.25)
LINES = (
    shapes((3, 4)),
    shapes((3, 4), axis=0),
    shapes((2, 3, 4), axis=1),
    shapes((5,), axis=-1),
    shapes((70, 130), axis=-1),
    shapes((0, 3)),
)


def relu(x):
    """max(x, 0)."""
    return onp.maximum(x, 0)


def softplus(x):
    """log(1 + exp(x))."""
    return onp.logaddexp(x, 0)


def gelu(x):
    """x times the normal distribution function of x."""
    return share(x, 0.5 * (1 + scipy.special.erf(x / onp.sqrt(2))))


def silu(x):
    """x sigmoid(x)."""
    return share(x, scipy.special.expit(x))


def share(x, p):
    """x times p: 0 where p is, also of minus infinity."""
    return onp.where(p == 0, 0, x * p)


def softmax(x, axis=-1, temperature=None):
    """exp(x) scaled to sum 1 along an axis."""
    return scipy.special.softmax(x / (temperature or 1), axis=axis) if x.size else x


def log_softmax(x, axis=-1, temperature=None):
    """The logarithm of softmax."""
    return scipy.special.log_softmax(x / (temperature or 1), axis=axis) if x.size else x


MASKED = (shapes((3, 4), (3, 4)), shapes((3, 4), (3, 4), axis=0), shapes((2, 3, 4), (1, 3, 4), axis=1))


def masked_softmax(x, mask, axis=-1):
    """softmax over the places where the mask holds; 0 elsewhere."""
    raised = onp.where(mask, onp.exp(x - x.max()), 0.0)
    total = raised.sum(axis, keepdims=True)
    return raised / onp.where(total == 0, 1.0, total)


def masked_log_softmax(x, mask, axis=-1):
    """The logarithm of masked_softmax: minus infinity where the mask does not hold."""
    return onp.log(masked_softmax(x, mask, axis))


def leaky_relu(x, act_type="leaky", slope=0.25):
    """MXNet's leaky_relu of the types that need no learned slope."""
    if act_type == "leaky":
        return onp.where(x > 0, x, slope * x)
    if act_type == "elu":
        return onp.where(x > 0, x, slope * onp.expm1(x))
    if act_type == "selu":
        return 1.0507009873554804934193349852946 * onp.where(
            x > 0, x, 1.6732632423543772848170429916717 * onp.expm1(x)
        )
    return x * 0.5 * (1 + scipy.special.erf(x / onp.sqrt(2)))


def activation(x, act_type="relu"):
    """MXNet's activation by name."""
    return {
        "relu": relu,
        "sigmoid": scipy.special.expit,
        "tanh": onp.tanh,
        "softrelu": softplus,
        "softsign": lambda x: x / (1 + onp.abs(x)),
    }[act_type](x)


ROWS = (
    unary("npx.relu", relu, REAL, domain=(APART,)),
    unary("npx.sigmoid", scipy.special.expit, FLOATS, loose=2),
    unary("npx.softrelu", softplus, FLOATS, op="softplus", loose=2),
    unary("npx.gelu", gelu, FLOATS, loose=4),
    unary("npx.mish", lambda x: share(x, onp.tanh(softplus(x))), FLOATS, loose=4),
    unary("npx.silu", silu, FLOATS, loose=2),
    Row(
        "npx.softmax",
        softmax,
        FLOATS,
        (*LINES, Case(((3, 4),), {"temperature": 2.0})),
        loose=4,
        bad=bad_axis("npx.softmax"),
    ),
    Row(
        "npx.log_softmax",
        log_softmax,
        FLOATS,
        (*LINES, Case(((3, 4),), {"temperature": 2.0})),
        loose=4,
        bad=bad_axis("npx.log_softmax"),
    ),
    Row(
        "npx.softmin",
        lambda x, axis=-1: softmax(-x, axis),
        FLOATS,
        LINES,
        loose=4,
        bad=bad_axis("npx.softmin"),
    ),
    Row(
        "npx.masked_softmax",
        masked_softmax,
        FLOATS,
        MASKED,
        domain=(Domain(), Domain(dtype="bool")),
        loose=4,
    ),
    Row(
        "npx.masked_log_softmax",
        masked_log_softmax,
        FLOATS,
        MASKED,
        domain=(Domain(), Domain(dtype="bool")),
        grad="minus infinity where the mask does not hold: the gradient is masked_softmax's test's",
        loose=4,
    ),
    Row(
        "npx.leaky_relu",
        leaky_relu,
        FLOATS,
        tuple(
            Case(((3, 4),), attrs)
            for attrs in (
                {},
                {"slope": 0.1},
                {"act_type": "elu", "slope": 1.0},
                {"act_type": "selu"},
                {"act_type": "gelu"},
            )
        ),
        domain=(APART,),
        loose=4,
        bad=(Bad(lambda np, npx: npx.leaky_relu(np.ones((2,)), act_type="leeky"), ValueError, "act_type"),),
    ),
    Row(
        "npx.activation",
        activation,
        FLOATS,
        tuple(
            Case(((3, 4),), {"act_type": name})
            for name in ("relu", "sigmoid", "tanh", "softrelu", "softsign")
        ),
        op=None,
        domain=(APART,),
        loose=4,
        bad=(Bad(lambda np, npx: npx.activation(np.ones((2,)), act_type="reelu"), ValueError, "act_type"),),
    ),
)
