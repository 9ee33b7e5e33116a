"""Reading a file that may be damaged or hostile: every length is checked before memory is taken.

Owns the bounded reader and the error every format raises. Knows no format.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator
from typing import IO, NoReturn

import numpy as np

from mxnp.error import MXNetValueError


class FormatError(MXNetValueError):
    """A file is damaged, truncated, or holds something mxnp does not read (MXNetError and ValueError).

    The text names the file, the offset in bytes and what was expected there.
    """


class Source:
    """A seekable binary file whose reads never go past its end and never take more memory than it has bytes.

    Offsets in errors count from the start of the file.
    """

    def __init__(self, stream: IO[bytes], name: str):
        self.stream = stream
        self.name = name
        start = stream.tell()
        self.size = stream.seek(0, io.SEEK_END)
        stream.seek(start)

    @property
    def offset(self) -> int:
        return self.stream.tell()

    @property
    def remaining(self) -> int:
        return max(self.size - self.offset, 0)

    def fail(self, problem: str, offset: int | None = None, hint: str = "") -> NoReturn:
        """Raise FormatError for what is at `offset` (the current position when not given)."""
        at = self.offset if offset is None else offset
        raise FormatError(f"{self.name}: at byte {at}: {problem}" + (f"\nhint: {hint}" if hint else ""))

    def need(self, count: int, what: str) -> None:
        """Refuse when fewer than `count` bytes are left for `what`."""
        left = self.remaining
        if count > left:
            self.fail(
                f"{what} needs {count} bytes, but only {left} are left",
                hint="the file is truncated or damaged",
            )

    def read(self, count: int, what: str) -> bytes:
        self.need(count, what)
        data = self.stream.read(count)
        if len(data) != count:
            self.fail(f"{what} needs {count} bytes, but the file ended after {len(data)}")
        return data

    def integer(self, width: int, what: str, signed: bool = False) -> int:
        """A little-endian integer of `width` bytes."""
        return int.from_bytes(self.read(width, what), "little", signed=signed)

    def array(self, dtype: np.dtype, shape: tuple[int, ...], what: str) -> np.ndarray:
        """A new C-ordered array of `shape` filled from the file."""
        count = element_count(shape)
        self.need(count * dtype.itemsize, what)
        try:
            out = np.empty(shape, dtype)
        except ValueError as error:
            self.fail(f"{what} has shape {shape}: {error}")
        fill(self, out, what)
        return out


def element_count(shape: tuple[int, ...]) -> int:
    """Number of elements, in Python integers so that hostile dimensions cannot overflow."""
    count = 1
    for dim in shape:
        count *= dim
    return count


def fill(source: Source, out: np.ndarray, what: str) -> None:
    """Read exactly the bytes of a C-contiguous `out` into it."""
    view = out.reshape(-1).view(np.uint8).data if out.size else memoryview(b"")
    done = 0
    while done < len(view):
        got = source.stream.readinto(view[done:])  # type: ignore[attr-defined] # typing lacks it
        if not got:
            source.fail(f"{what} needs {len(view)} bytes, but the file ended after {done}")
        done += got


@contextlib.contextmanager
def open_source(file: str | os.PathLike | IO[bytes]) -> Iterator[Source]:
    """Open a path, or use a seekable binary file object from where it stands (it is left open)."""
    if not isinstance(file, (str, os.PathLike)):
        yield Source(file, str(getattr(file, "name", file)))
        return
    with open(file, "rb") as stream:
        yield Source(stream, os.fspath(file) if isinstance(file, str) else str(os.fspath(file)))
