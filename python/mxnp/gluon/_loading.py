"""Loading arrays into parameters: names matched, shapes and dtypes checked, and only then anything written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mxnp import autograd, np
from mxnp.device import Device, current_device
from mxnp.error import MXNetValueError

from ._devices import DeviceLike, device_list
from ._parameter import Parameter, _as_dtype


@dataclass(frozen=True)
class LoadOptions:
    """The arguments that `load_parameters`, `load_dict` and `ParameterDict.load` share."""

    devices: list[Device] | None  # None keeps each parameter where it is
    allow_missing: bool  # leave parameters alone that the source lacks
    ignore_extra: bool  # pass over arrays that are no parameter here
    cast_dtype: bool  # convert where the dtypes differ
    dtype_source: str  # which dtype then stands: the parameter's ('current') or the file's ('saved')

    @classmethod
    def create(
        cls,
        device: DeviceLike,
        ctx: DeviceLike,
        allow_missing: bool,
        ignore_extra: bool,
        cast_dtype: bool,
        dtype_source: str,
    ) -> LoadOptions:
        """The options, checked. Raises AssertionError for an unknown `dtype_source`."""
        if dtype_source not in ("current", "saved"):
            raise AssertionError(f"dtype_source must be 'current' or 'saved', got {dtype_source!r}")
        return cls(device_list(device, ctx), allow_missing, ignore_extra, cast_dtype, dtype_source)


def named_arrays(loaded: Any, source: str, prefix: str = "") -> dict[str, Any]:
    """What a parameter file holds as a dict by name: an export's `arg:` and `aux:` taken off, `prefix` put on.

    Raises MXNetValueError when the arrays have no names.
    """
    if not loaded:
        return {}  # 1.x's files without arrays hold no names either
    if not isinstance(loaded, Mapping):
        raise MXNetValueError(
            f"{source} holds arrays without names, so they cannot be matched with parameters"
        )
    return {prefix + name.removeprefix("arg:").removeprefix("aux:"): array for name, array in loaded.items()}


def load_into(
    params: Mapping[str, Parameter], arrays: Mapping[str, Any], source: str, options: LoadOptions
) -> None:
    """Write the arrays (by name) into `params`, all of them or none.

    Raises AssertionError for a parameter that is missing or whose shape, dtype or device does not fit, ValueError
    for an array that is no parameter; each names `source` (the file) and the parameter.
    """
    _check_names(params, arrays, source, options)
    matched = [(params[name], array) for name, array in arrays.items() if name in params]
    for name, array in arrays.items():
        if name in params:
            _check_one(f"{source}, parameter '{name}'", params[name], array, options)
    for parameter, array in matched:
        _write(parameter, array, options)


def _check_names(
    params: Mapping[str, Parameter], arrays: Mapping[str, Any], source: str, options: LoadOptions
) -> None:
    found = {id(parameter) for name, parameter in params.items() if name in arrays}
    missing = [name for name, parameter in params.items() if id(parameter) not in found]
    if missing and not options.allow_missing:
        raise AssertionError(
            f"{source} lacks {_some(missing)}; it contains {_some(arrays)}\n"
            "hint: allow_missing=True leaves parameters that are not there as they are"
        )
    extra = [name for name in arrays if name not in params]
    if extra and not options.ignore_extra:
        raise MXNetValueError(
            f"{source} contains {_some(extra)}, which the block does not have; it has {_some(params)}\n"
            "hint: ignore_extra=True passes over them"
        )


def _check_one(where: str, parameter: Parameter, array: Any, options: LoadOptions) -> None:
    expected, found = parameter.shape, tuple(array.shape)
    if expected is not None and (
        len(expected) != len(found) or any(e not in (-1, f) for e, f in zip(expected, found, strict=True))
    ):
        raise AssertionError(f"{where}: expected shape {expected}, found {found}")
    if array.dtype != parameter.dtype and not options.cast_dtype:
        raise AssertionError(
            f"{where}: expected dtype {parameter.dtype}, found {array.dtype}\n"
            "hint: cast_dtype=True converts what is loaded"
        )
    if options.devices is not None and parameter._arrays and set(options.devices) != set(parameter._arrays):
        raise AssertionError(
            f"{where}: it is initialized on {list(parameter._arrays)} and cannot be loaded on {options.devices}\n"
            "hint: call reset_device first"
        )


def _write(parameter: Parameter, array: Any, options: LoadOptions) -> None:
    if options.dtype_source == "saved":
        parameter.cast(_as_dtype(array.dtype))
    if parameter._arrays:
        parameter.set_data(array)
        return
    parameter.shape = array.shape
    deferred = parameter._deferred
    devices = options.devices or (deferred.devices if deferred is not None else [current_device()])
    with autograd.pause():
        parameter._place(np.array(array, dtype=parameter.dtype, device=devices[0]), devices)


def _some(names: Iterable[str], limit: int = 5) -> str:
    """The names quoted in a list, only so many of them."""
    names = list(names)
    quoted = ", ".join(f"'{name}'" for name in names[:limit])
    return f"{quoted} and {len(names) - limit} more" if len(names) > limit else quoted or "nothing"
