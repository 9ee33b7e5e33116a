"""Device arguments as Gluon's users give them: None, one device, or a list; as `device=` (2) or `ctx=` (1.x)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mxnp.device import Device
from mxnp.error import MXNetTypeError, MXNetValueError

DeviceLike = Device | str | Iterable[Device | str] | None


def device_list(device: DeviceLike, ctx: DeviceLike = None) -> list[Device] | None:
    """The devices named by `device` or its older spelling `ctx`, in order and without repeats; None for neither.

    Raises MXNetTypeError for what is not a device, MXNetValueError for both spellings at once or an empty list.
    """
    if device is None:
        device = ctx
    elif ctx is not None:
        raise MXNetValueError("device and ctx are two names of one argument: give one of them")
    if device is None:
        return None
    entries = [device] if isinstance(device, (Device, str)) or not isinstance(device, Iterable) else device
    devices = [as_device(entry) for entry in entries]
    if not devices:
        raise MXNetValueError("device: expected at least one device, got an empty list")
    return list(dict.fromkeys(devices))


def as_device(entry: Any) -> Device:
    """The device meant by a Device or its name. Raises MXNetTypeError for anything else."""
    if isinstance(entry, (Device, str)):
        return Device(entry)
    raise MXNetTypeError(
        f"device: expected a Device or a list of them, got {entry!r}\nhint: write mxnp.cpu() or mxnp.gpu(0)"
    )
