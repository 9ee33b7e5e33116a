"""Check the machine code of kernels that are compiled for an instruction set: that they use it.

    python tools/check_vectors.py [LIBRARY]

Three things give the right numbers at a fraction of the speed, so that no other test sees them. A body or closure that
is not inlined into a function with `#[target_feature]` stays a call, and runs baseline code. A loop that the compiler
could not make vectors of runs on single elements. One that it unrolled too early gathers its vectors element by
element. Which of these happens depends on the build, so the library that is looked at is the one that users get
(default: the extension in python/mxnp). Needs binutils; there is nothing to check but on x86-64 Linux.
"""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

EXTENSION = Path(__file__).parent.parent / "python" / "mxnp" / "_core.abi3.so"

# What a kernel may call, and why.
CALLED = {
    r"^core::panicking|^core::slice::index|unwrap_failed|panic": "what fails ends there",
    r"@plt$|^mem(cpy|set|move|cmp)|^(fmod|pow|exp|log|sin|cos|tan|atan|erf)": "the C library's",
    r"::rare$": "elements that the vector loop gets wrong, one by one",
    r"isa::detect$": "the set, found once",
    r"select::partition_at_index$|Best<K>::shrink$": "comparisons of one element after the other",
    r"^half::": "conversions from float64, of scalars",
}
# Functions that work element by element, and why.
PLAIN = {
    r"nn_pool::plane::(sum|totals|narrowed|quotients)::": "of integers or halves",
    r"nn_dense::product_loop::|random::same_loop::|optim::update_loop::": "of integers or halves",
    r"network::sorter::|index::search::searcher::": "gives a function",
}
# How many of a generic function's versions have no vector, and why.
FEW = {
    "kernel::step::binary_of::avx2": (2, "fmod is the C library's"),
    "kernel::step::cast_of::avx2": (
        4,
        "no instruction makes floats of int64; what stays the same is moved whole",
    ),
    "kernel::step::unary_of": (2, "whether integers are finite is filled in"),
}
HEAD = re.compile(r"^[0-9a-f]+ <(.*)>:$")
KERNEL = re.compile(r"::avx(2|512)$")
CALL = re.compile(r"\bcall\s+\S+ <(.*)>$")
WIDE = re.compile(r"%[yz]mm|^vcvt\w+[yz]\b")
SINGLE = re.compile(r"v(add|sub|mul|div|sqrt|max|min|fn?m(add|sub)\d+)s[sd]$")
# AVX2 has no instruction that makes int64 of floats.
CONVERSION = re.compile(r"vcvtt?s[sd]2u?si")
SCATTERED = re.compile(r"v(p?gather|p?scatter)")
NO_VECTOR = "uses no vector of its set"


@dataclass
class Body:
    """What the machine code of one function holds: how many instructions of which kind, and what it calls."""

    name: str
    wide: int = 0
    single: int = 0
    scattered: int = 0
    calls: set[str] = field(default_factory=set)

    def add(self, line: str) -> None:
        """Count one line of the listing."""
        code = line.partition("\t")[2]
        operation = code.partition(" ")[0].strip()
        self.wide += WIDE.search(code) is not None
        self.single += SINGLE.match(operation) is not None
        self.single += "avx512" in self.name and CONVERSION.match(operation) is not None
        self.scattered += SCATTERED.match(operation) is not None
        if call := CALL.search(code):
            self.calls.add(call[1])

    def faults(self) -> Iterator[str]:
        """What is wrong with it."""
        plain = listed(self.name, PLAIN)
        if not self.wide and not plain:
            yield f"{self.name} {NO_VECTOR}"
        elif self.single > self.wide and not plain:
            yield f"{self.name} works on single elements"
        if self.scattered and "::step::" in self.name:
            yield f"{self.name} gathers elements that lie side by side"
        for call in sorted(self.calls):
            if not listed(call, CALLED):
                yield f"{self.name} calls {call}, which is baseline code"


def listed(name: str, table: dict[str, str]) -> bool:
    """Whether a pattern of the table names it."""
    return any(re.search(pattern, name) for pattern in table)


def bodies(listing: Iterable[str]) -> list[Body]:
    """The functions that are compiled for a set, in what `objdump -dC` prints."""
    found: list[Body] = []
    body = None
    for line in listing:
        if head := HEAD.match(line.rstrip()):
            body = Body(head[1]) if KERNEL.search(head[1]) else None
            if body is not None:
                found.append(body)
        elif body is not None:
            body.add(line.rstrip())
    return found


def main() -> None:
    """Report what is wrong with the library named on the command line."""
    library = Path(sys.argv[1]) if len(sys.argv) > 1 else EXTENSION
    if platform.machine() != "x86_64" or sys.platform != "linux" or shutil.which("objdump") is None:
        print("nothing checked: needs objdump, x86-64 and Linux")
        return
    command = ["objdump", "-dC", "--no-show-raw-insn", str(library)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = bodies(process.stdout)
    if process.returncode:
        raise SystemExit(f"objdump failed on {library}")
    if not found:
        raise SystemExit(
            f"{library} has no function compiled for AVX2 or AVX-512: stripped, or another machine's"
        )
    wrong = Counter(fault for body in found for fault in body.faults())
    for name, (most, _) in FEW.items():
        for fault in [f for f in wrong if name in f and f.endswith(NO_VECTOR) and wrong[f] <= most]:
            del wrong[fault]
    for text, count in sorted(wrong.items()):
        print(f"{text} ({count} times)" if count > 1 else text)
    if wrong:
        raise SystemExit(
            "hint: #[inline(always)] on the body and all it calls; closures as macros; see kernel/step.rs"
        )
    print(f"{len(found)} functions for AVX2 and AVX-512 use them")


if __name__ == "__main__":
    main()
