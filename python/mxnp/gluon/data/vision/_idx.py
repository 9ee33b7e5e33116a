"""The IDX files in which MNIST and its relatives come, plain or gzipped; told apart and checked by content.

Layout: two zero bytes, a type code (8 is unsigned byte), the number of dimensions, each length as a big-endian u32,
the data. (http://yann.lecun.com/exdb/mnist)
"""

from __future__ import annotations

import gzip
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as onp

from mxnp._files import FormatError

GZIP_MAGIC = b"\x1f\x8b"
UNSIGNED_BYTE = 8
CHUNK = 1 << 20


def find(folders: list[Path], stem: str) -> Path | None:
    """The first of `folders` that has `stem`, plain or gzipped; some tools name it `x.idx3-ubyte`."""
    for folder in folders:
        for name in (stem, stem + ".gz", stem.replace("-idx", ".idx"), stem.replace("-idx", ".idx") + ".gz"):
            if (folder / name).is_file():
                return folder / name
    return None


def read_idx(path: str | os.PathLike, ndim: int) -> onp.ndarray:
    """The array of unsigned bytes with `ndim` dimensions in `path`. Raises FormatError when it is anything else.

    Memory is taken as the data arrives, so a header that lies about its size costs nothing.
    """
    try:
        with open(path, "rb") as raw:
            packed = raw.read(2) == GZIP_MAGIC
            raw.seek(0)
            with gzip.GzipFile(fileobj=raw) if packed else raw as stream:
                return _parse(stream, path, ndim)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FormatError(
            f"{path}: cannot be decompressed: {error}\nhint: the file is truncated or damaged"
        ) from None


def _parse(stream: Any, path: str | os.PathLike, ndim: int) -> onp.ndarray:
    head = stream.read(4 + 4 * ndim)
    if len(head) != 4 + 4 * ndim or head[:4] != bytes([0, 0, UNSIGNED_BYTE, ndim]):
        raise FormatError(
            f"{path}: at byte 0: expected an IDX file of bytes with {ndim} dimensions, got {head[:4]!r}"
        )
    shape = struct.unpack(f">{ndim}I", head[4:])
    size = 1
    for length in shape:
        size *= length
    data = bytearray()
    while len(data) <= size:
        chunk = stream.read(min(CHUNK, size + 1 - len(data)))
        if not chunk:
            break
        data += chunk
    if len(data) != size:
        found = f"{len(data)}" if len(data) < size else "more"
        raise FormatError(
            f"{path}: at byte {len(head)}: the header says {shape}, {size} bytes, but there are {found}"
        )
    return onp.frombuffer(data, onp.uint8).reshape(shape)
