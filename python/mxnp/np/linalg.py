"""`mxnp.np.linalg`: products, powers and norms of matrices."""

from numpy.linalg import LinAlgError

from .._missing import refuse as _refuse
from .._ops.linalg import (
    cross,
    diagonal,
    matmul,
    matrix_norm,
    matrix_power,
    multi_dot,
    norm,
    outer,
    tensordot,
    trace,
    vecdot,
    vector_norm,
)
from .._ops.shape import matrix_transpose

__all__ = [
    "LinAlgError",
    "cross",
    "diagonal",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]

__getattr__ = _refuse(__name__)
