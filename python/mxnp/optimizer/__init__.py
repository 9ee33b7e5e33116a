"""Optimizers: update rules for weights, their states, and `create` to find one by name."""

from mxnp._missing import refuse as _refuse

from .adam import LAMB, LANS, AdaBelief, Adam, Adamax, AdamW, Nadam
from .adaptive import FTML, AdaDelta, AdaGrad, Ftrl, RMSProp
from .optimizer import Optimizer, create, register
from .sgd import DCASGD, LARS, NAG, SGD, SGLD, Signum, Test
from .updater import Updater, get_updater

__all__ = [
    "DCASGD",
    "FTML",
    "LAMB",
    "LANS",
    "LARS",
    "NAG",
    "SGD",
    "SGLD",
    "AdaBelief",
    "AdaDelta",
    "AdaGrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Ftrl",
    "Nadam",
    "Optimizer",
    "RMSProp",
    "Signum",
    "Test",
    "Updater",
    "create",
    "get_updater",
    "register",
]

__getattr__ = _refuse(__name__)
