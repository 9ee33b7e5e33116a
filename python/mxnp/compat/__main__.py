"""`python -m mxnp.compat script.py args`, `python -m mxnp.compat -m module args`: run a program with mxnp as mxnet."""

from __future__ import annotations

import os
import runpy
import sys

from .finder import install_as_mxnet

USAGE = "usage: python -m mxnp.compat [-m module | script.py] [arguments ...]"


def main(arguments: list[str]) -> None:
    """Run the script or module that `arguments` names as `__main__`, with the rest as its arguments."""
    if not arguments or arguments[0] in ("-h", "--help") or arguments == ["-m"]:
        print(USAGE, file=sys.stdout if arguments and arguments != ["-m"] else sys.stderr)
        raise SystemExit(0 if arguments and arguments != ["-m"] else 2)
    install_as_mxnet()
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    script = arguments[0]
    if not os.path.exists(script):
        print(f"python -m mxnp.compat: there is no file {script!r}", file=sys.stderr)  # noqa: T201
        raise SystemExit(2)
    sys.argv = arguments
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
