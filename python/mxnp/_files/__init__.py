"""Array files: NumPy's npy/npz, MXNet 2's parameters, MXNet 1.x's binary list, safetensors. Gives NumPy
arrays.
"""

from .arrays import load_arrays, save_arrays, save_legacy, save_safetensors
from .atomic import atomic_write
from .source import FormatError

__all__ = ["FormatError", "atomic_write", "load_arrays", "save_arrays", "save_legacy", "save_safetensors"]
