"""Sequences of different lengths in one array, with time along axis 0 (or 1) and the batch along the other."""

from __future__ import annotations

from typing import Any

import numpy as onp

from mxnp import _core
from mxnp._core import ndarray
from mxnp.error import MXNetTypeError, MXNetValueError

from ._table import as_array, op

_WHERE, _TAKE_ALONG = op("where"), op("take_along_axis")
_FLIP = op("flip")


def _lengths(name: str, x: ndarray, lengths: Any, axis: int) -> ndarray:
    """The lengths, one for each sample, with axes of size 1 for the others."""
    if axis not in (0, 1) or x.ndim < 2:
        raise MXNetValueError(
            f"{name}: expected data of two or more axes and axis 0 or 1, got {x.shape} and {axis}"
        )
    if lengths is None:
        raise MXNetTypeError(f"{name}: use_sequence_length=True needs sequence_length")
    found = as_array(lengths)
    if found.shape != (x.shape[1 - axis],):
        raise MXNetValueError(
            f"{name}: sequence_length must have shape ({x.shape[1 - axis]},), got {found.shape}"
        )
    return found.reshape(tuple(-1 if i == 1 - axis else 1 for i in range(x.ndim)))


def _steps(x: ndarray, axis: int, dtype: Any) -> ndarray:
    steps = _core.array(onp.arange(x.shape[axis]), dtype, x.device)
    return steps.reshape(tuple(-1 if i == axis else 1 for i in range(x.ndim)))


def sequence_mask(
    data: Any,
    sequence_length: Any = None,
    use_sequence_length: bool = False,
    value: float = 0.0,
    axis: int = 0,
) -> ndarray:
    """`data` with `value` at the steps along `axis` past each sample's length.

    >>> npx.sequence_mask(np.ones((2, 2)), np.array([1, 2]), use_sequence_length=True)
    array([[1., 1.],
           [0., 1.]])
    """
    x = as_array(data)
    if not use_sequence_length:
        return x.copy()
    lengths = _lengths("sequence_mask", x, sequence_length, axis)
    return _WHERE(_steps(x, axis, lengths.dtype) < lengths, x, value)


def sequence_last(
    data: Any, sequence_length: Any = None, use_sequence_length: bool = False, axis: int = 0
) -> ndarray:
    """The last step of each sample: of all steps along `axis`, or of its first `sequence_length` (at least 1).

    >>> npx.sequence_last(np.array([[1, 2], [3, 4]]), np.array([1, 2]), use_sequence_length=True)
    array([1., 4.])
    """
    x = as_array(data)
    if not use_sequence_length:
        return x[-1] if axis == 0 else x[:, -1]
    lengths = _lengths("sequence_last", x, sequence_length, axis).astype("int64")
    return _TAKE_ALONG(x, lengths - 1, axis=axis, mode="strict", caller="sequence_last").squeeze(axis)


def sequence_reverse(
    data: Any, sequence_length: Any = None, use_sequence_length: bool = False, axis: int = 0
) -> ndarray:
    """The steps of each sample in reverse order: all of them, or its first `sequence_length`, the rest as they are.

    >>> npx.sequence_reverse(np.array([[1, 2], [3, 4]]), np.array([1, 2]), use_sequence_length=True)
    array([[1., 4.],
           [3., 2.]])
    """
    x = as_array(data)
    if not use_sequence_length:
        return _FLIP(x, axis=axis).copy()
    lengths = _lengths("sequence_reverse", x, sequence_length, axis).astype("int64")
    steps = _steps(x, axis, "int64")
    place = _WHERE(steps < lengths, lengths - 1 - steps, steps)
    return _TAKE_ALONG(x, place, axis=axis, caller="sequence_reverse")
