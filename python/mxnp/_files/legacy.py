"""MXNet 1.x's binary list of arrays (`nd.save`, `.params`), read in all its versions and written on request.

Layout, little-endian: u64 0x112, u64 0, u64 count, the arrays, u64 number of names (0 or count), each a u64
length and its bytes. An array: u32 magic (V3, V2, V1; any other word is V0's number of dimensions), from V2
on an i32 storage type, the dimensions (i32 count and i64 each, V0: u32 each), i32 device type and id, i32
dtype flag, data.
"""

from __future__ import annotations

import struct
from typing import IO

import numpy as np

from .convert import from_disk, is_bfloat16, on_disk
from .source import Source

LIST_MAGIC = 0x112
V1, V2, V3 = 0xF993FAC8, 0xF993FAC9, 0xF993FACA
MAX_DIMS = 32
FLAGS = {
    0: "float32",
    1: "float64",
    2: "float16",
    3: "uint8",
    4: "int32",
    5: "int8",
    6: "int64",
    7: "bool",
    8: "int16",
    9: "uint16",
    10: "uint32",
    11: "uint64",
    12: "bfloat16",
}
FLAG_OF = {name: flag for flag, name in FLAGS.items()}
SPARSE = {1: "row_sparse", 2: "csr"}
# Smallest encodings, used to refuse a count that the file cannot hold before any list grows.
MIN_ARRAY_BYTES = 4
MIN_NAME_BYTES = 8


def read_legacy(source: Source) -> dict[str, np.ndarray] | list[np.ndarray]:
    """All arrays: a dict when the file names them, else a list."""
    at = source.offset
    if source.integer(8, "the magic") != LIST_MAGIC:
        source.fail("not a list of arrays: the magic 0x112 is missing", at)
    source.integer(8, "the reserved word")
    count = _read_count(source, "arrays", MIN_ARRAY_BYTES)
    arrays = [_read_array(source, f"array {i} of {count}") for i in range(count)]
    at = source.offset
    named = _read_count(source, "names", MIN_NAME_BYTES)
    if named not in (0, count):
        source.fail(f"{named} names for {count} arrays", at)
    names = [_read_name(source, i) for i in range(named)]
    if source.remaining:
        source.fail(f"{source.remaining} bytes follow the end of the list")
    if len(set(names)) != named:
        twice = next(name for name in names if names.count(name) > 1)
        source.fail(f"the name {twice!r:.200} appears twice", at)
    return dict(zip(names, arrays, strict=True)) if named else arrays


def _read_count(source: Source, what: str, least: int) -> int:
    at = source.offset
    count = source.integer(8, f"the number of {what}")
    if count * least > source.remaining:
        source.fail(f"the file claims {count} {what}, but only {source.remaining} bytes are left", at)
    return count


def _read_name(source: Source, index: int) -> str:
    at = source.offset
    length = source.integer(8, f"the length of name {index}")
    raw = source.read(length, f"name {index}")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        source.fail(f"name {index} is not UTF-8: {raw[:40]!r}", at)


def _read_array(source: Source, what: str) -> np.ndarray:
    magic = source.integer(4, f"the magic of {what}")
    if magic in (V2, V3):
        at = source.offset
        stype = source.integer(4, f"the storage type of {what}", signed=True)
        if stype in SPARSE:
            source.fail(
                f"{what} is stored as {SPARSE[stype]}; only dense arrays are read",
                at,
                "convert it with tostype('default') where it was made",
            )
        if stype != 0:
            source.fail(f"{what} has the unknown storage type {stype}", at)
    shape = _read_shape(source, magic, what)
    if not shape and magic != V3:
        # Before NumPy shapes, no dimensions meant an array that was never allocated.
        return np.empty((0,), np.float32)
    source.read(8, f"the device of {what}")
    at = source.offset
    flag = source.integer(4, f"the dtype of {what}", signed=True)
    if flag not in FLAGS:
        source.fail(f"{what} has the unknown dtype flag {flag}", at)
    name = FLAGS[flag]
    data = source.array(on_disk(name), shape, f"the data of {what} with shape {shape} and dtype {name}")
    return from_disk(data, name)


def _read_shape(source: Source, magic: int, what: str) -> tuple[int, ...]:
    versioned = magic in (V1, V2, V3)
    at = source.offset if versioned else source.offset - 4
    ndim = source.integer(4, f"the number of dimensions of {what}", signed=True) if versioned else magic
    if not 0 <= ndim <= MAX_DIMS:
        problem = (
            f"{what} has {ndim} dimensions"
            if versioned
            else f"{what} starts with the unknown magic 0x{ndim:08x}"
        )
        source.fail(problem, at)
    width = 8 if versioned else 4
    shape = tuple(source.integer(width, f"the shape of {what}", signed=versioned) for _ in range(ndim))
    if any(dim < 0 for dim in shape):
        source.fail(f"{what} has shape {shape}", at)
    return shape


def write_legacy(stream: IO[bytes], arrays: list[np.ndarray], names: list[str] | None) -> None:
    """Write the list as V2, or wholly as V3 when V2 cannot express an array (no dimensions, or one of length
    0).

    MXNet reads V2 only with NumPy shapes off and V3 only with them on, so one file never mixes the two.
    """
    magic = V2 if all(array.size and array.ndim for array in arrays) else V3
    stream.write(struct.pack("<QQQ", LIST_MAGIC, 0, len(arrays)))
    for index, array in enumerate(arrays):
        name = "bfloat16" if is_bfloat16(array.dtype) else array.dtype.name
        if name not in FLAG_OF:
            label = repr(names[index]) if names else f"item {index}"
            raise TypeError(f"save: {label}: MXNet 1.x files hold no {name}")
        stream.write(struct.pack(f"<Iii{array.ndim}q", magic, 0, array.ndim, *array.shape))
        stream.write(struct.pack("<iii", 1, 0, FLAG_OF[name]))
        bits = array.view(np.uint16) if name == "bfloat16" else array
        stream.write(np.ascontiguousarray(bits, bits.dtype.newbyteorder("<")).data)
    stream.write(struct.pack("<Q", len(names or ())))
    for name in names or ():
        raw = name.encode("utf-8")
        stream.write(struct.pack("<Q", len(raw)) + raw)
