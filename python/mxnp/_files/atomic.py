"""Writing a file so that a reader sees the old contents or the new ones, never a part. Knows no format."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from typing import IO


@contextlib.contextmanager
def atomic_write(file: str | os.PathLike | IO[bytes]) -> Iterator[IO[bytes]]:
    """A binary stream for the new contents of `file`.

    The bytes go to a temporary file in the same folder, which takes the target's place when the block ends
    and is removed when the block fails. A symbolic link keeps pointing where it did, and its target is
    replaced. A file object, a pipe or a device is written directly.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "x.bin"
    >>> with atomic_write(path) as stream:
    ...     _ = stream.write(b"whole")
    >>> path.read_bytes()
    b'whole'
    """
    if not isinstance(file, (str, os.PathLike)):
        yield file
        return
    target = os.path.realpath(os.fspath(file))
    mode = _mode_of(target)
    if mode is not None and not stat.S_ISREG(mode):
        with open(target, "wb") as stream:
            yield stream
        return
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name[:200]}.{secrets.token_hex(6)}.tmp")
    # O_EXCL never follows a link planted under that name, and 0o666 lets the user's umask decide.
    try:
        descriptor = os.open(
            temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666
        )
    except FileNotFoundError:
        raise FileNotFoundError(f"cannot write {os.fspath(file)!r}: there is no folder {folder!r}") from None
    try:
        with os.fdopen(descriptor, "w+b") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if mode is not None:
            os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def _mode_of(path: str) -> int | None:
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        return None
