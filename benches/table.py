"""The table of speeds: mxnp against each peer, row by row, in interleaved samples; results are kept in benches/results.

    python benches/table.py --peer numpy=PYTHON --peer torch=PYTHON --peer jax=PYTHON --peer mxnet=PYTHON
    python benches/table.py --show         the table of what was measured so far

Each library is a process of its own, stopped while another one is measured: the spinning threads of one must not slow
the next. A round is one sample of each, a ratio is a peer's time over mxnp's in one round, and a figure the median of
the rounds. A run that was broken off goes on where it stopped; `--again` measures anew.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import signal
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE / "results"
THREADS = 2

ELEMENTWISE = ("add 1M", "add 1e7", "broadcast add 4096x4096", "exp 1M", "erf 1e6", "chain 1e6", "chain 1e7")
SUMS = tuple(f"sum 4096x4096 axis {axis}" for axis in (None, 0, 1))
PRODUCTS = ("matmul 64", "matmul 256")
LARGE_PRODUCTS = ("matmul 1024", "matmul 2048")
BATCHES = ("matmul 96 of 128x64x128", "matmul 1000 of 16")
MOVES = ("sort 1e6 float32", "argsort 1e6 float32", "normal 1e7", "take 1e5 rows of 64", "boolean mask 1e6")
REDUCTIONS = (*SUMS, "argmax 4096x4096 axis 1")
NORMALISATIONS = ("softmax 4096x1024", "layer norm 4096x1024")
STEPS = tuple(f"Gluon step of an MLP, 128, {way}" for way in ("eager", "compiled"))
GRADIENT, ADAM, SMALL = "gradient of a small chain", "Adam on 64 arrays of 156250", "add 4"
TURNED = "transpose copy 4096x4096"


@dataclass(frozen=True)
class Row:
    """Rows of the table with one bar: what each ratio must reach, and their geometric mean."""

    peer: str
    names: tuple[str, ...]
    bar: float
    mean: float | None = None


ROWS = (
    Row("numpy", (*ELEMENTWISE[:4], *REDUCTIONS, TURNED, *MOVES), 1.0, 2.0),
    Row("numpy", ("chain 1e7",), 3.0),
    Row("numpy", ("chain 1e6",), 2.5),
    Row("numpy", (SMALL,), 1.0),
    Row("numpy", PRODUCTS, 1.0),
    Row("numpy", LARGE_PRODUCTS, 0.95),
    Row("numpy", BATCHES, 1.5),
    Row(
        "torch",
        (
            *ELEMENTWISE,
            *REDUCTIONS,
            TURNED,
            *NORMALISATIONS,
            *PRODUCTS,
            *LARGE_PRODUCTS,
            *BATCHES,
            *MOVES,
            SMALL,
        ),
        0.95,
        1.7,
    ),
    Row("torch", (GRADIENT,), 2.0),
    Row("torch", STEPS, 1.2),
    Row("torch", (ADAM,), 1.0),
    Row("jax", ("chain 1e6", "chain 1e7", "softmax 4096x1024"), 1.0, 1.3),
    Row(
        "mxnet",
        (
            *ELEMENTWISE,
            *REDUCTIONS,
            TURNED,
            *NORMALISATIONS,
            *PRODUCTS,
            *LARGE_PRODUCTS,
            *BATCHES,
            *MOVES,
            SMALL,
            GRADIENT,
            *STEPS,
            ADAM,
        ),
        1.0,
        4.0,
    ),
)
MET = 0.97  # of a bar: what counts as met


class Server:
    """A library's process; stopped unless it is asked."""

    def __init__(self, library: str, python: str, threads: int = THREADS) -> None:
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])}
        for name in ("OMP", "OPENBLAS", "MKL", "MXNP"):
            environ[f"{name}_NUM_THREADS"] = str(threads)
        if library == "numpy":
            # It chooses its kernels itself; who sets these does so for another library's OpenBLAS.
            environ = {k: v for k, v in environ.items() if k not in {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"}}
        command = [python, "-W", "ignore", str(HERE / "serve.py"), library]
        self.library = library
        self.process = subprocess.Popen(
            command,
            env=environ,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.version = self.answer()["version"]

    def answer(self) -> dict[str, Any]:
        """One line of output; the process is stopped after it."""
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"table: the process of {self.library} ended")
        self.process.send_signal(signal.SIGSTOP)
        return json.loads(line)

    def ask(self, text: str) -> dict[str, Any]:
        """Send a line and wait for the answer."""
        self.process.send_signal(signal.SIGCONT)
        assert self.process.stdin
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        return self.answer()

    def close(self) -> None:
        """End the process."""
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()


def measure(name: str, servers: dict[str, Server], peers: list[str], rounds: int) -> dict[str, Any]:
    """Microseconds of each round by library, or why there are none."""
    found: dict[str, Any] = {}
    for library in ["mxnp", *peers]:
        answer = servers[library].ask(name)
        found[library] = answer.get("error") or ([] if answer["there"] else "has no such thing")
    running = [library for library, times in found.items() if isinstance(times, list)]
    for _ in range(rounds if "mxnp" in running and len(running) > 1 else 0):
        for library in running:
            found[library].append(round(servers[library].ask("")["seconds"] * 1e6, 3))
    return found


def machine() -> dict[str, Any]:
    """What the figures depend on, without the machine's name."""
    info = Path("/proc/cpuinfo")
    text = info.read_text(encoding="ascii") if info.exists() else ""
    names = [line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith("model name")]
    return {
        "processor": names[0] if names else platform.processor(),
        "cores": os.cpu_count(),
        "threads each": THREADS,
        "system": f"{platform.system()} {platform.machine()}",
    }


def show(stored: dict[str, Any]) -> str:
    """The table in Markdown: medians and quartiles of the ratios beside the bars, and geometric means."""
    head = [
        f"Measured {stored['date']} on {stored['machine']['processor']}, {stored['machine']['cores']} cores, "
        f"{THREADS} threads each, by `{stored['command']}`: "
        + ", ".join(f"{name} {version}" for name, version in stored["versions"].items())
        + ".",
        "",
        "A ratio is the peer's time over mxnp's: the median of the rounds and, in brackets, the quartiles.",
        "",
        "| against | row | mxnp | ratio | bar | |",
        "|---|---|--:|--:|--:|---|",
    ]
    lines, means = [], []
    for row in ROWS:
        medians = []
        for name in row.names:
            times = stored["rows"].get(name, {})
            own, its = times.get("mxnp"), times.get(row.peer)
            if not isinstance(own, list) or not isinstance(its, list) or not own:
                if isinstance(its, str) or isinstance(own, str):
                    why = own if isinstance(own, str) else its
                    lines.append(f"| {row.peer} | {name} | | | | {why} |")
                continue
            ratios = [b / a for a, b in zip(own, its, strict=True)]
            low, median, high = statistics.quantiles(ratios, n=4)
            medians.append(median)
            verdict = "met" if median >= MET * row.bar else "missed"
            lines.append(
                f"| {row.peer} | {name} | {statistics.median(own):.1f} us | {median:.2f} ({low:.2f}-{high:.2f}) "
                f"| {row.bar} | {verdict} |"
            )
        if row.mean and medians:
            mean = math.exp(statistics.fmean(map(math.log, medians)))
            verdict = "met" if mean >= MET * row.mean else "missed"
            means.append(
                f"| {row.peer} | geometric mean of {len(medians)} | | {mean:.2f} | {row.mean} | {verdict} |"
            )
    return "\n".join([*head, *lines, *means]) + "\n"


def run(stored: dict[str, Any], path: Path, pythons: dict[str, str], rounds: int, names: list[str]) -> None:
    """Measure what is missing; the file is written after each row."""
    servers = {library: Server(library, python) for library, python in pythons.items()}
    stored["versions"] |= {library: server.version for library, server in servers.items()}
    try:
        for name in dict.fromkeys(name for row in ROWS for name in row.names):
            known = stored["rows"].get(name, {})
            peers = [r.peer for r in ROWS if name in r.names and r.peer in pythons and r.peer not in known]
            if peers and (not names or any(part in name for part in names)):
                # A row is measured whole: ratios come from rounds that all its libraries took part in.
                peers = list(dict.fromkeys([*(p for p in known if p in pythons and p != "mxnp"), *peers]))
                start = time.perf_counter()
                stored["rows"][name] = measure(name, servers, peers, rounds)
                path.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
                print(f"{name}: {time.perf_counter() - start:.1f} s", file=sys.stderr)
    finally:
        for server in servers.values():
            server.close()


def main() -> None:
    """Measure and show."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="parts of rows' names")
    parser.add_argument("--peer", action="append", default=[], metavar="LIBRARY=PYTHON")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--file", type=Path, default=RESULTS / "table.json")
    parser.add_argument("--again", action="store_true", help="forget what was measured")
    parser.add_argument("--show", action="store_true", help="measure nothing")
    args = parser.parse_args()
    known = args.file.exists() and not args.again
    stored = json.loads(args.file.read_text(encoding="utf-8")) if known else {"versions": {}, "rows": {}}
    if not args.show:
        pythons = dict(peer.split("=", 1) for peer in args.peer)
        peers = dict.fromkeys([*stored["versions"], *pythons])
        flags = "".join(f" --peer {peer}=PYTHON" for peer in peers if peer != "mxnp")
        stored["date"] = time.strftime("%Y-%m-%d")
        stored["machine"], stored["command"] = machine(), f"python benches/table.py{flags}"
        args.file.parent.mkdir(parents=True, exist_ok=True)
        run(stored, args.file, {"mxnp": sys.executable, **pythons}, args.rounds, args.names)
        args.file.with_suffix(".md").write_text(show(stored), encoding="utf-8")
    print(show(stored))


if __name__ == "__main__":
    main()
