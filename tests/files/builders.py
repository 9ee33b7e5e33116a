"""Files of every format built byte by byte with struct, so that no reader is tested with its own writer."""

import io
import json
import struct
import zipfile
import zlib

import numpy as np

FLAG = {
    "float32": 0,
    "float64": 1,
    "float16": 2,
    "uint8": 3,
    "int32": 4,
    "int8": 5,
    "int64": 6,
    "bool": 7,
    "int16": 8,
    "uint16": 9,
    "uint32": 10,
    "uint64": 11,
}
V1, V2, V3 = 0xF993FAC8, 0xF993FAC9, 0xF993FACA


def legacy_array(array, version=2, flag=None, shape=None, stype=0):
    """One array of the 1.x list; `flag`, `shape` and `stype` may lie."""
    shape = array.shape if shape is None else shape
    flag = FLAG[array.dtype.name] if flag is None else flag
    if version == 0:
        head = struct.pack(f"<I{len(shape)}I", len(shape), *shape)
    else:
        head = struct.pack("<I", {1: V1, 2: V2, 3: V3}[version])
        head += struct.pack("<i", stype) if version > 1 else b""
        head += struct.pack(f"<i{len(shape)}q", len(shape), *shape)
    return head + struct.pack("<iii", 1, 0, flag) + array.astype(array.dtype.newbyteorder("<")).tobytes()


def legacy_list(blobs, names=(), magic=0x112, count=None, name_count=None):
    out = struct.pack("<QQQ", magic, 0, len(blobs) if count is None else count) + b"".join(blobs)
    out += struct.pack("<Q", len(names) if name_count is None else name_count)
    for name in names:
        raw = name if isinstance(name, bytes) else name.encode()
        out += struct.pack("<Q", len(raw)) + raw
    return out


def npy(array, descr=None, shape=None, fortran=False, version=1, header=None, data=None):
    """A .npy file; each part may lie."""
    text = (
        header
        if header is not None
        else (
            f"{{'descr': {(array.dtype.str if descr is None else descr)!r}, 'fortran_order': {fortran}, "
            f"'shape': {array.shape if shape is None else shape}, }}"
        )
    )
    raw = text.encode() + b"\n"
    body = array.tobytes("F" if fortran else "C") if data is None else data
    return (
        b"\x93NUMPY"
        + bytes([version, 0])
        + struct.pack("<H" if version == 1 else "<I", len(raw))
        + raw
        + body
    )


def zipped(entries, method=zipfile.ZIP_STORED, comment=b"", lie=None):
    """A ZIP built by hand. `lie` maps field names to wrong values (crc, packed, size, offset, method)."""
    lie = lie or {}
    body, central = io.BytesIO(), b""
    for name, data in entries:
        raw = name.encode()
        packed = data
        if method == zipfile.ZIP_DEFLATED:
            squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
            packed = squeeze.compress(data) + squeeze.flush()
        fields = (
            lie.get("method", method),
            0,
            33,
            lie.get("crc", zlib.crc32(data)),
            lie.get("packed", len(packed)),
            lie.get("size", len(data)),
            len(raw),
            0,
        )
        offset = lie.get("offset", body.tell())
        body.write(struct.pack("<IHHHHHIIIHH", 0x04034B50, 20, 0x800, *fields) + raw + packed)
        central += (
            struct.pack("<IHHHHHHIIIHHHHHII", 0x02014B50, 20, 20, 0x800, *fields, 0, 0, 0, 0, offset) + raw
        )
    at = body.tell()
    count = len(entries)
    tail = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, count, count, len(central), at, len(comment)) + comment
    return body.getvalue() + central + tail


def safetensors(header, data=b"", length=None):
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(raw) if length is None else length) + raw + data


WEIGHT = np.arange(6, dtype="float32").reshape(2, 3) - 2.5
BIAS = np.array([1, -2, 3], "int32")
