"""`gluon.block`: the base classes of networks and layers."""

from mxnp._missing import refuse as _refuse
from mxnp.error import DeferredInitializationError

from ._block import Block
from ._hybrid_block import HybridBlock
from ._parameter import Parameter
from ._parameter_dict import ParameterDict
from .utils import HookHandle

__all__ = ["Block", "DeferredInitializationError", "HookHandle", "HybridBlock", "Parameter", "ParameterDict"]

__getattr__ = _refuse(__name__)
