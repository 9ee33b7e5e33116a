"""`mxnp.profiler`: what ran, when and on which thread, as a trace for Perfetto and a table of totals. MXNet's API.

>>> import os, tempfile
>>> path = os.path.join(tempfile.mkdtemp(), "trace.json")
>>> mx.profiler.set_config(filename=path, profile_all=True)
>>> mx.profiler.set_state("run")
>>> y = np.exp(np.ones((100, 100)) * 2)
>>> y.wait_to_read()
>>> mx.profiler.set_state("stop")
>>> mx.profiler.dump()  # open the file at https://ui.perfetto.dev
>>> "exp" in mx.profiler.dumps()
True

While it does not run, nothing is recorded and calls cost what they always do.
"""

from __future__ import annotations

import atexit
import contextlib
import contextvars
import os
import threading
import warnings
from collections.abc import Iterator
from typing import Any, Self

from . import _core
from ._profile import table as _table
from ._profile import trace as _trace
from ._profile.config import Config, check_process
from ._profile.recorder import RECORDER
from .error import MXNetError, MXNetValueError

__all__ = [
    "Counter",
    "Domain",
    "Event",
    "Frame",
    "Marker",
    "Task",
    "dump",
    "dump_profile",
    "dumps",
    "pause",
    "profiler_set_config",
    "profiler_set_state",
    "resume",
    "scope",
    "set_config",
    "set_kvstore_handle",
    "set_state",
    "start",
    "state",
    "stop",
]


class _Profiler:
    """The profiler's settings and state. Changes of state come one at a time."""

    def __init__(self) -> None:
        self.config = Config()
        self.lock = threading.RLock()
        self.state = "stop"
        self.is_paused = False
        self.has_run = False
        self.is_finished = True  # the next run begins a new record
        self.counters: set[tuple[str, str]] = set()
        self._writer: tuple[threading.Thread, threading.Event] | None = None

    def run(self) -> None:
        with self.lock:
            if self.state == "run":
                return
            if self.is_finished:
                RECORDER.clear()
            # What was asked for earlier is not in the record.
            _core.flush()
            self.state, self.has_run, self.is_finished, self.is_paused = "run", True, False, False
            RECORDER.open()
            if self.config.continuous_dump:
                self._start_writer()

    def halt(self) -> None:
        with self.lock:
            if self.state == "stop":
                return
            _core.settle()
            self.state = "stop"
            RECORDER.close()
        self._stop_writer()

    def write(self) -> None:
        config = self.config
        operators = config.profile_all or config.profile_imperative or config.profile_symbolic
        memory = config.profile_all or config.profile_memory
        api = config.profile_all or config.profile_api
        _trace.write(RECORDER, config.filename, _trace.Shown(operators, memory, api))

    def _start_writer(self) -> None:
        ended = threading.Event()

        def work() -> None:
            while not ended.wait(self.config.dump_period):
                with contextlib.suppress(OSError):  # the last one, at the stop, says so
                    self.write()

        thread = threading.Thread(target=work, name="mxnp-profiler", daemon=True)
        self._writer = (thread, ended)
        thread.start()

    def _stop_writer(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            thread, ended = writer
            ended.set()
            thread.join()
            self.write()

    def forget_parent(self) -> None:
        """In a forked child: stopped, with the parent's settings and nothing recorded."""
        config = self.config
        self.__init__()  # type: ignore[misc]
        self.config = config


_profiler = _Profiler()


def set_config(**kwargs: Any) -> None:
    """Set options; those not named keep their values.

    Parameters
    ----------
    filename : where `dump` writes ('profile.json').
    profile_all : everything that follows.
    profile_symbolic, profile_imperative : passes and kernels, of compiled blocks and of eager code alike: one of the
        two is enough for both.
    profile_memory : bytes of arrays in use.
    profile_api : waits, `backward`, `Trainer.step`, the next batch of a loader.
    continuous_dump : write the file every `dump_period` seconds while running, and when stopped (MXNet's default is
        True, here it is False).
    aggregate_stats : accepted; totals for `dumps` are always kept.
    profile_process : 'worker'; there is no 'server'.

    Raises MXNetError for an option there is not.

    >>> mx.profiler.set_config(filename="profile.json", profile_all=True, aggregate_stats=True)
    """
    _profiler.config = _profiler.config.changed(kwargs)


def set_state(state: str = "stop", profile_process: str = "worker") -> None:
    """'run' begins to record, or goes on after a 'stop'; 'stop' waits for what was started, and ends it.

    A 'run' after a `dump` begins a new record. Raises KeyError for another state.

    >>> mx.profiler.set_state("run")
    >>> mx.profiler.state()
    'run'
    >>> mx.profiler.set_state("stop")
    """
    check_process(profile_process, "set_state")
    {"run": _profiler.run, "stop": _profiler.halt}[state]()


def start() -> None:
    """`set_state('run')`."""
    set_state("run")


def stop() -> None:
    """`set_state('stop')`."""
    set_state("stop")


def state() -> str:
    """'run' or 'stop'; paused is still 'run'."""
    return _profiler.state


def pause(profile_process: str = "worker") -> None:
    """Record nothing until `resume`; what was started is waited for and recorded. Nothing where it does not run."""
    check_process(profile_process, "pause")
    with _profiler.lock:
        if _profiler.state == "run" and not _profiler.is_paused:
            _core.settle()
            _profiler.is_paused = True
            RECORDER.close()


def resume(profile_process: str = "worker") -> None:
    """Go on after `pause`."""
    check_process(profile_process, "resume")
    with _profiler.lock:
        if _profiler.state == "run" and _profiler.is_paused:
            _core.flush()
            _profiler.is_paused = False
            RECORDER.open()


def dump(finished: bool = True, profile_process: str = "worker") -> None:
    """Write the record to the configured file, as trace events; `finished` also stops.

    The file is replaced as a whole. It holds the newest events; `otherData.dropped` says how many older ones were
    dropped. Raises MXNetError where the profiler has never run.
    """
    check_process(profile_process, "dump")
    if not _profiler.has_run:
        raise MXNetError("dump: the profiler has not run\nhint: call mxnp.profiler.set_state('run') first")
    if finished:
        _profiler.halt()
        _profiler.is_finished = True
    elif _profiler.state == "run":
        _core.settle()
    _profiler.write()


def dumps(reset: bool = False, format: str = "table", sort_by: str = "total", ascending: bool = False) -> str:
    """The totals of all recorded since the start or the last `reset`, as a table or as JSON. '' where there are none.

    Parameters
    ----------
    reset : begin new totals.
    format : 'table', or 'json'.
    sort_by : 'total', 'avg', 'min', 'max' or 'count'.
    ascending : the least first.

    >>> mx.profiler.dumps(format="json", sort_by="count", reset=True)[0]
    '{'
    """
    if format not in ("table", "json"):
        raise MXNetAssertionError(f"dumps: format is 'table' or 'json', got {format!r}")
    if sort_by not in _table.SORTS:
        raise MXNetAssertionError(f"dumps: sort_by is one of {', '.join(_table.SORTS)}, got {sort_by!r}")
    if _profiler.state == "run" and not _profiler.is_paused:
        _core.settle()
    hidden = _hidden(_profiler.config)
    totals = {key: total for key, total in RECORDER.totals().items() if key[0] not in hidden}
    if reset:
        RECORDER.clear_totals()
    if format == "json":
        return _table.as_json(totals, _profiler.counters, sort_by, ascending)
    return _table.as_table(totals, _profiler.counters, sort_by, ascending) if totals else ""


def _hidden(config: Config) -> set[str]:
    """The categories that the settings leave out."""
    if config.profile_all:
        return set()
    shown = {
        "operator": config.profile_imperative or config.profile_symbolic,
        "segment": config.profile_imperative or config.profile_symbolic,
        "memory": config.profile_memory,
        "api": config.profile_api,
    }
    return {category for category, is_shown in shown.items() if not is_shown}


class MXNetAssertionError(MXNetError, AssertionError):
    """An argument for which MXNet raises AssertionError."""


_scope: contextvars.ContextVar[str] = contextvars.ContextVar("mxnp_profiler_scope", default="<unk>:")


@contextlib.contextmanager
def scope(name: str = "<unk>:", append_mode: bool = True) -> Iterator[None]:
    """A with-block whose time is shown under `name`; inside another scope its name comes first, with `append_mode`.

    >>> with mx.profiler.scope("encoder"):
    ...     y = np.ones(3) + 1
    """
    name = name if name.endswith(":") else f"{name}:"
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
        return self.name

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
        return self.name

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
        return self.name

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
        category = str(self.domain)
        _profiler.counters.add((category, self.name))
        now = _core.record_now()
        RECORDER.note("counter", category, self.name, now, now, amount)


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


def set_kvstore_handle(handle: Any) -> None:
    """Accepted: MXNet's way to reach the profilers of servers, of which there are none."""


def profiler_set_config(mode: str = "symbolic", filename: str = "profile.json") -> None:
    """1.x's older name of `set_config`; `mode` is 'symbolic', 'imperative', 'api', 'memory' or 'all'."""
    _warn("profiler_set_config", "set_config")
    set_config(**{f"profile_{mode}": True, "filename": filename})


def profiler_set_state(state: str = "stop") -> None:
    """1.x's older name of `set_state`."""
    _warn("profiler_set_state", "set_state")
    set_state(state)


def dump_profile() -> None:
    """1.x's older name of `dump`."""
    _warn("dump_profile", "dump")
    dump()


def _warn(old: str, new: str) -> None:
    warnings.warn(f"profiler.{old} is an older name: use profiler.{new}", stacklevel=3)


def _finish() -> None:
    """At exit, what still runs is written."""
    if _profiler.state == "run":
        dump()


def _start_by_environment() -> None:
    """MXNET_PROFILER_AUTOSTART=1 records from the import to the exit; whatever MXNET_PROFILER_MODE is, all of it."""
    if os.environ.get("MXNET_PROFILER_AUTOSTART", "0").strip() == "1":
        start()


atexit.register(_finish)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_profiler.forget_parent)
