"""`mxnp.gluon`: networks, layers, losses, metrics, data and training."""

from . import data, loss, metric, nn, utils
from .block import Block, HybridBlock
from .parameter import Constant, DeferredInitializationError, Parameter, ParameterDict
from .trainer import Trainer

__all__ = [
    "Block",
    "Constant",
    "DeferredInitializationError",
    "HybridBlock",
    "Parameter",
    "ParameterDict",
    "Trainer",
    "data",
    "loss",
    "metric",
    "nn",
    "utils",
]
