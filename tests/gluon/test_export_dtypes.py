"""Exports of operations whose dtype or shape is not what MXNet's operator of that name gives: the import gives the
same bits all the same.
"""

import numpy as onp
import pytest

from gluon.compiled import block, same_bits
from mxnp import gluon, np
from mxnp.error import MXNetError


def written(target, value):
    """`target` after a write to all of it."""
    target[...] = value
    return target


def added(target, value):
    target += value
    return target


ROW = onp.array([0.1, 0.2, 0.7])

# Of x in float32, n in int8 and b in bool; each of shape (3, 4).
FUNCTIONS = {
    "integers stay integers in clip": lambda x, n, b: np.clip(n, -2, 2) | 1,
    "a clip by fractions is floating": lambda x, n, b: np.clip(n, -0.5, 1.5),
    "a number beside integers": lambda x, n, b: (np.where(b, 1, n), np.where(b, n, 2)),
    "a fraction beside integers": lambda x, n, b: np.where(b, n, 0.5),
    "fabs is floating": lambda x, n, b: np.fabs(n),
    "conjugate and positive": lambda x, n, b: (np.conjugate(b), np.conjugate(n), np.positive(n)),
    "powers that only the data shows": lambda x, n, b: np.power(n, np.abs(n)),
    "logaddexp of a number": lambda x, n, b: (np.logaddexp(x, 0.5), np.logaddexp(1, x)),
    "a row written to a matrix": lambda x, n, b: written(x * 2, x[0]),
    "a number written to a matrix": lambda x, n, b: written(x * 2, 0.5),
    "floats written to integers": lambda x, n, b: written(n * 2, x),
    "constants in place in a narrower dtype": lambda x, n, b: added(
        np.array(ROW, "float32") * 2, np.array(ROW)
    ),
    "in place in a narrower dtype": lambda x, n, b: added(x.astype("bfloat16"), x[:1]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_round_trip(name, tmp_path):
    rng = onp.random.default_rng(0)
    values = rng.normal(size=(3, 4)) * 2, rng.integers(-5, 6, (3, 4)), rng.random((3, 4)) < 0.5
    arrays = [np.array(v.astype(d)) for v, d in zip(values, ("float32", "int8", "bool"), strict=True)]

    def all_used(x, n, b):
        found = FUNCTIONS[name](x, n, b)
        return [*(found if isinstance(found, tuple) else (found,)), x * 2, n * 2, b * 2]

    net = block(all_used)
    wanted = net(*arrays)
    files = net.export(tmp_path / "f")
    again = gluon.SymbolBlock.imports(files[0], ["data0", "data1", "data2"], files[1])
    for got, want in zip(again(*arrays), wanted, strict=True):
        same_bits(got, want)


def test_complex_numbers_are_refused(tmp_path):
    net = block(lambda x: np.absolute(x.astype("complex64")))
    net(np.ones(3))
    with pytest.raises(MXNetError, match=r"no dtype complex64, which 'astype' gives"):
        net.export(tmp_path / "f")
