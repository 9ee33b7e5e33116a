"""Running sums and products along an axis, and differences."""

from __future__ import annotations

from typing import Any

from mxnp._core import ndarray
from mxnp.error import MXNetValueError

from ._table import as_array, normalize_axis, op

_CUMSUM, _CUMPROD = op("cumsum"), op("cumprod")


def cumsum(a: Any, axis: int | None = None, dtype: Any = None, out: ndarray | None = None) -> ndarray:
    """Each element plus those before it along `axis` (None: in the flattened array).

    >>> np.cumsum(np.array([1, 2, 3]))
    array([1., 3., 6.])
    """
    return _CUMSUM(a, axis=axis, dtype=dtype, out=out)


def cumprod(a: Any, axis: int | None = None, dtype: Any = None, out: ndarray | None = None) -> ndarray:
    """Each element times those before it along `axis` (None: in the flattened array).

    >>> np.cumprod(np.array([1, 2, 3]))
    array([1., 2., 6.])
    """
    return _CUMPROD(a, axis=axis, dtype=dtype, out=out)


def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> ndarray:
    """The differences of neighbours along `axis`, taken `n` times.

    >>> np.diff(np.array([1, 4, 9]))
    array([3., 5.])
    """
    from .join import concatenate

    if n < 0:
        raise MXNetValueError(f"order must be non-negative but got {n!r}")
    x = as_array(a)
    if x.ndim == 0:
        raise MXNetValueError("diff requires input that is at least one dimensional")
    axis = normalize_axis(axis, x.ndim)
    parts = [prepend, x, append]
    for i in (0, 2):
        if parts[i] is not None:
            part = as_array(parts[i])
            parts[i] = part if part.ndim else part.broadcast_to(x.shape[:axis] + (1,) + x.shape[axis + 1 :])
    x = (
        concatenate([part for part in parts if part is not None], axis)
        if parts[0] is not None or parts[2] is not None
        else x
    )
    lead = (slice(None),) * axis
    for _ in range(n):
        later, earlier = x[(*lead, slice(1, None))], x[(*lead, slice(None, -1))]
        x = later != earlier if x.dtype.kind == "b" else later - earlier
    return x


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> ndarray:
    """The differences of neighbours of the flattened array, with `to_begin` before and `to_end` after them.

    >>> np.ediff1d(np.array([1, 4, 9]))
    array([3., 5.])
    """
    from .join import concatenate

    parts = [diff(as_array(ary).reshape(-1))]
    if to_begin is not None:
        parts.insert(0, as_array(to_begin).reshape(-1).astype(parts[-1].dtype))
    if to_end is not None:
        parts.append(as_array(to_end).reshape(-1).astype(parts[-1].dtype))
    return concatenate(parts) if len(parts) > 1 else parts[0]


METHODS = (cumsum, cumprod)
