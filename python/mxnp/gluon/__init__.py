"""`mxnp.gluon`: networks, layers, losses, metrics, data and training."""

from typing import Any

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


def __getattr__(name: str) -> Any:
    """The parts of MXNet's gluon that have not arrived: they import, and say so when they are used."""
    from mxnp.compat.missing import missing_module

    module = missing_module(f"gluon.{name}")
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return module
