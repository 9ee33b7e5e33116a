"""An explanation's data as a table of words: for a terminal, and for a notebook. Knows nothing but the data."""

from __future__ import annotations

import html
import textwrap
from typing import Any

_HEADER = ["group", "shape", "dtype", "runs", "read", "written", "time", "rate", "ran"]
_LEFT = 3  # columns of words
_WORTH_A_RATE = 1 << 16  # bytes: less takes as long as its call


def _row(group: dict[str, Any]) -> list[str]:
    """A group as the cells of its row."""
    seconds, moved = group["seconds"], group["bytes_read"] + group["bytes_written"]
    if seconds <= 0 or moved < _WORTH_A_RATE:
        rate = ""
    elif group["flops"] is not None:
        rate = f"{group['flops'] / seconds / 1e9:.1f} GFLOP/s"
    else:
        rate = f"{moved / seconds / 1e9:.1f} GB/s"
    names = sorted(set(group["calls"]) - set(group["ops"]))
    ops = " + ".join(group["ops"]) + (f"  (of {', '.join(names)})" if names else "")
    ran = group["ran"] if group["threads"] == 1 else f"{group['ran']}, {group['threads']} threads"
    return [
        ops,
        "x".join(map(str, group["shape"])) or "()",
        group["dtype"],
        str(group["count"]),
        _size(group["bytes_read"]),
        _size(group["bytes_written"]),
        _time(seconds),
        rate,
        ran,
    ]


def as_text(data: dict[str, Any]) -> str:
    """The table, with what the whole came to above and below."""
    rows = [_HEADER, *(_row(group) for group in data["groups"])]
    cells = [[textwrap.wrap(text, 44, break_on_hyphens=False) or [""] for text in row] for row in rows]
    widths = [max(len(line) for row in cells for line in row[i]) for i in range(len(_HEADER))]
    lines = [_headline(data), ""]
    for number, row in enumerate(cells):
        for line in range(max(map(len, row))):
            texts = [column[line] if line < len(column) else "" for column in row]
            aligned = [
                text.ljust(width) if i < _LEFT else text.rjust(width)
                for i, (text, width) in enumerate(zip(texts, widths, strict=True))
            ]
            lines.append("  ".join(aligned).rstrip())
        if number == 0:
            lines.append("  ".join("-" * width for width in widths))
    return "\n".join([*lines, "", *_footer(data)])


def as_html(data: dict[str, Any]) -> str:
    """The same for a notebook."""

    def cells(tag: str, row: list[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(text)}</{tag}>" for text in row) + "</tr>"

    body = "".join(cells("td", _row(group)) for group in data["groups"])
    table = f"<table><thead>{cells('th', _HEADER)}</thead><tbody>{body}</tbody></table>"
    notes = "<br>".join(html.escape(line) for line in _footer(data))
    return f"<p>{html.escape(_headline(data))}</p>{table}<p>{notes}</p>"


def _headline(data: dict[str, Any]) -> str:
    totals = data["totals"]
    made = [_count(totals["passes"], "pass", "passes"), _count(totals["kernels"], "kernel")]
    flushes = _count(totals["flushes"], "flush", "flushes")
    return f"{data['name']}: {_count(totals['calls'], 'call')} became {' and '.join(made)} in {flushes}"


_PARTS = {"python": "Python", "planning": "planning", "running": "running here", "waiting": "waiting"}


def _footer(data: dict[str, Any]) -> list[str]:
    totals = data["totals"]
    times = totals["times"]
    parts = " + ".join(f"{word} {_time(times[key])}" for key, word in _PARTS.items())
    moved = totals["bytes_read"] + totals["bytes_written"]
    lines = [
        f"moved: {_size(moved)}; {_size(totals['bytes_unfused'])} had each call run by itself",
        f"buffers: {totals['buffers']}, {totals['buffers_from_pool']} of them from the pool",
        f"results in the place of operands: {_size(totals['bytes_reused'])}",
        f"time: {_time(times['total'])} = {parts}; some thread ran for {_time(times['busy'])}",
    ]
    for key, why in (("dead", "nobody could see the result"), ("merged", "written in place at once")):
        names = [name for flush in data["flushes"] for name in flush[key]]
        if names:
            lines.append(f"not run: {_tally(names)} ({why})")
    if totals["failed"] or totals["skipped"]:
        lines.append(f"failed: {totals['failed']}, skipped after a failure: {totals['skipped']}")
    if totals["dropped"]:
        lines.append(f"{totals['dropped']} older events were not kept")
    return lines


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _tally(names: list[str]) -> str:
    counted = dict.fromkeys(names, 0)
    for name in names:
        counted[name] += 1
    return ", ".join(name if count == 1 else f"{name} x {count}" for name, count in counted.items())


def _size(size: float) -> str:
    """Bytes, with powers of ten."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def _time(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.1f} us"
    return f"{seconds * 1e3:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"
