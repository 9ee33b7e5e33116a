"""One array in NumPy's .npy format (versions 1 to 3). No pickled objects, no records.

The format is described in the documentation of numpy.lib.format.
"""

from __future__ import annotations

import ast
from typing import IO, Any

import numpy as np

from .convert import STORED_KINDS, from_disk, on_disk
from .source import Source, element_count, fill

MAGIC = b"\x93NUMPY"
# NumPy's own reader refuses longer headers too.
MAX_HEADER = 10_000
MAX_DIMS = 64


def write_npy(stream: IO[bytes], array: np.ndarray) -> None:
    """Write `array` in C order; bfloat16 is stored as two-byte void elements, as np.save does."""
    np.lib.format.write_array(stream, np.asarray(array, order="C"), version=(1, 0), allow_pickle=False)


def read_npy(source: Source, what: str = "array") -> np.ndarray:
    """Read one array from where `source` stands. Two-byte void elements are bfloat16."""
    dtype, fortran, shape = _read_header(source, what)
    source.need(
        element_count(shape) * dtype.itemsize, f"the data of {what} with shape {shape} and dtype {dtype}"
    )
    name = "bfloat16" if dtype.kind == "V" else dtype.name
    stored = dtype if dtype.kind in "iufc" else on_disk(name)
    try:
        out = np.empty(shape, stored, order="F" if fortran else "C")
    except ValueError as error:
        source.fail(f"{what} has shape {shape}: {error}")
    fill(source, out.T if fortran else out, what)
    return from_disk(out, name)


def _read_header(source: Source, what: str) -> tuple[np.dtype, bool, tuple[int, ...]]:
    start = source.offset
    if source.read(len(MAGIC), f"the .npy magic of {what}") != MAGIC:
        source.fail(f"{what} does not start with the .npy magic", start)
    major, _minor = source.read(2, f"the .npy version of {what}")
    if major not in (1, 2, 3):
        source.fail(f"{what} has .npy version {major}; versions 1 to 3 are known", start)
    length = source.integer(2 if major == 1 else 4, f"the header length of {what}")
    if length > MAX_HEADER:
        source.fail(f"{what} has a header of {length} bytes; at most {MAX_HEADER} are read")
    at = source.offset
    raw = source.read(length, f"the .npy header of {what}")
    try:
        header = ast.literal_eval(raw.decode("utf-8" if major == 3 else "latin-1").strip())
        descr, fortran, shape = header["descr"], header["fortran_order"], header["shape"]
    except (ValueError, SyntaxError, TypeError, KeyError, RecursionError, MemoryError):
        source.fail(f"the .npy header of {what} is not readable: {raw[:60]!r}", at)
    if not isinstance(fortran, bool) or not _is_shape(shape):
        source.fail(
            f"the .npy header of {what} has shape {shape!r:.60} and fortran_order {fortran!r:.20}", at
        )
    return _dtype_of(source, descr, what, at), fortran, shape


def _is_shape(shape: Any) -> bool:
    return (
        isinstance(shape, tuple)
        and len(shape) <= MAX_DIMS
        and all(type(dim) is int and 0 <= dim < 2**63 for dim in shape)
    )


def _dtype_of(source: Source, descr: Any, what: str, at: int) -> np.dtype:
    try:
        dtype = np.dtype(descr) if isinstance(descr, str) else None
    except (TypeError, ValueError):
        dtype = None
    if dtype is None or not (dtype.kind in STORED_KINDS or dtype.str[1:] == "V2"):
        hint = "arrays of Python objects are pickles, which are not read" if descr == "|O" else ""
        source.fail(f"{what} has dtype {descr!r:.60}, expected numbers or booleans", at, hint)
    return dtype
