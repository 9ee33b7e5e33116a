"""mxnp: NumPy's arrays and MXNet's Gluon on a Rust core.

`from mxnp import np, npx, gluon, autograd`. What is heavy is imported when it is first used.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

from . import _core, autograd, base, context, device, engine, error, libinfo, np, npx, random, runtime, util
from . import _printing as _printing
from ._core import Device, num_threads, set_num_threads
from ._missing import refuse as _refuse
from .attribute import AttrScope
from .context import Context, cpu, cpu_pinned, current_context, gpu, gpu_memory_info, num_gpus
from .device import current_device
from .error import MXNetError
from .np import ndarray
from .npx import waitall
from .util import (
    is_np_array,
    is_np_default_dtype,
    is_np_shape,
    np_array,
    np_shape,
    set_np_shape,
    use_np,
    use_np_array,
    use_np_shape,
)

# Assigned to by `compat.install_as_mxnet`; `libinfo.__version__` stays mxnp's own.
__version__: str = libinfo.__version__

# Another name: the module it stands for.
_MODULES = {
    "attribute": "attribute",
    "compat": "compat",
    "executor": "executor",
    "gluon": "gluon",
    "init": "initializer",
    "initializer": "initializer",
    "kv": "kvstore",
    "kvstore": "kvstore",
    "lr_scheduler": "lr_scheduler",
    "metric": "gluon.metric",
    "name": "name",
    "optimizer": "optimizer",
    "profiler": "profiler",
    "sym": "symbol",
    "symbol": "symbol",
    "test_utils": "test_utils",
}
_absent = _refuse(__name__)
rnd = random
numpy = np
numpy_extension = npx


def __getattr__(name: str) -> Any:
    """What is imported at its first use."""
    path = _MODULES.get(name)
    if path is not None:
        value: Any = importlib.import_module(f".{path}", __name__)
    else:
        # Parts of MXNet that say on use that they have not arrived.
        from .compat.missing import missing_module

        value = missing_module(name)
        if value is None:
            value = _absent(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES} - {"Any", "annotations", "importlib", "os"})


__all__ = [name for name in __dir__() if not name.startswith("_")]

if os.environ.get("MXNET_PROFILER_AUTOSTART"):
    importlib.import_module(".profiler", __name__)._start_by_environment()
