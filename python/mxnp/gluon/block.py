"""`gluon.block`: the base classes of networks and layers."""

from typing import Any as _Any

from mxnp._missing import refuse as _refuse
from mxnp.error import DeferredInitializationError

from ._block import Block
from ._hybrid_block import HybridBlock
from ._parameter import Parameter
from ._parameter_dict import ParameterDict
from .utils import HookHandle

__all__ = [
    "Block",
    "DeferredInitializationError",
    "HookHandle",
    "HybridBlock",
    "Parameter",
    "ParameterDict",
]

_absent = _refuse(__name__)


def __getattr__(name: str) -> _Any:
    """SymbolBlock, which is imported when it is first used."""
    if name == "SymbolBlock":
        from mxnp.gluon.symbol_block import SymbolBlock

        return SymbolBlock
    return _absent(name)
