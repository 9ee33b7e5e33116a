"""mxnp: NumPy's arrays and MXNet's Gluon on a Rust core.

`from mxnp import np, npx, gluon, autograd`. What is heavy is imported when it is first used.
"""

from __future__ import annotations

import importlib
from typing import Any

from . import _core
from . import _printing as _printing
from . import autograd, context, device, engine, error, np, npx, random, runtime, util
from ._core import Device, current_device, num_threads, set_num_threads
from .context import Context, cpu, cpu_pinned, current_context, gpu, num_gpus
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

__version__: str = getattr(_core, "__version__", "0.1.0")

# Another name: the module it stands for.
_MODULES = {
    "compat": "compat",
    "gluon": "gluon",
    "init": "initializer",
    "initializer": "initializer",
    "kv": "kvstore",
    "kvstore": "kvstore",
    "lr_scheduler": "lr_scheduler",
    "metric": "gluon.metric",
    "optimizer": "optimizer",
    "test_utils": "test_utils",
}
rnd = random
numpy = np
numpy_extension = npx
# Parts of MXNet that say on use that they have not arrived.
_MISSING = frozenset(
    "AttrScope amp attribute callback contrib dlpack executor image img io library log model mod module mon monitor name nd "
    "onnx operator profiler recordio registry rtc sym symbol visualization viz rnn".split()
)


def __getattr__(name: str) -> Any:
    """What is imported at its first use."""
    path = _MODULES.get(name)
    if path is not None:
        value: Any = importlib.import_module(f".{path}", __name__)
    elif name in _MISSING:
        from .compat.missing import missing_module

        value = missing_module(name)
        if value is None:
            from ._missing import refuse

            return refuse(__name__, name)(name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])


__all__ = [
    "Context",
    "Device",
    "MXNetError",
    "autograd",
    "context",
    "cpu",
    "cpu_pinned",
    "current_context",
    "current_device",
    "device",
    "engine",
    "error",
    "gluon",
    "gpu",
    "init",
    "initializer",
    "is_np_array",
    "is_np_default_dtype",
    "is_np_shape",
    "kv",
    "kvstore",
    "lr_scheduler",
    "metric",
    "ndarray",
    "np",
    "np_array",
    "np_shape",
    "npx",
    "num_gpus",
    "num_threads",
    "optimizer",
    "random",
    "rnd",
    "runtime",
    "set_np_shape",
    "set_num_threads",
    "test_utils",
    "use_np",
    "use_np_array",
    "use_np_shape",
    "util",
    "waitall",
]
