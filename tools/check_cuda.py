"""Compile every cuda/*.cu with NVRTC for each GPU generation mxnp supports; needs the wheel, but no GPU.

Warnings fail, as do sources without an entry point. The compiler is the `nvidia-cuda-nvrtc-cu12` wheel of the
`test` extra, loaded with ctypes; where it has no build (macOS, Windows) the check says so and passes.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
# Volta to Hopper.
ARCHITECTURES = ("sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90")
OPTIONS = ("--std=c++17",)
# Volta still works but is announced to go, and no option silences that; it is no fault of a source.
OLD_TARGET = "nvrtc: warning: Architectures prior to"
ENTRY = re.compile(rb"\.(?:visible )?\.?entry (\w+)")


class NvrtcError(Exception):
    """What NVRTC answered to a call that failed."""


class Nvrtc:
    """The few calls of NVRTC's C interface that a compile check needs."""

    def __init__(self, path: Path):
        self.lib = ctypes.CDLL(str(path))
        self.lib.nvrtcGetErrorString.restype = ctypes.c_char_p

    def call(self, name: str, *args: object) -> None:
        """Call `name`; NvrtcError says what went wrong."""
        status = getattr(self.lib, name)(*args)
        if status != 0:
            raise NvrtcError(f"{name}: {self.lib.nvrtcGetErrorString(status).decode()}")

    def text(self, program: ctypes.c_void_p, what: str) -> bytes:
        """The bytes that nvrtcGet<what> gives, their size asked first."""
        size = ctypes.c_size_t()
        self.call(f"nvrtcGet{what}Size", program, ctypes.byref(size))
        data = ctypes.create_string_buffer(size.value)
        self.call(f"nvrtcGet{what}", program, data)
        return data.raw.rstrip(b"\0")

    def compile(self, source: str, name: str, arch: str) -> tuple[list[str], str, bytes]:
        """Compile to a binary for `arch`: the entry points, the compiler's log and the binary.

        NvrtcError carries the log when the source does not compile.
        """
        program = ctypes.c_void_p()
        self.call("nvrtcCreateProgram", ctypes.byref(program), source.encode(), name.encode(), 0, None, None)
        try:
            options = [option.encode() for option in (*OPTIONS, f"--gpu-architecture={arch}")]
            array = (ctypes.c_char_p * len(options))(*options)
            try:
                self.call("nvrtcCompileProgram", program, len(options), array)
            except NvrtcError as error:
                log = self.text(program, "ProgramLog").decode()
                raise NvrtcError(f"{error}\n{log}") from None
            entries = [entry.decode() for entry in ENTRY.findall(self.text(program, "PTX"))]
            lines = self.text(program, "ProgramLog").decode().splitlines()
            log = "\n".join(line for line in lines if line.strip() and not line.startswith(OLD_TARGET))
            return sorted(entries), log, self.text(program, "CUBIN")
        finally:
            self.call("nvrtcDestroyProgram", ctypes.byref(program))


def find_nvrtc() -> Path | None:
    """The library inside the installed wheel."""
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        found = sorted(Path(folder).glob("cuda_nvrtc/lib/libnvrtc.so.*"))
        if found:
            return found[0]
    return None


def main() -> int:
    """Compile everything; 1 when something does not, or is suspicious."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sources", nargs="*", type=Path, default=sorted((ROOT / "cuda").glob("*.cu")))
    parser.add_argument("--list", action="store_true", help="print the entry points")
    args = parser.parse_args()
    library = find_nvrtc()
    if library is None:
        print("cuda: skipped, NVRTC is not installed")
        print("hint: pip install nvidia-cuda-nvrtc-cu12 (Linux)")
        return 1 if sys.platform == "linux" else 0
    nvrtc, failed = Nvrtc(library), 0
    for path in args.sources:
        for arch in ARCHITECTURES:
            try:
                entries, log, _ = nvrtc.compile(path.read_text(encoding="utf-8"), path.name, arch)
            except NvrtcError as error:
                entries, log = [], str(error)
            if log or not entries:
                failed += 1
                print(f"error: {path.name} for {arch}: {log or 'no entry point'}")
        if args.list:
            print("\n".join(entries))
    print(f"cuda: {len(args.sources)} sources x {len(ARCHITECTURES)} architectures, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
