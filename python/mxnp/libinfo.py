"""Which mxnp this is, and which MXNet it stands for."""

from __future__ import annotations

from . import _core
from .error import MXNetNotImplementedError

__all__ = ["MXNET_VERSION", "__version__", "find_include_path", "find_lib_path"]

# mxnp's own version, also where `mxnp.__version__` answers as MXNet's (see mxnp.compat).
__version__: str = getattr(_core, "__version__", "0.1.0")
# The MXNet whose programs run here: what `mxnet.__version__` is under mxnp.compat.
MXNET_VERSION = "2.0.0"


def find_lib_path(prefix: str = "libmxnet") -> list[str]:
    """The path of the library that computes; `prefix` is accepted.

    >>> len(mx.libinfo.find_lib_path())
    1
    """
    return [_core.__file__]


def find_include_path() -> str:
    """The folder of MXNet's C headers. Raises MXNetNotImplementedError: mxnp has no C interface."""
    raise MXNetNotImplementedError("libinfo.find_include_path: mxnp has no C headers")
