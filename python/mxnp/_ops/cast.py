"""Conversion between dtypes, copies, and questions about dtypes."""

from __future__ import annotations

from typing import Any

from mxnp import _core
from mxnp._core import ndarray, result_type
from mxnp.error import MXNetTypeError

from ._table import as_array, op

_ASTYPE, _COPY = op("astype"), op("copy")
__all__ = [
    "METHODS",
    "SPECIAL_METHODS",
    "astype",
    "can_cast",
    "cast",
    "copy",
    "isdtype",
    "promote_types",
    "result_type",
]


def _astype_method(
    self: ndarray,
    dtype: Any,
    order: str = "K",
    casting: str = "unsafe",
    subok: bool = True,
    copy: bool = True,
) -> ndarray:
    """The array converted to `dtype`; with `copy=False` the array itself where it already has that dtype.

    Floats become integers toward zero. Raises TypeError where `casting` forbids the conversion.

    >>> np.array([1.7, -1.7]).astype('int32')
    array([ 1, -1], dtype=int32)
    """
    x, to = self, _core.dtype(dtype)
    if casting != "unsafe" and not can_cast(x.dtype, to, casting):
        raise MXNetTypeError(
            f"Cannot cast array data from {x.dtype!r} to {to!r} according to the rule {casting!r}"
        )
    return x if not copy and x.dtype == to else _ASTYPE(x, dtype=to)


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> ndarray:
    """`x` converted to `dtype`; with `copy=False` the array itself where it already has that dtype.

    >>> np.astype(np.array([1.7]), 'int32')
    array([1], dtype=int32)
    """
    return _astype_method(as_array(x), dtype, copy=copy)


def can_cast(from_: Any, to: Any, casting: str = "safe") -> bool:
    """Whether a dtype, or an array's dtype, may become `to` under the rule `casting`, as NumPy says.

    >>> np.can_cast('int32', 'int64'), np.can_cast('float32', 'int32')
    (True, False)
    """
    return _core.can_cast(from_, to, casting)


def promote_types(type1: Any, type2: Any) -> Any:
    """The dtype two dtypes have in common; in the default mode an integer and a float give that float.

    >>> np.promote_types('int32', 'float32')
    dtype('float32')
    """
    return _core.promote_types(type1, type2)


def cast(data: Any, dtype: Any) -> ndarray:
    """`data` converted to `dtype`.

    >>> npx.cast(np.array([1.7]), 'int32')
    array([1], dtype=int32)
    """
    return _ASTYPE(data, dtype=_core.dtype(dtype))


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


METHODS = (copy,)
SPECIAL_METHODS = {"astype": _astype_method}
