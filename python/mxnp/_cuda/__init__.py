"""The cupy form of each op, one file per family, by the core's names. Importing this imports no cupy."""

from __future__ import annotations

from . import (
    arith,
    bitwise,
    cast,
    compare,
    create,
    exp_log,
    index,
    join,
    linalg,
    nn_act,
    nn_conv,
    nn_dense,
    nn_embed,
    nn_norm,
    nn_pool,
    optim,
    random,
    reduce,
    rounding,
    scan,
    shape,
    sort,
    special,
    trig,
)
from ._row import CpuOnly, Row, cpu_only

FAMILIES: dict[str, dict[str, Row]] = {
    "arith": arith.ROWS,
    "bitwise": bitwise.ROWS,
    "cast": cast.ROWS,
    "compare": compare.ROWS,
    "create": create.ROWS,
    "exp_log": exp_log.ROWS,
    "index": index.ROWS,
    "join": join.ROWS,
    "linalg": linalg.ROWS,
    "nn_act": nn_act.ROWS,
    "nn_conv": nn_conv.ROWS,
    "nn_dense": nn_dense.ROWS,
    "nn_embed": nn_embed.ROWS,
    "nn_norm": nn_norm.ROWS,
    "nn_pool": nn_pool.ROWS,
    "optim": optim.ROWS,
    "random": random.ROWS,
    "reduce": reduce.ROWS,
    "rounding": rounding.ROWS,
    "scan": scan.ROWS,
    "shape": shape.ROWS,
    "sort": sort.ROWS,
    "special": special.ROWS,
    "trig": trig.ROWS,
}

ROWS: dict[str, Row] = {name: row for rows in FAMILIES.values() for name, row in rows.items()}

__all__ = ["FAMILIES", "ROWS", "CpuOnly", "Row", "cpu_only"]
