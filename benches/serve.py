"""One library's workloads on demand: `PYTHON benches/serve.py LIBRARY`, driven by benches/table.py line by line.

Each line of its input is the name of a workload to prepare, or empty for one more sample of it; each line of its
output is JSON: what is needed for a ratio, or why there is nothing.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import workloads  # noqa: F401 - registers them
from library import WORKLOADS, Library

SAMPLE = 0.03  # seconds


def once(run: Callable[[], Any], wait: Callable[[Any], Any]) -> float:
    """Seconds of a call with its result computed."""
    start = time.perf_counter()
    wait(run())
    return (time.perf_counter() - start) / getattr(run, "calls", 1)


def sample(run: Callable[[], Any], wait: Callable[[Any], Any]) -> float:
    """The median of several calls after one that warms up."""
    once(run, wait)
    times: list[float] = []
    end = time.perf_counter() + SAMPLE
    while not times or time.perf_counter() < end:
        times.append(once(run, wait))
    return statistics.median(times)


@contextlib.contextmanager
def silent() -> Iterator[Any]:
    """Standard output for this program alone: libraries that print go to standard error."""
    own = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)
    yield own


def main() -> None:
    """Answer until the input ends."""
    with silent() as out:
        lib = Library(sys.argv[1])
        print(json.dumps({"version": lib.version}), file=out)
        run = None
        for line in map(str.strip, sys.stdin):
            answer: dict[str, Any] = {}
            try:
                if line:
                    run = None
                    gc.collect()
                    run = WORKLOADS[line](lib)
                    answer["there"] = run is not None
                    if run is not None:
                        sample(run, lib.wait)
                elif run is not None:
                    answer["seconds"] = sample(run, lib.wait)
            except Exception as error:  # noqa: BLE001 - reported in the table
                answer, run = {"error": f"{type(error).__name__}: {error}".split("\n")[0][:200]}, None
            print(json.dumps(answer), file=out)


if __name__ == "__main__":
    main()
