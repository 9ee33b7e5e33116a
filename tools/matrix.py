"""Run pytest, slow tests included, under every instruction set x engine x number of threads.

`make check-all` runs it whole; arguments are handed to pytest: `make matrix ARGS="tests/test_ops.py"`, or
`ARGS="--part 3/50"` for every fiftieth test from the third on. Combinations this processor cannot run are named,
not left out silently.
"""

from __future__ import annotations

import itertools
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
ENGINES = ("naive", "threaded")
THREADS = ("1", "2", "64")
NEEDS = {
    "baseline": set(),
    "avx2": {"avx2", "fma"},
    "avx512": {"avx512f", "avx512bw", "avx512dq", "avx512vl"},
}


def available() -> list[str]:
    """The values of MXNP_ISA that this processor can run; NEON machines have one."""
    if platform.machine() not in {"x86_64", "AMD64"}:
        return ["baseline"]
    found = re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(encoding="ascii"), re.MULTILINE)
    flags = set(found[1].split()) if found else set()
    return [isa for isa, needed in NEEDS.items() if needed <= flags]


def main() -> int:
    """Run every combination, then print one line for each; 1 when one failed."""
    isas = available()
    rows, failed = [], 0
    for isa, engine, threads in itertools.product(isas, ENGINES, THREADS):
        if engine == "naive" and threads == "64":
            continue  # the naive engine runs on the caller; threads only split its loops
        settings = {"MXNP_ISA": isa, "MXNP_ENGINE": engine, "MXNP_NUM_THREADS": threads}
        print("==", *(f"{key}={value}" for key, value in settings.items()), flush=True)
        command = [sys.executable, "-m", "pytest", "--slow", "-q", *sys.argv[1:]]
        run = subprocess.run(command, cwd=ROOT, env={**os.environ, **settings}, check=False)
        failed += run.returncode != 0
        rows.append(f"{isa:9} {engine:9} {threads:>3} threads: {'failed' if run.returncode else 'passed'}")
    rows += [f"{isa:9} not on this processor" for isa in NEEDS if isa not in isas]
    print("\n".join(rows))
    print(f"{len(rows) - failed - len(NEEDS) + len(isas)} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
