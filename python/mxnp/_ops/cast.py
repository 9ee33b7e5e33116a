"""Conversion between dtypes, copies, and questions about dtypes."""

from __future__ import annotations

from typing import Any

from mxnp import _core
from mxnp._core import can_cast, ndarray, promote_types, result_type
from mxnp.error import MXNetTypeError

from ._table import as_array, op

_ASTYPE, _COPY = op("astype"), op("copy")
__all__ = ["METHODS", "astype", "can_cast", "copy", "isdtype", "promote_types", "result_type"]


def astype(
    a: Any, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
) -> ndarray:
    """`a` converted to `dtype`; with `copy=False` the array itself where it already has that dtype.

    Floats become integers toward zero. Raises TypeError where `casting` forbids the conversion.

    >>> np.array([1.7, -1.7]).astype('int32')
    array([ 1, -1], dtype=int32)
    """
    x = as_array(a)
    to = _core.dtype(dtype)
    if casting != "unsafe" and not can_cast(x.dtype, to, casting):
        raise MXNetTypeError(
            f"Cannot cast array data from {x.dtype!r} to {to!r} according to the rule {casting!r}"
        )
    return x if not copy and x.dtype == to else _ASTYPE(x, dtype=to)


def copy(a: Any, order: str = "K", subok: bool = False) -> ndarray:
    """A new array with the elements of `a`, C-contiguous.

    >>> np.copy(np.array([1, 2]))
    array([1., 2.])
    """
    return _COPY(a)


_KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether `dtype` is of a kind of the array API standard ('integral', 'real floating', ...), or of one of several.

    >>> np.isdtype(np.float32, 'real floating')
    True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    found = _core.dtype(dtype)
    if isinstance(kind, str) and kind in _KINDS:
        return ("f" if found.name == "bfloat16" else found.kind) in _KINDS[kind]
    return bool(found == _core.dtype(kind))


METHODS = (astype, copy)
