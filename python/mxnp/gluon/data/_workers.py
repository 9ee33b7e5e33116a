"""Worker processes of a loader: they stay for all its epochs, and nothing of them stays after it.

Each worker has one socket. Batch i of an iteration belongs to worker i modulo their number, so that the parent knows
whom to wait for. In a worker, the main thread computes batches and a second one sends them: the next batch is under
way while the parent is busy.
"""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import multiprocessing.connection
import os
import queue
import signal
import socket
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from mxnp.error import MXNetError

from ._transport import decode, encode, encode_error, rebuild_error, receive, send

GRACE_SECONDS = 2.0
# The parent's ends of all sockets: a forked child must not keep them open, or a worker would outlive its parent.
_parent_ends: weakref.WeakSet[socket.socket] = weakref.WeakSet()
_starting = threading.Lock()


class WorkerTimeout(multiprocessing.TimeoutError, TimeoutError):
    """A worker did not deliver a batch within the loader's `timeout`."""


class WorkerDied(MXNetError):
    """A worker process ended without being asked to."""


class WorkerPool:
    """Processes that run `fetch(*task)` for tasks; used by one process, the one that made it."""

    def __init__(self, fetch: Callable, num_workers: int):
        self._owner = os.getpid()
        self._lock = threading.RLock()
        self._tickets = itertools.count()
        self._live: set[int] = set()
        self._ready: dict[tuple[int, int], tuple[bool, Any]] = {}
        self._workers: list[tuple[multiprocessing.Process, socket.socket]] = []
        context = multiprocessing.get_context()
        try:
            for number in range(num_workers):
                self._workers.append(_start(context, fetch, number))
        except BaseException:
            self.close()
            raise

    @property
    def usable(self) -> bool:
        """Whether this process may submit to it: it was made here and has not been closed."""
        return bool(self._workers) and self._owner == os.getpid()

    def open(self) -> int:
        """A ticket under which the batches of one iteration are kept apart from those of others."""
        ticket = next(self._tickets)
        self._live.add(ticket)
        return ticket

    def forget(self, ticket: int) -> None:
        """Drop what came for `ticket`, and what still comes."""
        self._live.discard(ticket)
        for key in [key for key in self._ready if key[0] == ticket]:
            self._ready.pop(key, None)

    def submit(self, ticket: int, index: int, task: tuple) -> None:
        """Have batch `index` computed; returns at once."""
        with self._lock:
            self._check(ticket)
            number = index % len(self._workers)
            try:
                send(self._workers[number][1], encode((ticket, index, task)))
            except OSError:
                self._died(number)

    def result(self, ticket: int, index: int, timeout: float | None) -> Any:
        """Wait for batch `index`: what `fetch` returned, or raise what it raised."""
        deadline = time.monotonic() + timeout if timeout else None
        with self._lock:
            self._check(ticket)
            number = index % len(self._workers)
            while (ticket, index) not in self._ready:
                self._receive(number, deadline, timeout)
            good, payload = self._ready.pop((ticket, index))
        if good:
            return payload
        raise rebuild_error(payload)

    def close(self) -> None:
        """End the workers; a batch being computed is finished or, after a grace period, cut short."""
        workers, self._workers = self._workers, []
        self._live.clear()
        self._ready.clear()
        if self._owner != os.getpid():
            return
        for _, sock in workers:
            with contextlib.suppress(OSError):
                # Reaches the worker even where another process holds a copy of this end.
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
        deadline = time.monotonic() + GRACE_SECONDS
        for process, _ in workers:
            process.join(max(deadline - time.monotonic(), 0))
            for stop in (process.terminate, process.kill):
                if process.exitcode is None:
                    stop()
                    process.join(GRACE_SECONDS)
            process.close()

    def _check(self, ticket: int) -> None:
        if ticket not in self._live or not self.usable:
            raise MXNetError(
                "DataLoader: the workers of this iteration have been stopped\nhint: start a new iteration"
            )

    def _receive(self, number: int, deadline: float | None, timeout: float | None) -> None:
        """Take one message of one worker, for whichever iteration it is."""
        process, sock = self._workers[number]
        left = None if deadline is None else max(deadline - time.monotonic(), 0)
        ready = multiprocessing.connection.wait([sock, process.sentinel], left)
        if not ready:
            raise WorkerTimeout(
                f"DataLoader: worker {number} did not deliver a batch within {timeout} seconds\n"
                "hint: raise `timeout`, or look for what blocks in the dataset or its transforms"
            )
        if sock not in ready:
            self._died(number)
        try:
            ticket, index, good, payload = decode(receive(sock))
        except (EOFError, ConnectionError):
            self._died(number)
        except BaseException:
            # What is left of the message would be taken for the next one.
            self.close()
            raise
        if ticket in self._live:
            self._ready[ticket, index] = (good, payload)

    def _died(self, number: int) -> None:
        process = self._workers[number][0]
        process.join(GRACE_SECONDS)
        pid, code = process.pid, process.exitcode
        self.close()
        raise WorkerDied(
            f"DataLoader: worker {number} (process {pid}) ended unexpectedly with exit code {code}\n"
            "hint: it may have run out of memory or crashed in native code; num_workers=0 shows errors in this process"
        )


def _start(context: Any, fetch: Callable, number: int) -> tuple:
    with _starting:
        mine, theirs = socket.socketpair()
        _parent_ends.add(mine)
        try:
            process = context.Process(
                target=_work, args=(fetch, theirs), daemon=True, name=f"mxnp-loader-{number}"
            )
            process.start()
        except BaseException:
            mine.close()
            raise
        finally:
            theirs.close()
    return process, mine


def _after_fork() -> None:
    global _starting
    _starting = threading.Lock()  # another thread of the parent may have held it
    for sock in list(_parent_ends):
        sock.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _work(fetch: Callable, sock: socket.socket) -> None:
    """The life of a worker: until its socket ends, compute what is asked for."""
    # Ctrl-C reaches the whole group; the parent decides what becomes of its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    outbox: queue.SimpleQueue = queue.SimpleQueue()
    threading.Thread(target=_deliver, args=(sock, outbox), daemon=True).start()
    while True:
        try:
            ticket, index, task = decode(receive(sock))
        except (EOFError, OSError):
            return
        try:
            parts = encode((ticket, index, True, fetch(*task)))
        except Exception as error:  # noqa: BLE001 - whatever the user's code raises is raised again in the parent
            parts = encode_error((ticket, index, False), error)
        outbox.put(parts)


def _deliver(sock: socket.socket, outbox: queue.SimpleQueue) -> None:
    while True:
        try:
            send(sock, outbox.get())
        except OSError:
            return
