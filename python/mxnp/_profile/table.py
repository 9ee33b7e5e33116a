"""Totals by name, as MXNet's table and JSON: times in milliseconds, memory in thousands of bytes."""

from __future__ import annotations

import json
import math
from typing import Any

from .recorder import Total

SORTS = ("total", "avg", "min", "max", "count")
_NOTE = "\tTimes are in ms, memory in kB; a pass that several ops became is one row with their names."
_MEMORY = "Memory: cpu/0"  # MXNet's name of it

Totals = dict[tuple[str, str], Total]


def _sections(totals: Totals, sort_by: str, ascending: bool) -> dict[str, list[tuple[str, Total]]]:
    """The rows of each category, sorted. Memory comes by itself."""

    def key(row: tuple[str, Total]) -> float:
        total = row[1]
        found = {"total": total.sum, "avg": total.sum / total.count, "min": total.min, "max": total.max}
        return found.get(sort_by, total.count)

    sections: dict[str, list[tuple[str, Total]]] = {}
    for (category, name), total in totals.items():
        sections.setdefault(category, []).append((name, total))
    return {
        category: sorted(sections[category], key=key, reverse=not ascending) for category in sorted(sections)
    }


def as_table(totals: Totals, counters: set[tuple[str, str]], sort_by: str, ascending: bool) -> str:
    """The table; a counter's values have no unit."""
    lines = ["", "Profile Statistics:", _NOTE]
    for category, rows in _sections(totals, sort_by, ascending).items():
        if category == "memory":
            title, names = (
                "Device Storage",
                ["Total Count", "Min Use  (kB)", "Max Use  (kB)", "Avg Use  (kB)"],
            )
        else:
            title = category
            names = ["Total Count", "Time (ms)", "Min Time (ms)", "Max Time (ms)", "Avg Time (ms)"]
        width = max(25, *(len(name) for name, _ in rows))
        head = "  ".join([f"{'Name':{width}}", *(f"{name:>15}" for name in names)])
        rule = "  ".join([f"{'----':{width}}", *(f"{'-' * len(name):>15}" for name in names)])
        lines += [title, "=================", head, rule]
        for name, total in rows:
            shown = _MEMORY if category == "memory" else name
            scale = 1.0 if (category, name) in counters else 1e3 if category == "memory" else 1e6
            numbers = [total.min, total.max, total.sum / total.count]
            if category != "memory":
                numbers.insert(0, total.sum)
            cells = [f"{total.count:15d}", *(f"{number / scale:15.4f}" for number in numbers)]
            lines.append("  ".join([f"{shown:{width}}", *cells]))
        lines.append("")
    return "\n".join(lines) + "\n"


def as_json(totals: Totals, counters: set[tuple[str, str]], sort_by: str, ascending: bool) -> str:
    """`{"Time": {category: {name: {Count, Total, Min, Max, Avg}}}, "Memory": ..., "Unit": ...}`."""
    times: dict[str, Any] = {}
    memory: dict[str, Any] = {}
    for category, rows in _sections(totals, sort_by, ascending).items():
        for name, total in rows:
            if category == "memory":
                scaled = _numbers(total, 1e3)
                del scaled["Total"]
                memory.setdefault("Device Storage", {})[_MEMORY] = scaled
            else:
                scale = 1.0 if (category, name) in counters else 1e6
                times.setdefault(category, {})[name] = _numbers(total, scale)
    found = {"Time": times, "Memory": memory, "Unit": {"Time": "ms", "Memory": "kB"}}
    return json.dumps(found, indent=4, allow_nan=False)


def _numbers(total: Total, scale: float) -> dict[str, float | str]:
    found = {
        "Count": total.count,
        "Total": total.sum / scale,
        "Min": total.min / scale,
        "Max": total.max / scale,
        "Avg": total.sum / total.count / scale,
    }
    # JSON has no infinities; a counter may.
    return {name: value if math.isfinite(value) else str(value) for name, value in found.items()}
