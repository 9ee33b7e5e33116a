"""What the machine can do, and each row's share of it: on 1 and 2 threads, kept in benches/results/roofline.md.

    python benches/roofline.py                         measures the machine by `cargo run --example roofline`
    python benches/roofline.py --native PROGRAM        ... by that example, built before

Bandwidths are of streams that leave the caches, so rows count the bytes that a single pass has to move; products count
their multiplications and additions.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from table import RESULTS, Server, machine

EXAMPLE = "cargo run --quiet --release --package mxnp-core --example roofline"
ROUNDS = 15
MATRIX = 4096 * 4096 * 4


@dataclass(frozen=True)
class Row:
    """A workload, what it is measured by, and how much of that it needs."""

    name: str
    limit: str
    amount: float  # GB or Gflop


ROWS = (
    Row("copy 4096x4096", "copy_gb_s", 2 * MATRIX / 1e9),
    Row("add 1e7", "copy_gb_s", 0.12),
    Row("broadcast add 4096x4096", "copy_gb_s", 2 * MATRIX / 1e9),
    Row("chain 1e7", "copy_gb_s", 0.16),
    Row("transpose copy 4096x4096", "copy_gb_s", 2 * MATRIX / 1e9),
    Row("sum 4096x4096 axis None", "read_gb_s", MATRIX / 1e9),
    Row("sum 4096x4096 axis 0", "read_gb_s", MATRIX / 1e9),
    Row("sum 4096x4096 axis 1", "read_gb_s", MATRIX / 1e9),
    Row("argmax 4096x4096 axis 1", "read_gb_s", MATRIX / 1e9),
    Row("matmul 256", "fma_gflop_s", 2 * 0.256**3),
    Row("matmul 1024", "fma_gflop_s", 2 * 1.024**3),
    Row("matmul 2048", "fma_gflop_s", 2 * 2.048**3),
    Row("matmul 96 of 128x64x128", "fma_gflop_s", 96 * 2 * 0.128 * 0.128 * 0.064),
)
THREADS = (1, 2)
UNITS = {"copy_gb_s": "GB/s", "read_gb_s": "GB/s", "fma_gflop_s": "Gflop/s"}


def native(command: str) -> dict[int, dict[str, float]]:
    """The machine's own figures by number of threads."""
    done = subprocess.run(
        [*command.split(), *map(str, THREADS)], check=True, stdout=subprocess.PIPE, text=True
    )
    lines = map(json.loads, done.stdout.splitlines())
    return {line["threads"]: {name: line[name] for name in UNITS} for line in lines}


def rates(threads: int) -> dict[str, float]:
    """What mxnp reaches in each row, the median of the rounds."""
    server, found = Server("mxnp", sys.executable, threads), {}
    try:
        for row in ROWS:
            server.ask(row.name)
            times = [server.ask("")["seconds"] for _ in range(ROUNDS)]
            found[row.name] = row.amount / statistics.median(times)
    finally:
        server.close()
    return found


def table(limits: dict[int, dict[str, float]], found: dict[int, dict[str, float]]) -> str:
    """Markdown."""
    about = machine()
    where = f"{about['processor']}, {about['cores']} cores"
    lines = [
        f"Measured {time.strftime('%Y-%m-%d')} on {where}, by `python benches/roofline.py`.",
        "A share is the row's rate over the machine's on as many threads.",
        "",
        "| the machine | 1 thread | 2 threads |",
        "|---|--:|--:|",
        *(
            f"| {name} | " + " | ".join(f"{limits[n][limit]:.1f} {UNITS[limit]}" for n in THREADS) + " |"
            for name, limit in (
                ("copy", "copy_gb_s"),
                ("read", "read_gb_s"),
                ("multiply-add, float32", "fma_gflop_s"),
            )
        ),
        "",
        "| row | 1 thread | share | 2 threads | share |",
        "|---|--:|--:|--:|--:|",
    ]
    for row in ROWS:
        cells = [
            f"{found[n][row.name]:.1f} {UNITS[row.limit]} | {found[n][row.name] / limits[n][row.limit]:.0%}"
            for n in THREADS
        ]
        lines.append(f"| {row.name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure the machine before and after the rows: the better figure counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--native", default=EXAMPLE, metavar="PROGRAM")
    parser.add_argument("--file", type=Path, default=RESULTS / "roofline.md")
    args = parser.parse_args()
    before = native(args.native)
    found = {n: rates(n) for n in THREADS}
    after = native(args.native)
    limits = {n: {name: max(before[n][name], after[n][name]) for name in UNITS} for n in THREADS}
    args.file.parent.mkdir(parents=True, exist_ok=True)
    args.file.write_text(table(limits, found), encoding="utf-8")
    print(table(limits, found))


if __name__ == "__main__":
    main()
