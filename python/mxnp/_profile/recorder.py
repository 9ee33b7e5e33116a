"""What the profiler notes while it runs: the core's log, calls of blocks and trainers, and what the program marks.

Knows no file format. Nothing is noted, and nothing of the package is replaced, while it does not run.
"""

from __future__ import annotations

import functools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from mxnp import _core

# Older events are dropped, and the file, of some 50 MB then, says how many.
CAPACITY = 1 << 17


class Mark(NamedTuple):
    """Something noted in Python. Times are the core's, in nanoseconds."""

    kind: str  # 'span' (nests in its thread), 'async', 'counter', 'instant'
    category: str
    name: str
    thread: int
    start: int
    end: int
    value: Any = None  # a counter's value, an instant's reach, a span's details


@dataclass(frozen=True)
class Total:
    """What all marks of one name come to: nanoseconds, or a counter's values."""

    count: int
    sum: float
    min: float
    max: float

    def plus(self, value: float) -> Total:
        return Total(self.count + 1, self.sum + value, min(self.min, value), max(self.max, value))


class Recorder:
    """Everything that was noted since `clear`. One for the process; its methods may be called by any thread."""

    def __init__(self) -> None:
        self.is_on = False
        self.log = _core.Log(CAPACITY)
        self._lock = threading.Lock()
        self._local = threading.local()
        self._marks: deque[Mark] = deque(maxlen=CAPACITY)
        self._dropped = 0
        self._totals: dict[tuple[str, str], Total] = {}
        self._counters: set[tuple[str, str]] = set()
        self._undo: list[Callable[[], None]] = []

    def open(self) -> None:
        """Begin to note, or go on."""
        with self._lock:
            if self.is_on:
                return
            self.is_on = True
        self._undo = list(_replace_calls(self))
        self.log.open()

    def close(self) -> None:
        """Stop to note. What is there stays."""
        with self._lock:
            if not self.is_on:
                return
            self.is_on = False
        self.log.close()
        while self._undo:
            self._undo.pop()()

    def clear(self) -> None:
        """Forget all events; totals stay."""
        self.log.clear_events()
        with self._lock:
            self._marks.clear()
            self._dropped = 0

    def clear_totals(self) -> None:
        self.log.clear_totals()
        with self._lock:
            self._totals.clear()

    def marks(self) -> tuple[list[Mark], int]:
        """What was noted in Python, and how much more was dropped."""
        with self._lock:
            return list(self._marks), self._dropped

    def totals(self) -> dict[tuple[str, str], Total]:
        """By category and name; 'memory' in bytes, counters in their own unit, the rest in nanoseconds."""
        found = {(kind, name): Total(*numbers) for kind, name, *numbers in self.log.totals()}
        with self._lock:
            return found | self._totals

    def counters(self) -> set[tuple[str, str]]:
        """Which of the totals are counters."""
        with self._lock:
            return set(self._counters)

    def thread(self) -> int:
        """The calling thread's number; its name is Python's."""
        number = getattr(self._local, "number", None)
        if number is None:
            number = self._local.number = _core.record_thread(threading.current_thread().name)
        return number

    def note(self, kind: str, category: str, name: str, start: int, end: int, value: Any = None) -> None:
        """Keep one mark of the calling thread, while it runs."""
        if not self.is_on:
            return
        key = category, name = str(category), str(name)  # programs name things as they like
        mark = Mark(kind, category, name, self.thread(), start, end, value)
        with self._lock:
            if len(self._marks) == CAPACITY:
                self._dropped += 1
            self._marks.append(mark)
            if kind != "instant":
                amount = float(value) if kind == "counter" else end - start
                if kind == "counter":
                    self._counters.add(key)
                known = self._totals.get(key)
                self._totals[key] = Total(1, amount, amount, amount) if known is None else known.plus(amount)


def _replace_calls(recorder: Recorder) -> Iterator[Callable[[], None]]:
    """Put spans around the calls that a program makes of blocks, trainers and loaders; gives what undoes it."""
    from mxnp.gluon._block import Block
    from mxnp.gluon.data.dataloader import DataLoader
    from mxnp.gluon.trainer import Trainer

    around = functools.partial(_spanned, recorder, category="block", name=_name_of)
    yield _replace(Block, "__call__", around)
    for method in ("step", "update", "allreduce_grads"):
        around = functools.partial(_spanned, recorder, category="api", name=_always(f"Trainer.{method}"))
        yield _replace(Trainer, method, around)
    yield _replace(DataLoader, "__iter__", functools.partial(_stepped, recorder))


def _name_of(block: Any) -> str:
    """The block's name; a class that defines a `name` of its own may not give one."""
    try:
        return str(block.name)
    except Exception:  # noqa: BLE001 - the program's own code, which must run as it does without a profiler
        return type(block).__name__


def _always(text: str) -> Callable[[Any], str]:
    return lambda _: text


def _replace(owner: type, name: str, around: Callable[[Any], Any]) -> Callable[[], None]:
    original = owner.__dict__[name]
    ours = functools.wraps(original)(around(original))
    setattr(owner, name, ours)

    def undo() -> None:
        if owner.__dict__[name] is ours:  # else the program has put something around it
            setattr(owner, name, original)

    return undo


def _spanned(
    recorder: Recorder, original: Callable[..., Any], category: str, name: Callable[[Any], str]
) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        start = _core.record_now()
        try:
            return original(self, *args, **kwargs)
        finally:
            details = {"class": type(self).__name__}
            recorder.note("span", category, name(self), start, _core.record_now(), details)

    return call


def _stepped(recorder: Recorder, original: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    def iterate(self: Any) -> Iterator[Any]:
        batches = original(self)
        while True:
            start = _core.record_now()
            try:
                batch = next(batches)
            except StopIteration:
                return
            recorder.note("span", "api", "DataLoader.next", start, _core.record_now())
            yield batch

    return iterate


RECORDER = Recorder()


def _forget_parents() -> None:
    """A forked child notes nothing and has nothing: the record is its parent's."""
    recorder = RECORDER
    recorder._lock = threading.Lock()
    recorder.close()
    recorder.clear()
    recorder.clear_totals()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parents)
