"""What the wheel's size is made of: by file, and inside the extension by family of ops.

The wheel itself is stripped, so families are counted over the symbols of the development build of the same
source (python/mxnp/_core.abi3.so). A symbol belongs to the first path of the form mxnp_core::ops::<family> or
mxnp_<crate>::<module> in its name, else to the crate it comes from. Needs `nm` of binutils.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import zipfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
FAMILY = re.compile(r"mxnp_core::ops::(\w+)")
MODULE = re.compile(r"(?<!:)\b(?:mxnp_(\w+)|_core)::(\w+)")
CRATE = re.compile(r"(?<!:)\b([a-z_]\w*)::")
STANDARD = {"alloc", "core", "std"}


def family(symbol: str) -> str:
    """Which part of the source a demangled symbol comes from."""
    if found := FAMILY.search(symbol):
        return f"core/ops/{found[1]}"
    if found := MODULE.search(symbol):
        return f"{found[1] or 'py'}/{found[2]}"
    crates = CRATE.findall(symbol)
    outside = [crate for crate in crates if crate not in STANDARD]
    # A generic of the standard library belongs to the crate it was made for.
    return f"crate {(outside or crates)[0]}" if crates else "other"


def by_family(library: Path) -> Counter[str]:
    """Bytes of code and data of `library` by family."""
    command = ["nm", "--demangle", "--print-size", "--defined-only", str(library)]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    sizes: Counter[str] = Counter()
    for line in listed.splitlines():
        if match := re.match(r"[0-9a-f]+ ([0-9a-f]+) [tTrRdDbBvVwWuU] (.+)", line):
            sizes[family(match[2])] += int(match[1], 16)
    return sizes


def by_file(wheel: Path) -> Counter[str]:
    """Compressed bytes of the wheel by file, Python files by top folder."""
    sizes: Counter[str] = Counter()
    with zipfile.ZipFile(wheel) as archive:
        for info in archive.infolist():
            parts = Path(info.filename).parts
            name = (
                info.filename if info.filename.endswith(".so") else "/".join(parts[: min(2, len(parts) - 1)])
            )
            sizes[name] += info.compress_size
    return sizes


def show(title: str, sizes: Counter[str], most: int) -> None:
    """Print the largest entries and the sum."""
    print(f"{title}: {sum(sizes.values()) / 1024:.0f} KiB")
    for name, size in sizes.most_common(most):
        print(f"  {size / 1024:9.1f} KiB  {name}")


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--symbols", type=Path, default=ROOT / "python/mxnp/_core.abi3.so")
    parser.add_argument("--most", type=int, default=40, help="rows of each table")
    args = parser.parse_args()
    show(f"{args.wheel.name} (compressed)", by_file(args.wheel), args.most)
    show("code and data of the extension", by_family(args.symbols), args.most)


if __name__ == "__main__":
    main()
