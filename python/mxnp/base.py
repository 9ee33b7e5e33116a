"""MXNet's module of basics: the base of its errors, and the types it counts as numbers and texts."""

import numbers

import numpy as _numpy

from .error import MXNetError

__all__ = ["MXNetError", "integer_types", "mx_real_t", "numeric_types", "py_str", "string_types"]

numeric_types = (float, int, _numpy.generic, numbers.Number)
integer_types = (int, _numpy.int32, _numpy.int64)
string_types = (str,)
mx_real_t = _numpy.float32


def py_str(x: bytes) -> str:
    """The text of UTF-8 bytes."""
    return x.decode("utf-8")
