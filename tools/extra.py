"""Print the requirements of the named extras of pyproject.toml, one a line, as `pip install -r` reads them.

The Makefile installs what a task needs without building the package, and pyproject.toml stays the only list.
`mxnp[...]` inside an extra is followed.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parent.parent / "pyproject.toml"


def requirements(extras: list[str], table: dict[str, list[str]]) -> list[str]:
    """The requirements of `extras`, sorted, each once; KeyError names an extra that does not exist."""
    found: set[str] = set()
    for extra in extras:
        for line in table[extra]:
            own = re.fullmatch(r"mxnp\[([\w,-]+)\]", line)
            found.update(requirements(own[1].split(","), table) if own else [line])
    return sorted(found)


def main() -> None:
    """Print what the extras on the command line ask for, and what mxnp itself does."""
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    print("\n".join(project["dependencies"] + requirements(sys.argv[1:], project["optional-dependencies"])))


if __name__ == "__main__":
    main()
