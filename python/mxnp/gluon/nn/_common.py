"""What layers share: reading a size off an input, and spreading a number over the spatial axes."""

from __future__ import annotations

import operator
from typing import Any

from mxnp import np
from mxnp.device import Device
from mxnp.error import MXNetAxisError, MXNetTypeError, MXNetValueError


def device_of(x: Any, layer: Any) -> Device:
    """The device of the layer's input. Raises MXNetTypeError, naming the layer, when it is not an array."""
    if not isinstance(x, np.ndarray):
        raise MXNetTypeError(
            f"{type(layer).__name__}: expected an mxnp array, got {type(x).__module__}.{type(x).__qualname__}\n"
            "hint: np.array(x) makes one"
        )
    return x.device


def axis_size(x: Any, axis: int, layer: Any) -> int:
    """The size of `x` along `axis`. Raises MXNetAxisError, naming the layer, when `x` has no such axis."""
    device_of(x, layer)
    if not -x.ndim <= axis < x.ndim:
        raise MXNetAxisError(
            f"{type(layer).__name__}: axis {axis} is out of range for an input of shape {x.shape}"
        )
    return x.shape[axis]


def whole(value: Any, layer: Any, argument: str, least: int = 1) -> int:
    """`value` as an int of at least `least`; else MXNetTypeError or MXNetValueError, naming layer and argument."""
    try:
        number = operator.index(value)
    except TypeError:
        raise MXNetTypeError(
            f"{type(layer).__name__}: {argument} must be an integer, got {value!r}"
        ) from None
    if number < least:
        raise MXNetValueError(f"{type(layer).__name__}: {argument} must be at least {least}, got {number}")
    return number


def spread(
    value: int | tuple[int, ...] | list[int], ndim: int, layer: Any, argument: str, least: int = 0
) -> tuple[int, ...]:
    """A number as `ndim` equal ones; a tuple must have `ndim`. Otherwise, and for numbers below `least`, raises
    MXNetValueError, and MXNetTypeError for what is no integer, naming layer and argument.
    """
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,) * ndim
    if len(values) != ndim:
        raise MXNetValueError(
            f"{type(layer).__name__}: {argument} must be a number or {ndim} numbers, got {value!r}"
        )
    return tuple(whole(each, layer, argument, least) for each in values)


def check_layout(layout: str | None, layouts: tuple[str, ...], layer: Any) -> str:
    """`layout`, or the first of the layer's `layouts` for None. Raises MXNetValueError for any other."""
    if layout is None:
        return layouts[0]
    if layout not in layouts:
        raise MXNetValueError(f"{type(layer).__name__}: layout must be one of {layouts}, got {layout!r}")
    return layout
