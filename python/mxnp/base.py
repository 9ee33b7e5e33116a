"""MXNet's module of basics: the base of its errors, and the types it counts as numbers and texts."""

import numbers

import numpy as _numpy

from .error import MXNetError

__all__ = ["MXNetError", "integer_types", "numeric_types", "string_types"]

numeric_types = (float, int, _numpy.generic, numbers.Number)
integer_types = (int, _numpy.int32, _numpy.int64)
string_types = (str,)
