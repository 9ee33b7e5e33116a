"""Time the same workloads in mxnp, NumPy and other array libraries, and print the ratios.

    python benches/run.py                                 mxnp and NumPy, with this Python
    python benches/run.py --with torch=/env/bin/python    PyTorch too, with the Python that has it
    python benches/run.py softmax "add 4"                 only workloads whose name contains one of these

Each library runs in a process of its own, one after the other, several rounds; a figure is the best round's
median, since what else the machine does can only add time. A ratio above 1 means mxnp is faster. Workloads are in
workloads.py.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def measure(python: str, library: str, names: list[str]) -> dict[str, float]:
    """Seconds per call of each workload, in a fresh process; a workload the library lacks is absent."""
    command = [python, str(HERE / "workloads.py"), library, *names]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def merge(rounds: list[dict[str, float]]) -> dict[str, float]:
    """The best round of each workload."""
    return {name: min(times[name] for times in rounds) for name in rounds[0]}


def table(results: dict[str, dict[str, float]]) -> str:
    """One line per workload: mxnp's time, then each peer's time over it."""
    peers = [library for library in results if library != "mxnp"]
    lines = [f"{'workload':32} {'mxnp':>12}" + "".join(f" {peer + '/mxnp':>14}" for peer in peers)]
    for name, own in results["mxnp"].items():
        ratios = [results[peer][name] / own if name in results[peer] else None for peer in peers]
        cells = "".join(f" {'-' if ratio is None else f'{ratio:.2f}':>14}" for ratio in ratios)
        lines.append(f"{name:32} {own * 1e6:9.2f} us{cells}")
    return "\n".join(lines)


def main() -> None:
    """Run the rounds and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="parts of workload names")
    parser.add_argument("--with", dest="peers", action="append", default=[], metavar="LIBRARY=PYTHON")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="also write seconds per call to this file")
    args = parser.parse_args()
    pythons = {"mxnp": sys.executable, "numpy": sys.executable}
    pythons.update(peer.split("=", 1) for peer in args.peers)
    rounds: dict[str, list[dict[str, float]]] = {library: [] for library in pythons}
    for _ in range(args.rounds):
        for library, python in pythons.items():
            rounds[library].append(measure(python, library, args.names))
    results = {library: merge(times) for library, times in rounds.items()}
    if args.json:
        args.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(table(results))


if __name__ == "__main__":
    main()
