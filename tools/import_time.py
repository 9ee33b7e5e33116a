"""What `import mxnp` costs beyond NumPy's own import, in fresh interpreters; the medians of several runs."""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys

PROGRAM = """
import time
start = time.perf_counter()
import numpy
middle = time.perf_counter()
import mxnp
print(middle - start, time.perf_counter() - middle)
"""


def measure(runs: int) -> tuple[float, float]:
    """Median seconds of importing numpy, and of importing mxnp after it."""
    rows = []
    for run in range(runs + 1):
        command = [sys.executable, "-W", "error", "-c", PROGRAM]
        answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        if run:  # the first one fills the caches
            rows.append([float(word) for word in answer.split()])
    numpy_time, mxnp_time = (statistics.median(column) for column in zip(*rows, strict=True))
    return numpy_time, mxnp_time


def main() -> None:
    """Print both, in milliseconds; with --profile also which modules take the time."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--profile", action="store_true", help="the slowest modules, by their own time")
    args = parser.parse_args()
    numpy_time, mxnp_time = measure(args.runs)
    print(f"import numpy: {numpy_time * 1e3:.1f} ms; import mxnp after it: {mxnp_time * 1e3:.1f} ms")
    if args.profile:
        command = [sys.executable, "-X", "importtime", "-c", "import numpy, mxnp"]
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stderr.splitlines()
        rows = [line.removeprefix("import time:").split("|") for line in lines[1:]]
        # Modules in order of their end: what comes after numpy's own line belongs to mxnp.
        first = 1 + next(i for i, row in enumerate(rows) if row[2].strip() == "numpy")
        for own, _, name in sorted(rows[first:], key=lambda row: -int(row[0]))[:15]:
            print(f"  {int(own) / 1e3:7.2f} ms  {name.strip()}")


if __name__ == "__main__":
    main()
