"""The spec rows of every op, one file per family, by the same names as in the core and in mxnp._ops."""

from importlib import import_module
from pkgutil import iter_modules

from specs.row import Row

# What the rows are written and run with.
_HELPERS = {"drive", "fused", "programs", "row", "tolerance"}

FAMILIES = {
    each.name: import_module(f"specs.{each.name}").ROWS
    for each in iter_modules(__path__)
    if each.name not in _HELPERS
}

ROWS: tuple[Row, ...] = tuple(row for rows in FAMILIES.values() for row in rows)
