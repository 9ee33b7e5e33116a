"""Saving and loading arrays, the format told by the file's first bytes. Takes any array, returns NumPy's."""

from __future__ import annotations

import os
from typing import IO, Any

import numpy as np

from . import legacy, npy, npz, safetensors
from .atomic import atomic_write
from .convert import to_named, to_numpy
from .source import open_source


def save_arrays(file: str | os.PathLike | IO[bytes], arrays: Any) -> None:
    """Write one array as .npy, or a dict or list of arrays as .npz, atomically; the file's name is not
    changed.

    MXNet 2.0 and NumPy read the result. A list comes back from `load_arrays` as a list.
    """
    single = not isinstance(arrays, (dict, list, tuple))
    data, names = to_named(arrays)
    with atomic_write(file) as stream:
        if single:
            npy.write_npy(stream, data[0])
        else:
            npz.write_npz(stream, data, names)


def save_legacy(file: str | os.PathLike | IO[bytes], arrays: Any) -> None:
    """Write a dict, list or single array in MXNet 1.x's binary format, which MXNet's `nd.load` reads."""
    data, names = to_named(arrays)
    with atomic_write(file) as stream:
        legacy.write_legacy(stream, data, names)


def save_safetensors(file: str | os.PathLike | IO[bytes], arrays: dict) -> None:
    """Write a dict of arrays as safetensors, atomically."""
    if not isinstance(arrays, dict):
        raise TypeError(f"save_safetensors: expected a dict of arrays, got {type(arrays).__name__}")
    data, names = to_named(arrays)
    with atomic_write(file) as stream:
        safetensors.write_safetensors(stream, data, names or [])


def load_arrays(file: str | os.PathLike | IO[bytes]) -> dict[str, np.ndarray] | list[np.ndarray] | np.ndarray:
    """Read npz, npy, MXNet 1.x's list or safetensors, told apart by content.

    Returns a dict where the file names its arrays, a list where it does not, an array for .npy. Raises
    FormatError (an MXNetError and a ValueError) that names the file and the offset when it is damaged.

    >>> import io
    >>> stream = io.BytesIO()
    >>> save_arrays(stream, {"w": np.zeros((2, 3))})
    >>> _ = stream.seek(0)
    >>> load_arrays(stream)["w"].shape
    (2, 3)
    """
    with open_source(file) as source:
        start = source.offset
        head = source.stream.read(9)
        source.stream.seek(start)
        if head.startswith(npz.MAGICS):
            return npz.read_npz(source)
        if head.startswith(npy.MAGIC):
            return npy.read_npy(source)
        if head[:8] == legacy.LIST_MAGIC.to_bytes(8, "little"):
            return legacy.read_legacy(source)
        if safetensors.looks_like_safetensors(head, source.remaining):
            return safetensors.read_safetensors(source)
        return source.fail(
            f"unknown kind of file: it starts with {head!r}",
            start,
            "npz, npy, MXNet 1.x parameters and safetensors are read",
        )


__all__ = ["load_arrays", "save_arrays", "save_legacy", "save_safetensors", "to_numpy"]
