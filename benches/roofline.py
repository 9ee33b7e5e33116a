"""What the machine can do, and each row's share of it: on 1 and 2 threads, kept in benches/results/roofline.md.

    python benches/roofline.py                         measures the machine by `cargo run --example roofline`
    python benches/roofline.py --native PROGRAM        ... by that example, built before
    python benches/roofline.py --count "chain 1e6"     instructions of one call (by valgrind), measures nothing

A row is compared with a loop that does nothing but what limits it, on arrays of the same size: `copy`, `read`, `sum` of
two arrays move bytes, and rows count those that a single pass has to move; `fma`: products count their multiplications
and additions; `arithmetic`: a chain counts the instructions of its elements by lanes, and the machine issues as many as
a loop of independent multiply-adds and additions does. In each round the machine's figure is taken beside the row's,
and a share is the median of the rounds.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from table import RESULTS, Server, machine

EXAMPLE = "cargo run --quiet --release --package mxnp-core --example roofline"
ROUNDS = 15
MATRIX = 4096 * 4096


@dataclass(frozen=True)
class Row:
    """A workload, what it is measured by on how many elements, and how much of that it needs."""

    name: str
    limit: str
    count: int
    amount: float  # GB, Gflop or 1e9 lanes


def moves(name: str, limit: str, count: int, arrays: int) -> Row:
    """A row that reads and writes so many arrays of float32."""
    return Row(name, limit, count, 4e-9 * count * arrays)


def product(name: str, m: int, n: int, k: int, count: int = 1) -> Row:
    """A row of products."""
    return Row(name, "fma", 1, 2e-9 * m * n * k * count)


# Instructions of a call with AVX2's vectors of 8 (`--count "chain 1e6"`), in 1e9 lanes: an instruction set with wider
# vectors needs as many lanes.
CHAIN = 8 * 6.06e6 / 1e9

ROWS = (
    moves("copy 4096x4096", "copy", MATRIX, 2),
    moves("broadcast add 4096x4096", "copy", MATRIX, 2),
    moves("transpose copy 4096x4096", "copy", MATRIX, 2),
    moves("add 1e7", "sum", 10**7, 3),
    moves("chain 1e7", "sum", 10**7, 4),
    moves("add 1M", "sum", 2**20, 3),
    moves("sum 4096x4096 axis None", "read", MATRIX, 1),
    moves("sum 4096x4096 axis 0", "read", MATRIX, 1),
    moves("sum 4096x4096 axis 1", "read", MATRIX, 1),
    moves("argmax 4096x4096 axis 1", "read", MATRIX, 1),
    Row("chain 1e6", "arithmetic", 1, CHAIN),
    product("matmul 64", 64, 64, 64),
    product("matmul 256", 256, 256, 256),
    product("matmul 1024", 1024, 1024, 1024),
    product("matmul 2048", 2048, 2048, 2048),
    product("matmul 96 of 128x64x128", 128, 128, 64, 96),
    product("matmul 1000 of 16", 16, 16, 16, 1000),
)
THREADS = (1, 2)
UNITS = {"copy": "GB/s", "read": "GB/s", "sum": "GB/s", "fma": "Gflop/s", "arithmetic": "G lanes/s"}


class Machine:
    """The example that measures the machine: it answers with one figure for each line, and waits."""

    def __init__(self, command: str) -> None:
        self.process = subprocess.Popen(
            command.split(), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def rate(self, row: Row, threads: int) -> float:
        """One sample of what limits a row."""
        assert self.process.stdin
        assert self.process.stdout
        print(row.limit, row.count, threads, file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())

    def close(self) -> None:
        """End it."""
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def measure(native: Machine, threads: int, names: list[str]) -> dict[str, tuple[float, float, float]]:
    """The machine's rate, a row's and its share, for every row that one of `names` is in, or all."""
    server, found = Server("mxnp", sys.executable, threads), {}
    try:
        for row in ROWS:
            if names and not any(part in row.name for part in names):
                continue
            server.ask(row.name)
            rounds = [
                (native.rate(row, threads), row.amount / server.ask("")["seconds"]) for _ in range(ROUNDS)
            ]
            limit, rate = (statistics.median(column) for column in zip(*rounds, strict=True))
            found[row.name] = (limit, rate, statistics.median(rate / limit for limit, rate in rounds))
    finally:
        server.close()
    return found


def table(found: dict[int, dict[str, tuple[float, float, float]]]) -> str:
    """Markdown."""
    about = machine()
    where = f"{about['processor']}, {about['cores']} cores"
    lines = [
        f"Measured {time.strftime('%Y-%m-%d')} on {where}, by `python benches/roofline.py`.",
        "A share is the row's rate over the machine's on as many threads, the median of the rounds.",
        "",
        "| row | limit | |" + "".join(f" machine, {n} | row | share |" for n in THREADS),
        "|---|---|---|" + "--:|--:|--:|" * len(THREADS),
    ]
    for row in ROWS:
        if row.name in found[THREADS[0]]:
            cells = [
                f"{limit:.1f} | {rate:.1f} | {share:.0%}"
                for limit, rate, share in (found[n][row.name] for n in THREADS)
            ]
            lines.append(f"| {row.name} | {row.limit} | {UNITS[row.limit]} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def instructions(name: str, few: int = 4, many: int = 14) -> float:
    """Instructions of one call on one thread: those of `many` calls less those of `few`."""
    code = (
        "import sys, workloads\nfrom library import WORKLOADS, Library\n"
        "lib = Library('mxnp')\nrun = WORKLOADS[sys.argv[1]](lib)\n"
        "for _ in range(int(sys.argv[2])): lib.wait(run())"
    )
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    environ = {**os.environ, "PYTHONPATH": path, "MXNP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    counts = []
    with tempfile.TemporaryDirectory() as folder:
        tool = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out"]
        for calls in (few, many):
            done = subprocess.run(
                [*tool, sys.executable, "-c", code, name, str(calls)],
                env=environ,
                text=True,
                check=True,
                stderr=subprocess.PIPE,
            )
            found = re.search(r"Collected : (\d+)", done.stderr)
            assert found, done.stderr
            counts.append(int(found[1]))
    return (counts[1] - counts[0]) / (many - few)


def main() -> None:
    """Measure and show."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="parts of rows' names; nothing is kept then")
    parser.add_argument("--native", default=EXAMPLE, metavar="PROGRAM")
    parser.add_argument("--file", type=Path, default=RESULTS / "roofline.md")
    parser.add_argument("--count", metavar="ROW", help="count a row's instructions")
    args = parser.parse_args()
    if args.count:
        print(f"{instructions(args.count):.0f} instructions a call of {args.count}")
        return
    native = Machine(args.native)
    found = {n: measure(native, n, args.names) for n in THREADS}
    native.close()
    if not args.names:
        args.file.parent.mkdir(parents=True, exist_ok=True)
        args.file.write_text(table(found), encoding="utf-8")
    print(table(found))


if __name__ == "__main__":
    main()
