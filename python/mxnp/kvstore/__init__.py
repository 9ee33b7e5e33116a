"""Key-value stores: how replicas of a parameter on several devices exchange gradients and weights."""

from mxnp._missing import refuse as _refuse

from .base import KVStoreBase, create
from .kvstore import KVStore

__all__ = ["KVStore", "KVStoreBase", "create"]

__getattr__ = _refuse(__name__)
