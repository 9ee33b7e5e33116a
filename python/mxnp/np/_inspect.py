"""Questions about arrays and numbers, answered without computing on their elements."""

from __future__ import annotations

from typing import Any

import numpy as onp

from .._core import ndarray
from .._ops._table import as_array


def shares_memory(a: Any, b: Any, max_work: Any = None) -> bool:
    """Whether an element of `a` and one of `b` may be the same memory; exact for views of one array.

    >>> x = np.arange(4)
    >>> np.shares_memory(x[:2], x[1:]), np.shares_memory(x[:2], x[2:])
    (True, False)
    """
    if isinstance(a, ndarray) and isinstance(b, ndarray):
        if not a.same_memory(b):
            return False
        return bool(onp.shares_memory(a.__array__(), b.__array__(), max_work))
    return bool(onp.shares_memory(onp.asarray(a), onp.asarray(b), max_work))


def may_share_memory(a: Any, b: Any, max_work: Any = None) -> bool:
    """Whether `a` and `b` may share memory.

    >>> x = np.arange(4)
    >>> np.may_share_memory(x, x.T)
    True
    """
    return shares_memory(a, b, max_work)


def isscalar(element: Any) -> bool:
    """Whether `element` is a number or a string, and not an array.

    >>> np.isscalar(3.0), np.isscalar(np.array(3.0))
    (True, False)
    """
    return not isinstance(element, ndarray) and bool(onp.isscalar(element))


def iscomplexobj(x: Any) -> bool:
    """Whether the dtype of `x` is complex.

    >>> np.iscomplexobj(np.ones(1))
    False
    """
    return as_array(x).dtype.kind == "c"


def isrealobj(x: Any) -> bool:
    """Whether the dtype of `x` is not complex.

    >>> np.isrealobj(np.ones(1))
    True
    """
    return not iscomplexobj(x)


def min_scalar_type(a: Any) -> onp.dtype:
    """The smallest dtype that holds a number; the dtype of an array.

    >>> np.min_scalar_type(10)
    dtype('uint8')
    """
    return (
        a.dtype
        if isinstance(a, ndarray) and a.ndim
        else onp.min_scalar_type(a.item() if isinstance(a, ndarray) else a)
    )
