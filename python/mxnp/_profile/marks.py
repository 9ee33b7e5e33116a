"""What a program marks for the profiler: scopes, tasks, frames, events, counters and moments. MXNet's classes."""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Iterator
from typing import Self

from mxnp import _core
from mxnp.error import MXNetValueError

from .recorder import RECORDER

_scope: contextvars.ContextVar[str] = contextvars.ContextVar("mxnp_profiler_scope", default="<unk>:")


@contextlib.contextmanager
def scope(name: str = "<unk>:", append_mode: bool = True) -> Iterator[None]:
    """A with-block whose time is shown under `name`; inside another scope its name comes first, with `append_mode`.

    >>> with mx.profiler.scope("encoder"):
    ...     y = np.ones(3) + 1
    """
    name = str(name).removesuffix(":") + ":"
    outer = _scope.get()
    if append_mode and outer != "<unk>:":
        name = outer + name
    token = _scope.set(name)
    begun = _core.record_now()
    try:
        yield
    finally:
        _scope.reset(token)
        RECORDER.note("span", "scope", name, begun, _core.record_now())


class Domain:
    """What tasks, frames, counters and markers are grouped by; its name is their category.

    >>> domain = mx.profiler.Domain("training")
    >>> with domain.new_task("epoch"):
    ...     domain.new_counter("batches", 0).increment(3)
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return str(self.name)

    def __repr__(self) -> str:
        return f"Domain({self.name!r})"

    def new_task(self, name: str) -> Task:
        """A Task of this domain."""
        return Task(self, name)

    def new_frame(self, name: str) -> Frame:
        """A Frame of this domain."""
        return Frame(self, name)

    def new_counter(self, name: str, value: float | None = None) -> Counter:
        """A Counter of this domain."""
        return Counter(self, name, value)

    def new_marker(self, name: str) -> Marker:
        """A Marker of this domain."""
        return Marker(self, name)


class _Timed:
    """A time between `start` and `stop`, or of a with-block. May begin in one thread and end in another."""

    def __init__(self, name: str, category: str) -> None:
        self.name = name
        self._category = category
        self._begun: int | None = None

    def __str__(self) -> str:
        return str(self.name)

    def start(self) -> None:
        """Begin; anew where it has begun."""
        self._begun = _core.record_now()

    def stop(self) -> None:
        """End, and record it. Nothing where it has not begun."""
        begun, self._begun = self._begun, None
        if begun is not None:
            RECORDER.note("async", self._category, self.name, begun, _core.record_now())

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


class Task(_Timed):
    """A piece of the program's work; tasks of one domain may overlap.

    >>> task = mx.profiler.Task(mx.profiler.Domain("training"), "epoch")
    >>> task.start()
    >>> task.stop()
    """

    def __init__(self, domain: Domain, name: str) -> None:
        super().__init__(name, str(domain))

    def __repr__(self) -> str:
        return f"Task({Domain(self._category)!r}, {self.name!r})"


class Frame(_Timed):
    """One of many like it, such as a batch.

    >>> with mx.profiler.Frame(mx.profiler.Domain("training"), "batch"):
    ...     y = np.ones(3) + 1
    """

    def __init__(self, domain: Domain, name: str) -> None:
        super().__init__(name, f"{domain},frame")
        self._domain = domain

    def __repr__(self) -> str:
        return f"Frame({self._domain!r}, {self.name!r})"


class Event(_Timed):
    """A time of no domain.

    >>> with mx.profiler.Event("preparation"):
    ...     y = np.ones(3) + 1
    """

    def __init__(self, name: str) -> None:
        super().__init__(name, "event")

    def __repr__(self) -> str:
        return f"Event({self.name!r})"


class Counter:
    """A number whose course is drawn. It keeps its value while the profiler does not run.

    >>> batches = mx.profiler.Counter(mx.profiler.Domain("training"), "batches", 0)
    >>> batches += 2
    >>> batches.decrement()
    >>> batches
    Counter(Domain('training'), 'batches', 1)
    """

    def __init__(self, domain: Domain, name: str, value: float | None = None) -> None:
        self.name = name
        self.domain = domain
        self._value: float = 0
        self._lock = threading.Lock()
        if value is not None:
            self.set_value(value)

    def __str__(self) -> str:
        return str(self.name)

    def __repr__(self) -> str:
        return f"Counter({self.domain!r}, {self.name!r}, {self._value!r})"

    def set_value(self, value: float) -> None:
        """Make it `value`."""
        with self._lock:
            self._note(value)

    def increment(self, delta: float = 1) -> None:
        """Add `delta`."""
        with self._lock:
            self._note(self._value + delta)

    def decrement(self, delta: float = 1) -> None:
        """Subtract `delta`."""
        self.increment(-delta)

    def __iadd__(self, delta: float) -> Self:
        self.increment(delta)
        return self

    def __isub__(self, delta: float) -> Self:
        self.decrement(delta)
        return self

    def _note(self, value: float) -> None:
        amount = float(value)  # raises for what is no number
        self._value = value
        now = _core.record_now()
        RECORDER.note("counter", str(self.domain), self.name, now, now, amount)


_REACHES = ("global", "process", "thread", "task", "marker")


class Marker:
    """A moment.

    >>> mx.profiler.Marker(mx.profiler.Domain("training"), "lower rate").mark("process")
    """

    def __init__(self, domain: Domain, name: str) -> None:
        self.name = name
        self.domain = domain

    def __repr__(self) -> str:
        return f"Marker({self.domain!r}, {self.name!r})"

    def mark(self, scope: str = "process") -> None:
        """Mark the present moment.

        `scope` is how far its line goes: 'global', 'process', 'thread', 'task' or 'marker'.
        """
        if scope not in _REACHES:
            raise MXNetValueError(f"mark: scope is one of {', '.join(_REACHES)}, got {scope!r}")
        now = _core.record_now()
        RECORDER.note("instant", f"{self.domain},instant_marker", self.name, now, now, scope)
