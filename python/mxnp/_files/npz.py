"""Named arrays in a ZIP of .npy entries: NumPy's .npz and the parameter files of MXNet 2."""

from __future__ import annotations

import struct
import zipfile
import zlib
from typing import IO

import numpy as np

from .npy import read_npy, write_npy
from .source import FormatError, Source

MAGICS = (b"PK\x03\x04", b"PK\x05\x06")
# Written as the archive's comment, which other readers ignore: the entries arr_0, arr_1, ... were a list.
LIST_COMMENT = b"mxnp:list"
# deflate cannot shrink data by more than this factor, so an entry that claims more is a lie.
MAX_DEFLATE_RATIO = 1032
# A fixed time stamp (the oldest ZIP knows) makes equal arrays give equal files.
EPOCH = (1980, 1, 1, 0, 0, 0)
ZIP64_LIMIT = 2**31 - 1


def write_npz(stream: IO[bytes], arrays: list[np.ndarray], names: list[str] | None) -> None:
    """Write stored entries `<name>.npy`; without names they are arr_0, arr_1, ... and load as a list."""
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        if names is None:
            archive.comment = LIST_COMMENT
            names = [f"arr_{i}" for i in range(len(arrays))]
        for name, array in zip(names, arrays, strict=True):
            if not name or "\0" in name:
                raise ValueError(f"save: {name!r} cannot name an array: it is empty or holds a zero byte")
            info = zipfile.ZipInfo("entry", EPOCH)
            # Set after construction, which would rewrite separators on some systems.
            info.filename = name + ".npy"
            with archive.open(info, "w", force_zip64=array.nbytes >= ZIP64_LIMIT) as entry:
                write_npy(entry, array)


def read_npz(source: Source) -> dict[str, np.ndarray] | list[np.ndarray]:
    """All arrays of the archive, by entry name without `.npy`; a list when write_npz wrote one."""
    try:
        with zipfile.ZipFile(source.stream) as archive:
            entries = archive.infolist()
            packed = sum(info.compress_size for info in entries)
            if packed > source.size:
                source.fail(f"the entries claim {packed} bytes, but the file has {source.size}", 0)
            arrays: dict[str, np.ndarray] = {}
            for info in entries:
                name = info.filename.removesuffix(".npy")
                if name == info.filename or name in arrays:
                    problem = "appears twice" if name in arrays else "is not a .npy entry"
                    source.fail(f"entry {info.filename!r:.200} {problem}", info.header_offset)
                arrays[name] = _read_entry(source, archive, info, name)
            if archive.comment == LIST_COMMENT:
                return _as_list(source, arrays)
            return arrays
    except FormatError:
        raise
    except (
        zipfile.BadZipFile,
        struct.error,
        UnicodeError,
        EOFError,
        NotImplementedError,
        RuntimeError,
        ValueError,
        IndexError,
        OverflowError,
        OSError,
    ) as error:
        source.fail(f"not a readable ZIP archive: {error}", 0, "the file is truncated or damaged")


def _read_entry(source: Source, archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> np.ndarray:
    at = info.header_offset
    limits = {zipfile.ZIP_STORED: 1, zipfile.ZIP_DEFLATED: MAX_DEFLATE_RATIO}
    if info.compress_type not in limits:
        source.fail(
            f"array {name!r:.200} is compressed by method {info.compress_type}; stored and deflated are read",
            at,
        )
    if info.file_size > limits[info.compress_type] * (info.compress_size + 1):
        source.fail(f"array {name!r:.200} claims {info.file_size} bytes from {info.compress_size}", at)
    try:
        with archive.open(info) as entry:
            inner = _Entry(entry, f"{source.name}[{name}]", info.file_size)
            array = read_npy(inner, repr(name))
            if entry.read(1):
                source.fail(f"array {name!r:.200} has {info.file_size} bytes, more than its header says", at)
            return array
    except zlib.error as error:
        source.fail(f"array {name!r:.200} cannot be decompressed: {error}", at)
    except zipfile.BadZipFile as error:
        source.fail(f"array {name!r:.200} is damaged: {error}", at)


class _Entry(Source):
    """A Source over one entry: offsets count inside the entry, whose size the directory states."""

    def __init__(self, stream: IO[bytes], name: str, size: int):
        self.stream, self.name, self.size = stream, name, size


def _as_list(source: Source, arrays: dict[str, np.ndarray]) -> list[np.ndarray]:
    if any(name != f"arr_{i}" for i, name in enumerate(arrays)):
        source.fail(f"a list of arrays has the entries {list(arrays)[:8]!r:.200}", 0)
    return list(arrays.values())
