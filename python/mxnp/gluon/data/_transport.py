"""Messages between a loader and its workers over a socket pair: pickles whose arrays travel beside them, uncopied.

Knows nothing of datasets. A socket pair leaves nothing on the system, whatever way either end dies.
"""

from __future__ import annotations

import io
import pickle
import socket
import struct
import traceback
from typing import Any

import numpy as onp

from .batchify import is_mxnp, to_mxnp


class WorkerTraceback(Exception):
    """The traceback of a worker's exception as text; the cause of the exception that the loader raises."""

    def __str__(self) -> str:
        return f"\n\nIn the worker:\n{self.args[0]}"


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        """mxnp arrays travel as NumPy's."""
        return (to_mxnp, (obj.asnumpy(),)) if is_mxnp(obj) and not isinstance(obj, type) else NotImplemented


def encode(message: Any) -> list:
    """The parts of a message: one pickle, then the memory of each array in it."""
    buffers: list[pickle.PickleBuffer] = []
    stream = io.BytesIO()
    _Pickler(stream, protocol=5, buffer_callback=buffers.append).dump(message)
    return [stream.getbuffer(), *(buffer.raw() for buffer in buffers)]


def decode(parts: list) -> Any:
    """The message whose parts `encode` gave."""
    return pickle.loads(parts[0], buffers=parts[1:])


def send(sock: socket.socket, parts: list) -> None:
    """Write the parts of one message; blocks until the other end has taken them."""
    sizes = [len(part) for part in parts]
    sock.sendall(struct.pack(f"<Q{len(sizes)}Q", len(sizes), *sizes))
    for part in parts:
        sock.sendall(part)


def receive(sock: socket.socket) -> list:
    """The parts of the next message, in memory of their own. Raises EOFError when the other end is gone."""
    (count,) = struct.unpack("<Q", _receive_exactly(sock, 8))
    sizes = struct.unpack(f"<{count}Q", _receive_exactly(sock, 8 * count))
    return [_receive_exactly(sock, size) for size in sizes]


def _receive_exactly(sock: socket.socket, size: int) -> memoryview:
    view = onp.empty(size, onp.uint8).data
    done = 0
    while done < size:
        got = sock.recv_into(view[done:])
        if not got:
            raise EOFError("the other end of a worker's socket is closed")
        done += got
    return view


def encode_error(head: tuple, error: BaseException) -> list:
    """The parts of a message about an exception: `head` and what `rebuild_error` needs."""
    text = "".join(traceback.format_exception(error))
    name = f"{type(error).__name__}: {error}"
    for candidate in (error, _Plain(type(error), error.args)):
        try:
            parts = encode((*head, (candidate, name, text)))
            if str(_as_error(decode(parts)[-1][0])) == str(error):
                return parts
        except Exception:  # noqa: BLE001 - whatever a user's exception does when it is copied, the next form is tried
            continue
    return encode((*head, (None, name, text)))


def rebuild_error(payload: tuple) -> BaseException:
    """The worker's exception, of its own type and text, with the worker's traceback as its cause."""
    candidate, name, text = payload
    error = _as_error(candidate) if candidate is not None else RuntimeError(name)
    error.__cause__ = WorkerTraceback(text)
    return error


class _Plain:
    """An exception as its class and arguments, for one whose constructor does not take its own arguments."""

    def __init__(self, kind: type, args: tuple):
        self.kind, self.args = kind, args


def _as_error(candidate: BaseException | _Plain) -> BaseException:
    if isinstance(candidate, _Plain):
        error = candidate.kind.__new__(candidate.kind, *candidate.args)
        error.args = candidate.args
        return error
    return candidate
