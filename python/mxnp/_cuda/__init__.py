"""The cupy form of each op, one file per family, by the core's names. Importing this imports no cupy."""

from __future__ import annotations

from . import arith, cast, create, index, join, linalg, nn_dense, random, reduce, shape, sort
from ._row import CpuOnly, Row, cpu_only

FAMILIES: dict[str, dict[str, Row]] = {
    "arith": arith.ROWS,
    "cast": cast.ROWS,
    "create": create.ROWS,
    "index": index.ROWS,
    "join": join.ROWS,
    "linalg": linalg.ROWS,
    "nn_dense": nn_dense.ROWS,
    "random": random.ROWS,
    "reduce": reduce.ROWS,
    "shape": shape.ROWS,
    "sort": sort.ROWS,
}

ROWS: dict[str, Row] = {name: row for rows in FAMILIES.values() for name, row in rows.items()}

__all__ = ["FAMILIES", "ROWS", "CpuOnly", "Row", "cpu_only"]
