"""What ran for a call of a function: its groups of fused ops, their bytes and times, as a table and as plain data.

Knows the records of `_core.Log`, and neither ops nor blocks.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from typing import Any

from . import _core
from ._explain_text import as_html, as_text

# More than any function worth reading about; what is beyond it is counted.
_CAPACITY = 1 << 18
_WAITS = ("wait_to_read", "wait_to_write", "waitall", "throttle")


def run(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Explanation:
    """Call `fn` with a log open, wait for what it computed, and explain it."""
    log = _core.Log(_CAPACITY)
    thread = _core.record_thread(threading.current_thread().name)
    _core.settle()
    memory = _core.memory_stats()
    log.open()
    try:
        start = _core.record_now()
        result = fn(*args, **kwargs)
        returned = _core.record_now()
        for array in _arrays(result):
            array.wait_to_read()
        _core.settle()
        end = _core.record_now()
    finally:
        log.close()
    after = _core.memory_stats()
    buffers = {key: after[key] - memory[key] for key in ("allocations", "hits")}
    events, dropped = log.events()
    name = getattr(fn, "__qualname__", None) or type(fn).__name__
    return Explanation(name, result, events, dropped, buffers, thread, (start, returned, end))


def _arrays(result: Any) -> Iterator[Any]:
    """The arrays in what a function gave, which may be nested deeply and contain itself."""
    left, seen = [result], set()
    while left:
        each = left.pop()
        if isinstance(each, _core.ndarray):
            yield each
        elif isinstance(each, (list, tuple, dict)) and id(each) not in seen:
            seen.add(id(each))
            left.extend(reversed(each.values() if isinstance(each, dict) else each))


class Explanation:
    """What ran while a function did; printed, a table. `mxnp.engine.explain` makes it.

    Attributes
    ----------
    name : the function's.
    result : what it gave.
    records : one dict for each pass and kernel that ran, in the order in which they ended: `flush` (the number of its
        flush here), `kind` ('pass': steps over tiles of memory, or 'kernel'), `label`, `ops`, `calls` (for each op
        the call of the program that it comes from, such as softmax), `shape`, `elements`, `reads` and `writes`
        (dtype, shape and bytes of each array), `bytes_read`, `bytes_written`, `bytes_reused` (of results in the
        memory of arrays that were not needed any more), `flops` (of products, else None), `queued`, `start`, `end`,
        `seconds` (of the run), `thread` (a name), `ran` ('inline': while it was flushed, 'worker', or 'waiting': on
        a thread of the program that waited), `threads` (how many took part), `cached` (whether the plan was),
        `outcome` ('done', 'failed' or 'skipped') and `error`.
    flushes : one dict for each list of calls that went to the engine together: `calls` (names), `dead` (names of those
        whose results nobody could see), `merged` (of copies that the kernel before made needless), `units` (how many
        passes and kernels), `cached`, `thread`, `start`, `end`, `bytes_unfused`.
    groups : records that do the same, together: `label`, `kind`, `ops`, `calls`, `shape`, `elements`, `dtype`, `count`,
        `bytes_read`, `bytes_written`, `bytes_reused`, `flops` and `seconds` (sums over the `count`), `ran` (as of
        records, the outcome where it is not 'done', or 'mixed') and `threads` (the most).
    totals : `calls`, `flushes`, `passes`, `kernels`, `dead`, `merged`, `bytes_read`, `bytes_written`, `bytes_reused`,
        `bytes_unfused` (had each call run by itself), `buffers` and `buffers_from_pool`, `failed`, `skipped`,
        `dropped` (events beyond what is kept) and the `times`.
    times : seconds: `total`, made of the calling thread's `python`, `planning`, `running` and `waiting`; and `busy`,
        how long something ran on any thread.

    Times count from the function's start, in seconds.
    """

    def __init__(
        self,
        name: str,
        result: Any,
        events: list[dict[str, Any]],
        dropped: int,
        buffers: dict[str, int],
        thread: int,
        span: tuple[int, int, int],
    ) -> None:
        self.name = name
        self.result = result
        self._start = span[0]
        self._threads = _core.record_threads()
        ended = {event["flush"]: event for event in events if event["kind"] == "flush"}
        numbers = {flush: number for number, flush in enumerate(sorted(ended))}
        self.flushes = [self._flush(ended[flush]) for flush in numbers]
        units = [event for event in events if event["kind"] == "unit"]
        self.records = [self._record(unit, ended.get(unit["flush"]), numbers) for unit in units]
        self.groups = _grouped(self.records)
        self.times = _times(events, thread, span)
        self.totals = self._totals(dropped, buffers)

    def _seconds(self, time: int) -> float:
        return (time - self._start) / 1e9

    def _flush(self, event: dict[str, Any]) -> dict[str, Any]:
        plan = event["plan"]
        return {
            "calls": plan["calls"],
            "dead": [plan["calls"][number] for number in plan["dead"]],
            "merged": [plan["calls"][number] for number in plan["merged"]],
            "units": len(plan["units"]),
            "cached": event["cached"],
            "thread": self._threads[event["thread"]],
            "start": self._seconds(event["start"]),
            "end": self._seconds(event["end"]),
            "bytes_unfused": plan["unfused"],
        }

    def _record(
        self, event: dict[str, Any], flush: dict[str, Any] | None, numbers: dict[int, int]
    ) -> dict[str, Any]:
        plan = event["plan"]
        unit = plan["units"][event["unit"]]
        thread = self._threads[event["thread"]]
        is_here = flush is not None and flush["thread"] == event["thread"]
        is_inline = is_here and flush is not None and event["start"] < flush["end"]
        is_worker = thread.startswith("mxnp-worker")
        takers = {share[1] for share in event["shares"]}
        return {
            "flush": numbers.get(event["flush"]),
            "kind": unit["kind"],
            "label": unit["label"],
            "ops": unit["ops"],
            "calls": [plan["calls"][number] for number in unit["calls"]],
            "shape": unit["shape"],
            "elements": math.prod(unit["shape"]),
            "reads": unit["reads"],
            "writes": unit["writes"],
            "bytes_read": _bytes(unit["reads"]),
            "bytes_written": _bytes(unit["writes"]),
            "bytes_reused": sum(unit["writes"][number][2] for number in unit["reuses"]),
            "flops": None if unit["products"] is None else 2 * unit["products"],
            "queued": self._seconds(event["queued"]),
            "start": self._seconds(event["start"]),
            "end": self._seconds(event["end"]),
            "seconds": (event["end"] - event["start"]) / 1e9,
            "thread": thread,
            "ran": "inline" if is_inline else "worker" if is_worker else "waiting",
            "threads": len(takers | {event["thread"]}),
            "cached": None if flush is None else flush["cached"],
            "outcome": event["outcome"],
            "error": event["error"],
        }

    def _totals(self, dropped: int, buffers: dict[str, int]) -> dict[str, Any]:
        def summed(key: str) -> int:
            return sum(record[key] for record in self.records if record["outcome"] == "done")

        kinds = [record["kind"] for record in self.records]
        outcomes = [record["outcome"] for record in self.records]
        return {
            "calls": sum(len(flush["calls"]) for flush in self.flushes),
            "flushes": len(self.flushes),
            "passes": kinds.count("pass"),
            "kernels": kinds.count("kernel"),
            "dead": sum(len(flush["dead"]) for flush in self.flushes),
            "merged": sum(len(flush["merged"]) for flush in self.flushes),
            "bytes_read": summed("bytes_read"),
            "bytes_written": summed("bytes_written"),
            "bytes_reused": summed("bytes_reused"),
            "bytes_unfused": sum(flush["bytes_unfused"] for flush in self.flushes),
            "buffers": buffers["allocations"],
            "buffers_from_pool": buffers["hits"],
            "failed": outcomes.count("failed"),
            "skipped": outcomes.count("skipped"),
            "dropped": dropped,
            "times": self.times,
        }

    def to_dict(self) -> dict[str, Any]:
        """All but the result, as data that `json.dumps` takes."""
        return {
            "name": self.name,
            "totals": self.totals,
            "groups": self.groups,
            "flushes": self.flushes,
            "records": self.records,
        }

    def __repr__(self) -> str:
        return as_text(self.to_dict())

    def _repr_html_(self) -> str:
        return as_html(self.to_dict())

    def plot(self, axes: Any = None) -> Any:
        """Draw when each group ran, with a row for each thread, on matplotlib's `axes` or new ones; gives them."""
        if axes is None:
            from matplotlib import pyplot

            axes = pyplot.figure(figsize=(10, 3)).subplots()
        rows = {name: row for row, name in enumerate(dict.fromkeys(r["thread"] for r in self.records))}
        for number, label in enumerate(dict.fromkeys(record["label"] for record in self.records)):
            for row, name in enumerate(rows):
                own = [r for r in self.records if (r["label"], r["thread"]) == (label, name)]
                spans = [(record["start"] * 1e3, record["seconds"] * 1e3) for record in own]
                axes.broken_barh(
                    spans, (row - 0.4, 0.8), color=f"C{number % 10}", label=None if row else label
                )
        axes.set_yticks(list(rows.values()), list(rows))
        axes.set_xlabel("ms")
        if self.records:
            axes.legend(fontsize="small")
        return axes


def _grouped(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Records that do the same, summed, in the order of the first of each."""
    groups: dict[Any, dict[str, Any]] = {}
    for record in records:
        dtypes = dict.fromkeys(dtype for dtype, _, _ in (*record["writes"], *record["reads"]))
        key = (record["label"], tuple(record["ops"]), record["shape"], tuple(dtypes))
        ran = record["ran"] if record["outcome"] == "done" else record["outcome"]
        group = groups.get(key)
        if group is None:
            copied = ("label", "kind", "ops", "calls", "shape", "elements")
            group = groups[key] = {name: record[name] for name in copied}
            group |= {"dtype": "/".join(dtypes), "count": 0, "bytes_read": 0, "bytes_written": 0}
            group |= {"bytes_reused": 0, "flops": None, "seconds": 0.0, "ran": ran, "threads": 1}
        group["count"] += 1
        for name in ("bytes_read", "bytes_written", "bytes_reused", "seconds"):
            group[name] += record[name]
        if record["flops"] is not None:
            group["flops"] = (group["flops"] or 0) + record["flops"]
        group["threads"] = max(group["threads"], record["threads"])
        if group["ran"] != ran:
            group["ran"] = "mixed"
    return list(groups.values())


def _times(events: list[dict[str, Any]], thread: int, span: tuple[int, int, int]) -> dict[str, float]:
    """Where the time of the calling thread went; what it ran inside a wait counts as running."""
    start, returned, end = span

    def covered(some: list[dict[str, Any]]) -> int:
        return _covered([(event["start"], event["end"]) for event in some], start, end)

    own = [event for event in events if event["thread"] == thread]
    waits = [e for e in own if e["kind"] == "span" and e["name"] in _WAITS]
    running = covered([e for e in own if e["kind"] == "unit"])
    planned = covered([e for e in own if e["kind"] in ("unit", "flush")])
    known = covered([*waits, *(e for e in own if e["kind"] != "span"), {"start": returned, "end": end}])
    return {
        "total": (end - start) / 1e9,
        "python": (end - start - known) / 1e9,
        "planning": (planned - running) / 1e9,
        "running": running / 1e9,
        "waiting": (known - planned) / 1e9,
        "busy": covered([event for event in events if event["kind"] == "unit"]) / 1e9,
    }


def _covered(intervals: list[tuple[int, int]], start: int, end: int) -> int:
    """How much of start..end the intervals cover together."""
    covered, at = 0, start
    for first, last in sorted(intervals):
        first, last = max(first, at), min(last, end)
        if last > first:
            covered += last - first
            at = last
    return covered


def _bytes(operands: list[tuple[str, tuple[int, ...], int]]) -> int:
    return sum(size for _, _, size in operands)
