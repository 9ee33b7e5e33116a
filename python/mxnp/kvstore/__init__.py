"""Key-value stores: how replicas of a parameter on several devices exchange gradients and weights."""

from .base import KVStoreBase, create
from .kvstore import KVStore

__all__ = ["KVStore", "KVStoreBase", "create"]
