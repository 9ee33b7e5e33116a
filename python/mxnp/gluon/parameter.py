"""`gluon.parameter`: parameters, constants, dictionaries of them and their errors."""

from mxnp import np as _np
from mxnp.error import DeferredInitializationError

from ._parameter import Constant, Parameter, UninitializedParameterError
from ._parameter_dict import ParameterDict

__all__ = [
    "Constant",
    "DeferredInitializationError",
    "Parameter",
    "ParameterDict",
    "UninitializedParameterError",
    "tensor_types",
]

tensor_types = (_np.ndarray,)
