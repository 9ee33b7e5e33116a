"""Reading the optimizer states that MXNet pickled, without running what a pickle could contain.

The unpickler makes arrays, builtin containers and empty records for MXNet's optimizers and schedules; any
other name in the file is refused.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

from mxnp._files.arrays import load_arrays
from mxnp._files.legacy import LIST_MAGIC
from mxnp.error import MXNetValueError

_PLAIN = (bool, int, float, str, type(None))
_ARRAYS = {("mxnet.ndarray.ndarray", "NDArray"), ("mxnet.numpy.multiarray", "ndarray")}
_RECORDS = ("mxnet.optimizer", "mxnet.lr_scheduler")


def looks_like(data: bytes) -> bool:
    """Whether the bytes start as a pickle of protocol 2 or newer, or one of protocol 0 does."""
    return data[:1] == b"\x80" or data[:4] in (b"(dp0", b"(lp0", b"(dp1")


class _Array:
    """Stands for an NDArray: takes its saved bytes, gives a NumPy array."""

    def __init__(self, *args: Any) -> None:
        self.handle: Any = None

    def __setstate__(self, state: Any) -> None:
        self.handle = state.get("handle") if isinstance(state, dict) else None

    def array(self) -> Any:
        """The values, or None for an array that was never made."""
        if self.handle is None:
            return None
        if not isinstance(self.handle, (bytes, bytearray)):
            raise ValueError(f"an array is saved as {type(self.handle).__name__}")
        head = LIST_MAGIC.to_bytes(8, "little") + bytes(8) + (1).to_bytes(8, "little")
        (array,) = load_arrays(io.BytesIO(head + bytes(self.handle) + bytes(8)))
        return array


class _Record:
    """Stands for an object of MXNet's: its class name and its attributes, without behaviour."""

    class_name = ""

    def __init__(self, *args: Any) -> None:
        self.values: dict[str, Any] = {}

    def __setstate__(self, state: Any) -> None:
        self.values = state if isinstance(state, dict) else {}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _ARRAYS:
            return _Array
        if module in _RECORDS or module.startswith(tuple(f"{each}." for each in _RECORDS)):
            return type(name, (_Record,), {"class_name": name})
        if (module, name) in (("builtins", "bytearray"), ("__builtin__", "bytearray")):
            return _to_bytes
        if (module, name) == ("_codecs", "encode"):
            return _encode
        raise pickle.UnpicklingError(f"it names {module}.{name}, which states do not need")


def _to_bytes(value: Any = b"", encoding: str = "latin1") -> bytes:
    """bytearray's calls that take data; one that takes a length could ask for any amount of memory."""
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    return _encode(value, encoding)


def _encode(text: str, encoding: str) -> bytes:
    """What protocol 2 spells bytes with: latin-1 text."""
    if encoding not in ("latin1", "latin-1") or not isinstance(text, str):
        raise pickle.UnpicklingError(f"it encodes a {type(text).__name__} as {encoding!r:.40}")
    return text.encode("latin1")


def load(data: bytes, name: str) -> tuple[dict[int | str, Any], dict[str, Any] | None]:
    """The states (trees of NumPy arrays) and, where the file has it, the optimizer's description."""
    try:
        saved = _Unpickler(io.BytesIO(data)).load()
        states, optimizer = saved if isinstance(saved, tuple) and len(saved) == 2 else (saved, None)
        if not isinstance(states, dict) or not all(isinstance(each, (int, str)) for each in states):
            raise ValueError("it is not a dict of states by index")
        trees = _trees(states, limit=len(data))
        return trees, _describe(optimizer) if isinstance(optimizer, _Record) else None
    except MXNetValueError:
        raise
    except Exception as error:  # a hostile pickle can raise anything at all
        raise MXNetValueError(f"{name}: not MXNet's optimizer states: {error}") from error


def _trees(states: dict[int | str, Any], limit: int) -> dict[int | str, Any]:
    """The states with their arrays made; more nodes than the file has bytes can only be shared ones."""
    nodes = 0

    def tree(state: Any) -> Any:
        nonlocal nodes
        nodes += 1
        if nodes > limit:
            raise ValueError("its states share parts without end")
        if state is None:
            return None
        if isinstance(state, _Array):
            return state.array()
        if isinstance(state, (tuple, list)):
            return tuple(tree(each) for each in state)
        raise ValueError(f"a state is {type(state).__name__}")

    return {index: tree(state) for index, state in states.items()}


def _describe(optimizer: _Record) -> dict[str, Any]:
    values = {k: v for k, v in optimizer.values.items() if isinstance(v, _PLAIN) and k != "rescale_grad"}
    counts = optimizer.values.get("_all_index_update_counts") or {0: optimizer.values["_index_update_count"]}
    return {
        "class": optimizer.class_name,
        "values": values,
        "counts": [[device, list(rows.items())] for device, rows in counts.items()],
        "scheduler": None,
    }
