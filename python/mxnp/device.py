"""Devices: the CPU and CUDA GPUs, and which of them new arrays are made on."""

from __future__ import annotations

from . import _core
from ._core import Device
from .error import MXNetError

__all__ = ["Device", "cpu", "cpu_pinned", "current_device", "gpu", "gpu_memory_info", "num_gpus"]


def cpu(device_id: int = 0) -> Device:
    """CPU number `device_id`; numbers above 0 are replicas for testing code of several devices.

    >>> mx.cpu()
    cpu(0)
    """
    return Device("cpu", device_id)


def cpu_pinned(device_id: int = 0) -> Device:
    """Page-locked memory of the CPU, from which copies to a GPU are faster.

    >>> mx.cpu_pinned().device_type
    'cpu_pinned'
    """
    return Device("cpu_pinned", device_id)


def gpu(device_id: int = 0) -> Device:
    """CUDA GPU number `device_id`; that there is one is checked when an array is made on it.

    >>> mx.gpu(1)
    gpu(1)
    """
    return Device("gpu", device_id)


def current_device() -> Device:
    """The device new arrays are made on: cpu(0), or that of the innermost `with device:`.

    >>> with mx.cpu(1):
    ...     mx.current_device()
    cpu(1)
    """
    return _core.current_device()


def num_gpus() -> int:
    """How many CUDA GPUs can be used: none yet, arrays live on the CPU.

    >>> mx.num_gpus()
    0
    """
    return 0


def gpu_memory_info(device_id: int = 0) -> tuple[int, int]:
    """Free and total bytes of a GPU's memory. Raises MXNetError where there is no such GPU.

    >>> if mx.num_gpus():
    ...     free, total = gpu_memory_info(0)
    """
    raise MXNetError(f"gpu_memory_info: there is no gpu({device_id}), only {num_gpus()} usable GPUs")


def _empty_cache(self: Device) -> None:
    """Gives memory that is kept for later arrays back to the system.

    >>> mx.cpu().empty_cache()
    """
    if self.device_type != "gpu":
        _core.release_memory()


Device.empty_cache = _empty_cache  # type: ignore[method-assign]
# MXNet's tables of device types and the numbers its files have for them.
Device.devtype2str = {1: "cpu", 2: "gpu", 3: "cpu_pinned", 5: "cpu_shared"}
Device.devstr2type = {name: number for number, name in Device.devtype2str.items()}
