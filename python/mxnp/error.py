"""The exceptions mxnp raises: each is MXNetError and, where one fits, the class NumPy raises.

`except ValueError` written for NumPy and `except MXNetError` written for MXNet therefore both work. The
extension looks the classes up here by name. This module must not import anything else of mxnp.
"""

from __future__ import annotations

from numpy.exceptions import AxisError as _NumpyAxisError
from numpy.linalg import LinAlgError as _NumpyLinAlgError

__all__ = [
    "DeferredInitializationError",
    "MXNetAxisError",
    "MXNetError",
    "MXNetIndexError",
    "MXNetLinAlgError",
    "MXNetMemoryError",
    "MXNetNotImplementedError",
    "MXNetOverflowError",
    "MXNetTypeError",
    "MXNetValueError",
    "MXNetZeroDivisionError",
]


class MXNetError(RuntimeError):
    """The base of every error mxnp raises on its own account."""


class MXNetValueError(MXNetError, ValueError):
    """A value, shape or argument that the operation cannot take."""


class MXNetTypeError(MXNetError, TypeError):
    """A dtype or Python type that the operation cannot take."""


class MXNetIndexError(MXNetError, IndexError):
    """An index or label outside its range."""


class MXNetAxisError(MXNetError, _NumpyAxisError):
    """An axis outside the array's dimensions; also NumPy's AxisError (a ValueError and an IndexError).

    Made from one message, or as NumPy's from `(axis, ndim, msg_prefix)`; with one message `axis` and `ndim`
    are None.
    """

    def __init__(self, axis: int | str, ndim: int | None = None, msg_prefix: str | None = None) -> None:
        # NumPy's stub lists the two ways as overloads, which cannot be told apart here.
        _NumpyAxisError.__init__(self, axis, ndim, msg_prefix)  # type: ignore[arg-type]
        self.args = (axis,) if ndim is None else (axis, ndim, msg_prefix)

    def __str__(self) -> str:
        return _NumpyAxisError.__str__(self)


class MXNetOverflowError(MXNetError, OverflowError):
    """A number that does not fit the dtype it was meant for."""


class MXNetZeroDivisionError(MXNetError, ZeroDivisionError):
    """An integer division by zero that has no defined result."""


class MXNetMemoryError(MXNetError, MemoryError):
    """More memory than there is, or than the limit allows."""


class MXNetNotImplementedError(MXNetError, NotImplementedError):
    """A documented thing that this version, device or dtype does not have."""


class MXNetLinAlgError(MXNetError, _NumpyLinAlgError):
    """A matrix for which the decomposition or solution does not exist."""


class DeferredInitializationError(MXNetError):
    """A parameter's data was asked for while its shape, and so its data, is still unknown."""
