"""`mxnp.npx.random`: draws with MXNet's own signatures."""

from .._missing import refuse as _refuse
from .._ops.choice import categorical
from .._ops.random import bernoulli, normal_n, seed, uniform_n

__all__ = ["bernoulli", "categorical", "normal_n", "seed", "uniform_n"]

__getattr__ = _refuse(__name__)
