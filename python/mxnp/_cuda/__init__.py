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
    module.__name__.rpartition(".")[2]: module.ROWS
    for module in (
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
}

ROWS: dict[str, Row] = {name: row for rows in FAMILIES.values() for name, row in rows.items()}

__all__ = ["FAMILIES", "ROWS", "CpuOnly", "Row", "cpu_only"]
