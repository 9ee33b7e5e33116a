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
import multiprocessing
import os
import threading
import warnings
from typing import Any

from . import _core
from ._profile import table as _table
from ._profile import trace as _trace
from ._profile.config import Config, check_process
from ._profile.marks import Counter, Domain, Event, Frame, Marker, Task, scope
from ._profile.recorder import RECORDER
from .error import MXNetError

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
        raise AssertionError(f"dumps: format is 'table' or 'json', got {format!r}")
    if sort_by not in _table.SORTS:
        raise AssertionError(f"dumps: sort_by is one of {', '.join(_table.SORTS)}, got {sort_by!r}")
    if _profiler.state == "run" and not _profiler.is_paused:
        _core.settle()
    hidden = _hidden(_profiler.config)
    totals = {key: total for key, total in RECORDER.totals().items() if key[0] not in hidden}
    if reset:
        RECORDER.clear_totals()
    if format == "json":
        return _table.as_json(totals, RECORDER.counters(), sort_by, ascending)
    return _table.as_table(totals, RECORDER.counters(), sort_by, ascending) if totals else ""


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
    if os.environ.get("MXNET_PROFILER_AUTOSTART", "0").strip() != "1":
        return
    # A process that multiprocessing has started would write its file over its parent's.
    if multiprocessing.current_process().name == "MainProcess":
        start()


atexit.register(_finish)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_profiler.forget_parent)
