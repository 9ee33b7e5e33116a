"""`mxnp.np.random`: draws of mxnp's own generator, governed by `seed`."""

from .._missing import refuse as _refuse
from .._ops.choice import categorical, choice, multinomial, permutation, shuffle
from .._ops.distributions import gumbel, laplace, logistic, lognormal, pareto, power, rayleigh, weibull
from .._ops.random import (
    bernoulli,
    exponential,
    normal,
    rand,
    randint,
    randn,
    random,
    random_sample,
    seed,
    standard_normal,
    uniform,
)

__all__ = [
    "bernoulli",
    "categorical",
    "choice",
    "exponential",
    "gumbel",
    "laplace",
    "logistic",
    "lognormal",
    "multinomial",
    "normal",
    "pareto",
    "permutation",
    "power",
    "rand",
    "randint",
    "randn",
    "random",
    "random_sample",
    "rayleigh",
    "seed",
    "shuffle",
    "standard_normal",
    "uniform",
    "weibull",
]

__getattr__ = _refuse(__name__)
