"""The cupy form of each op, one file per family, by the core's names. Importing this imports no cupy."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from ._row import CpuOnly, Row, cpu_only

FAMILIES: dict[str, dict[str, Row]] = {
    family.name: import_module(f".{family.name}", __name__).ROWS
    for family in iter_modules(__path__)
    if not family.name.startswith("_")
}

ROWS: dict[str, Row] = {name: row for rows in FAMILIES.values() for name, row in rows.items()}

__all__ = ["FAMILIES", "ROWS", "CpuOnly", "Row", "cpu_only"]
