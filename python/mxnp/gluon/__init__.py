"""`mxnp.gluon`: networks, layers, losses, metrics, data and training."""

from typing import Any as _Any

from mxnp._missing import refuse as _refuse

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
    "SymbolBlock",
    "Trainer",
    "data",
    "loss",
    "metric",
    "nn",
    "utils",
]


_absent = _refuse(__name__)


def __getattr__(name: str) -> _Any:
    """SymbolBlock, and the parts that have not arrived: they import, and say so when they are used."""
    if name == "SymbolBlock":
        from .symbol_block import SymbolBlock

        return SymbolBlock
    from mxnp.compat.missing import missing_module

    module = missing_module(f"gluon.{name}")
    return _absent(name) if module is None else module
