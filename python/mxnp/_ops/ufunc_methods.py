"""NumPy's methods of universal functions: `np.add.reduce`, `np.multiply.accumulate`, `np.maximum.outer`.

Written with the reductions and scans that exist; a function that has none says so. Attached to the native class.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from mxnp._core import Ufunc, ndarray
from mxnp.error import MXNetNotImplementedError, MXNetTypeError, MXNetValueError

from . import reduce as _reduce
from . import scan as _scan
from ._table import as_array, deliver, normalize_axis, op

_CONCATENATE = op("concatenate")


class _Methods(NamedTuple):
    """What the methods of one function are written with; a scan of None doubles the function itself."""

    reduction: Callable[..., ndarray]
    scan: Callable[..., ndarray] | None = None
    takes_dtype: bool = False
    takes_initial: bool = True


_METHODS = {
    "add": _Methods(_reduce.sum, _scan.cumsum, takes_dtype=True),
    "multiply": _Methods(_reduce.prod, _scan.cumprod, takes_dtype=True),
    "maximum": _Methods(_reduce.max),
    "minimum": _Methods(_reduce.min),
    "logical_and": _Methods(_reduce.all, takes_initial=False),
    "logical_or": _Methods(_reduce.any, takes_initial=False),
}


def _need_two(function: Ufunc, method: str) -> None:
    if function.nin != 2 or function.nout != 1:
        raise MXNetValueError(f"{function.__name__}.{method}: only supported for binary functions")


def _methods(function: Ufunc, method: str) -> _Methods:
    _need_two(function, method)
    found = _METHODS.get(function.op.name)
    if found is None:
        raise MXNetNotImplementedError(
            f"{function.__name__}.{method} has not arrived in mxnp: there are {method} of {', '.join(_METHODS)}"
        )
    return found


def reduce(
    self: Ufunc,
    array: Any,
    axis: Any = 0,
    dtype: Any = None,
    out: ndarray | None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> ndarray:
    """The function applied over `axis` (by default the first; None: all axes), as np.sum does for np.add.

    There are those of add, multiply, maximum, minimum, logical_and and logical_or.

    >>> np.add.reduce(np.array([[1, 2], [3, 4]]))
    array([4., 6.])
    """
    own = _methods(self, "reduce")
    options: dict[str, Any] = {"axis": axis, "keepdims": keepdims, "where": where}
    if own.takes_dtype:
        options["dtype"] = dtype
    elif dtype is not None and own.takes_initial:
        array = as_array(array).astype(dtype)
    if own.takes_initial:
        return own.reduction(array, out=out, initial=initial, **options)
    result = own.reduction(array, **options)
    return deliver(result if initial is None else self(result, initial), out)


def accumulate(
    self: Ufunc, array: Any, axis: int = 0, dtype: Any = None, out: ndarray | None = None
) -> ndarray:
    """The results of applying the function to ever more elements along `axis`, as np.cumsum does for np.add.

    There are those of add, multiply, maximum, minimum, logical_and and logical_or.

    >>> np.maximum.accumulate(np.array([1, 3, 2]))
    array([1., 3., 3.])
    """
    own = _methods(self, "accumulate")
    x = as_array(array)
    if x.ndim == 0:
        raise MXNetTypeError("cannot accumulate on a scalar")
    place = normalize_axis(axis, x.ndim)
    if own.scan is not None:
        return own.scan(x, axis=place, dtype=dtype, out=out)
    x = x.astype("bool" if not own.takes_initial else x.dtype if dtype is None else dtype)
    return deliver(_doubled(self, x, place), out)


def _doubled(function: Ufunc, x: ndarray, axis: int) -> ndarray:
    """The running results of an associative function in log2(n) steps (Hillis and Steele 1986)."""
    before: tuple[slice, ...] = (slice(None),) * axis
    step = 1
    while step < x.shape[axis]:
        head, tail = x[(*before, slice(None, step))], x[(*before, slice(step, None))]
        x = _CONCATENATE(head, function(tail, x[(*before, slice(None, -step))]), axis=axis)
        step *= 2
    return x


def outer(self: Ufunc, A: Any, B: Any, **kwargs: Any) -> ndarray:
    """The function of every element of `A` with every element of `B`; the shape is A's, then B's.

    >>> np.multiply.outer(np.array([1, 2]), np.array([3, 4]))
    array([[3., 4.],
           [6., 8.]])
    """
    _need_two(self, "outer")
    a, b = as_array(A), as_array(B)
    return self(a.reshape(a.shape + (1,) * b.ndim), b, **kwargs)


def at(self: Ufunc, a: Any, indices: Any, b: Any = None) -> None:
    """NumPy's unbuffered writes in place. Have not arrived: raises MXNetNotImplementedError."""
    raise MXNetNotImplementedError(
        f"{self.__name__}.at has not arrived in mxnp\n"
        "hint: x[i] = f(x[i], b) where no index repeats; np.bincount(i, weights) sums over ones that do"
    )


def reduceat(
    self: Ufunc, array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: ndarray | None = None
) -> ndarray:
    """NumPy's reductions of slices. Have not arrived: raises MXNetNotImplementedError."""
    raise MXNetNotImplementedError(
        f"{self.__name__}.reduceat has not arrived in mxnp\nhint: np.split(array, indices) gives the slices"
    )


def attach() -> None:
    """Makes them methods of the native class."""
    for method in (reduce, accumulate, outer, at, reduceat):
        method.__qualname__ = f"Ufunc.{method.__name__}"
        setattr(Ufunc, method.__name__, method)
