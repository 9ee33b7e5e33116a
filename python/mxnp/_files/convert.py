"""What may be stored: turning what callers hand in into NumPy arrays, and the dtypes a file can hold."""

from __future__ import annotations

from typing import Any

import numpy as np

STORED_KINDS = "biufc"


def bfloat16() -> np.dtype:
    """The bfloat16 dtype; needs the package ml_dtypes."""
    try:
        import ml_dtypes
    except ImportError:
        raise ImportError("bfloat16 needs the package ml_dtypes\nhint: pip install ml_dtypes") from None
    return np.dtype(ml_dtypes.bfloat16)


def is_bfloat16(dtype: np.dtype) -> bool:
    return dtype.name == "bfloat16"


def on_disk(name: str) -> np.dtype:
    """The little-endian dtype whose bytes a file holds for the dtype called `name`."""
    return np.dtype({"bool": "u1", "bfloat16": "<u2"}.get(name, name)).newbyteorder("<")


def from_disk(array: np.ndarray, name: str) -> np.ndarray:
    """An array read as `on_disk(name)`, as the dtype called `name` in native byte order."""
    if name == "bool":
        return array.astype(bool)  # any byte but 0 is True, as a bool array holding a 2 is not valid
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    return native.view(bfloat16()) if name == "bfloat16" else native


def to_numpy(value: Any, what: str) -> np.ndarray:
    """`value` (an mxnp or NumPy array, a scalar, nested lists) as a NumPy array in native byte order.

    Raises TypeError for what no file format here can hold (objects, strings, records).
    """
    array = value.asnumpy() if hasattr(value, "asnumpy") else np.asarray(value)
    if array.dtype.kind not in STORED_KINDS and not is_bfloat16(array.dtype):
        raise TypeError(
            f"{what}: expected numbers or booleans, got dtype {array.dtype} from {type(value).__name__}"
        )
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def to_named(arrays: Any) -> tuple[list[np.ndarray], list[str] | None]:
    """Arrays and, when `arrays` is a dict, their names. A single array counts as a list of one."""
    if isinstance(arrays, dict):
        for name in arrays:
            if not isinstance(name, str):
                raise TypeError(
                    f"save: names of arrays are strings, got {name!r} of type {type(name).__name__}"
                )
        return [to_numpy(value, f"save: {name!r}") for name, value in arrays.items()], list(arrays)
    if isinstance(arrays, (list, tuple)):
        return [to_numpy(value, f"save: item {i}") for i, value in enumerate(arrays)], None
    return [to_numpy(arrays, "save")], None
