"""1.x's names of `mxnp.device`: a context is a device."""

from .device import Device, cpu, cpu_pinned, current_device, gpu, gpu_memory_info, num_gpus

__all__ = ["Context", "cpu", "cpu_pinned", "current_context", "gpu", "gpu_memory_info", "num_gpus"]

Context = Device
current_context = current_device
