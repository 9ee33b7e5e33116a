"""The spec rows of every op, one file per family, by the same names as in the core and in mxnp._ops."""

from specs import (
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
from specs.row import Row

FAMILIES = {
    module.__name__.rsplit(".", 1)[1]: module.ROWS
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

ROWS: tuple[Row, ...] = tuple(row for rows in FAMILIES.values() for row in rows)
