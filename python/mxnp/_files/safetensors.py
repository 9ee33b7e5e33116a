"""The safetensors format: u64 header length, a JSON header, the arrays' bytes, little-endian, without
gaps.
"""

from __future__ import annotations

import json
import struct
from typing import IO, Any

import numpy as np

from .convert import from_disk, is_bfloat16, on_disk
from .source import Source, element_count

DTYPES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "U16": "uint16",
    "I16": "int16",
    "U32": "uint32",
    "I32": "int32",
    "U64": "uint64",
    "I64": "int64",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
    "C64": "complex64",
}
NAME_OF = {dtype: name for name, dtype in DTYPES.items()}
# The limit of the reference implementation.
MAX_HEADER = 100_000_000
MAX_DIMS = 64


def write_safetensors(stream: IO[bytes], arrays: list[np.ndarray], names: list[str]) -> None:
    """Write named arrays; the header is padded with spaces so that the data starts at a multiple of 8."""
    header, start = {}, 0
    for name, array in zip(names, arrays, strict=True):
        dtype = "bfloat16" if is_bfloat16(array.dtype) else array.dtype.name
        if dtype not in NAME_OF or name == "__metadata__":
            raise TypeError(f"save: safetensors cannot hold {name!r} with dtype {dtype}")
        header[name] = {
            "dtype": NAME_OF[dtype],
            "shape": list(array.shape),
            "data_offsets": [start, start + array.nbytes],
        }
        start += array.nbytes
    raw = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    raw += b" " * (-len(raw) % 8)
    stream.write(struct.pack("<Q", len(raw)) + raw)
    for array in arrays:
        bits = array.view(np.uint16) if is_bfloat16(array.dtype) else array
        stream.write(np.ascontiguousarray(bits, bits.dtype.newbyteorder("<")).data)


def looks_like_safetensors(head: bytes, size: int) -> bool:
    """Whether a file of `size` bytes starting with `head` (9 bytes) can be one: a length that fits, then
    `{`.
    """
    return (
        len(head) >= 9
        and head[8:9] == b"{"
        and 2 <= int.from_bytes(head[:8], "little") <= min(size - 8, MAX_HEADER)
    )


def read_safetensors(source: Source) -> dict[str, np.ndarray]:
    """All arrays by name, in the order of their data, which they must cover exactly and without overlap."""
    length = source.integer(8, "the header length")
    if length > MAX_HEADER:
        source.fail(f"the header claims {length} bytes; at most {MAX_HEADER} are read", 0)
    raw = source.read(length, "the header")
    try:
        header = json.loads(raw.decode("utf-8"), object_pairs_hook=_no_duplicates)
    except (ValueError, RecursionError) as error:
        source.fail(f"the header is not readable: {error}", 8)
    if not isinstance(header, dict):
        source.fail("the header is not a JSON object", 8)
    header.pop("__metadata__", None)
    start = source.offset
    plan = sorted(
        (_check(source, name, info, start) for name, info in header.items()), key=lambda row: row[:2]
    )
    expected = 0
    for begin, end, name, *_ in plan:
        if begin != expected:
            source.fail(
                f"array {name!r:.200} starts at {begin} of the data, expected {expected}", start + begin
            )
        expected = end
    if start + expected != source.size:
        source.fail(
            f"the arrays cover {expected} bytes of data, but the file has {source.size - start}", start
        )
    arrays = {}
    for _, _, name, dtype, shape in plan:
        arrays[name] = from_disk(source.array(on_disk(dtype), shape, repr(name)), dtype)
    return arrays


def _no_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key appears twice")
    return result


def _check(source: Source, name: str, info: Any, start: int) -> tuple[int, int, str, str, tuple[int, ...]]:
    try:
        dtype, shape, (begin, end) = DTYPES[info["dtype"]], tuple(info["shape"]), info["data_offsets"]
        dims = [*shape, begin, end]
        if len(shape) > MAX_DIMS or any(type(dim) is not int or dim < 0 for dim in dims):
            raise ValueError
    except (TypeError, KeyError, ValueError, IndexError):
        source.fail(f"the header's entry for {name!r:.200} is not valid: {info!r:.200}", 8)
    if end - begin != element_count(shape) * on_disk(dtype).itemsize or start + end > source.size:
        source.fail(
            f"array {name!r:.200} of shape {shape} and dtype {dtype} claims bytes {begin} to {end} "
            f"of {source.size - start}",
            8,
        )
    return begin, end, name, dtype, shape
