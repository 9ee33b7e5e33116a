"""A record as a file of trace events, for ui.perfetto.dev and chrome://tracing.

The format is Google's "Trace Event Format" (2016): objects with a phase `ph`, microseconds `ts`, a process `pid` and a
thread `tid`. Here a process is a level, so that each level is a group of rows; a thread is a thread.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from itertools import chain
from operator import itemgetter
from os import PathLike
from typing import Any, NamedTuple

from mxnp import _core, libinfo
from mxnp._files.atomic import atomic_write

from .recorder import Mark, Recorder

PYTHON, SEGMENTS, ENGINE, KERNELS = 1, 2, 3, 4
_LEVELS = {PYTHON: "Python", SEGMENTS: "segments", ENGINE: "engine", KERNELS: "kernels"}
# How many names of calls an event lists.
_NAMED = 64
_REACH = {"global": "g", "process": "p", "thread": "t", "task": "t", "marker": "t"}


_Event = dict[str, Any]


class Shown(NamedTuple):
    """Which parts of a record are written."""

    operators: bool = True
    memory: bool = True
    api: bool = True


def write(recorder: Recorder, filename: str | PathLike[str], shown: Shown) -> None:
    """Write the record, replacing the file as a whole."""
    encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
    events, dropped = recorder.log.events()
    marks, more = recorder.marks()
    # A full record makes some hundred thousand events: they are kept as text.
    rows, lines = set(), []
    for event in chain(_of_core(events, shown), _of_python(marks, shown)):
        rows.add((event["pid"], event["tid"]))
        lines.append((event["ts"], encode(event)))
    lines.sort(key=itemgetter(0))
    rest = {"producer": f"mxnp {libinfo.__version__}", "dropped": dropped + more}
    with atomic_write(filename) as stream:
        stream.write(b'{"traceEvents":[')
        texts = chain((encode(name) for name in _names(sorted(rows))), (text for _, text in lines))
        for number, text in enumerate(texts):
            stream.write((",\n" if number else "\n").encode() + text.encode())
        stream.write(f'\n],"displayTimeUnit":"ms","otherData":{encode(rest)}}}\n'.encode())


def _names(rows: list[tuple[int, int]]) -> Iterator[_Event]:
    threads = _core.record_threads()
    for pid in sorted({pid for pid, _ in rows}):
        yield {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": _LEVELS[pid]}}
        yield {"ph": "M", "pid": pid, "name": "process_sort_index", "args": {"sort_index": pid}}
    for pid, tid in rows:
        yield {"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": threads[tid]}}


def _event(ph: str, level: int, category: str, name: str, thread: int, time: int, **rest: Any) -> _Event:
    return {"name": name, "cat": category, "ph": ph, "ts": time / 1000, "pid": level, "tid": thread, **rest}


def _complete(
    level: int, category: str, name: str, thread: int, start: int, end: int, args: dict[str, Any]
) -> _Event:
    return _event("X", level, category, name, thread, start, dur=(end - start) / 1000, args=args)


def _pair(
    level: int, category: str, name: str, thread: int, start: int, end: int, key: str
) -> Iterator[_Event]:
    """What need not nest in its thread."""
    yield _event("b", level, category, name, thread, start, id=key)
    yield _event("e", level, category, name, thread, end, id=key)


def _of_python(marks: list[Mark], shown: Shown) -> Iterator[_Event]:
    for number, mark in enumerate(marks):
        at = (PYTHON, mark.category, mark.name, mark.thread)
        if mark.kind == "span":
            if shown.api or mark.category != "api":
                yield _complete(*at, mark.start, mark.end, mark.value or {})
        elif mark.kind == "async":
            yield from _pair(*at, mark.start, mark.end, f"m{number}")
        elif mark.kind == "counter":
            value = mark.value if math.isfinite(mark.value) else str(mark.value)
            yield _event("C", *at, mark.start, args={mark.name: value})
        else:
            yield _event("i", *at, mark.start, s=_REACH[mark.value])


def _of_core(events: list[dict[str, Any]], shown: Shown) -> Iterator[_Event]:
    levels = {"memory": -1, "queue": -1}
    for event in events:
        if event["kind"] == "span":
            if shown.api:
                yield _complete(
                    PYTHON, "api", event["name"], event["thread"], event["start"], event["end"], {}
                )
        elif shown.operators:
            yield from _flush(event) if event["kind"] == "flush" else _unit(event)
        if event["kind"] == "unit":
            found = {"queue": event["unfinished"]} | ({"memory": event["live"]} if shown.memory else {})
            for name, value in found.items():
                if levels[name] != value:
                    levels[name] = value
                    unit = "bytes" if name == "memory" else "tasks"
                    yield _event(
                        "C", ENGINE, "counter", name, event["thread"], event["end"], args={unit: value}
                    )


def _flush(event: dict[str, Any]) -> Iterator[_Event]:
    plan = event["plan"]
    kinds = [unit["kind"] for unit in plan["units"]]
    args = {
        "flush": event["flush"],
        "calls": _some(plan["calls"]),
        "passes": kinds.count("pass"),
        "kernels": kinds.count("kernel"),
        "dead": _some([plan["calls"][number] for number in plan["dead"]]),
        "merged": _some([plan["calls"][number] for number in plan["merged"]]),
        "bytes_unfused": plan["unfused"],
        "plan": "cached" if event["cached"] else "made",
    }
    name = f"flush of {len(plan['calls'])}"
    yield _complete(SEGMENTS, "segment", name, event["thread"], event["start"], event["end"], args)


def _unit(event: dict[str, Any]) -> Iterator[_Event]:
    unit = event["plan"]["units"][event["unit"]]
    name, thread, start, end = unit["label"], event["thread"], event["start"], event["end"]
    if event["outcome"] == "skipped":
        yield _event("i", ENGINE, "skipped", name, thread, start, s="t", args={"flush": event["flush"]})
        return
    key = f"{event['flush']}.{event['unit']}"
    queued = (start - event["queued"]) / 1000
    args = {"flush": event["flush"], "kind": unit["kind"], "queued_us": queued, "outcome": event["outcome"]}
    if event["error"] is not None:
        args["error"] = event["error"]
    yield from _pair(ENGINE, "queue", name, thread, event["queued"], start, key)
    yield _complete(ENGINE, "task", name, thread, start, end, args)
    moved = sum(size for _, _, size in (*unit["reads"], *unit["writes"]))
    details = {
        "ops": _some(unit["ops"]),
        "shape": list(unit["shape"]),
        "reads": [_operand(each) for each in unit["reads"]],
        "writes": [_operand(each) for each in unit["writes"]],
        "bytes": moved,
        "bytes_reused": sum(unit["writes"][number][2] for number in unit["reuses"]),
        "flush": event["flush"],
    }
    if end > start:
        details["GB/s"] = round(moved / (end - start), 3)
        if unit["products"] is not None:
            details["GFLOP/s"] = round(2 * unit["products"] / (end - start), 3)
    yield _complete(KERNELS, "operator", name, thread, start, end, details)
    for run, other, first, last, chunks in event["shares"]:
        if other != thread:
            part = {"loop": run, "chunks": chunks, "flush": event["flush"]}
            yield _complete(KERNELS, "operator", name, other, first, last, part)


def _operand(operand: tuple[str, tuple[int, ...], int]) -> str:
    dtype, shape, _ = operand
    return f"{dtype}[{','.join(map(str, shape))}]"


def _some(names: list[str]) -> list[str]:
    return names if len(names) <= _NAMED else [*names[:_NAMED], f"{len(names) - _NAMED} more"]
