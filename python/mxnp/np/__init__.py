"""`mxnp.np`: NumPy's interface on mxnp's arrays. Defaults are MXNet's: data without a dtype is float32.

A list: the functions live in mxnp._ops, constants and dtypes in _constants, what looks at arrays in _inspect.
"""

from .._core import from_dlpack, ndarray
from .._files.api import load, save, savez
from .._missing import refuse as _refuse
from .._ops.arith import (
    absolute,
    add,
    clip,
    conjugate,
    copysign,
    divmod,
    fabs,
    finfo,
    float_power,
    floor_divide,
    fmax,
    fmin,
    fmod,
    hypot,
    maximum,
    minimum,
    modf,
    multiply,
    nan_to_num,
    negative,
    positive,
    power,
    reciprocal,
    remainder,
    sign,
    square,
    subtract,
    true_divide,
)
from .._ops.bitwise import bitwise_and, bitwise_or, bitwise_xor, invert, left_shift, right_shift
from .._ops.cast import astype, can_cast, copy, isdtype, promote_types, result_type
from .._ops.compare import (
    allclose,
    array_equal,
    array_equiv,
    equal,
    greater,
    greater_equal,
    isclose,
    isfinite,
    isinf,
    isnan,
    isneginf,
    isposinf,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    not_equal,
    signbit,
)
from .._ops.create import (
    array,
    asanyarray,
    asarray,
    ascontiguousarray,
    empty,
    empty_like,
    eye,
    frombuffer,
    full,
    full_like,
    identity,
    indices,
    meshgrid,
    ones,
    ones_like,
    tri,
    zeros,
    zeros_like,
)
from .._ops.einsum import einsum
from .._ops.exp_log import cbrt, exp, exp2, expm1, log, log1p, log2, log10, logaddexp, logaddexp2, sqrt
from .._ops.index import (
    argwhere,
    bincount,
    choose,
    compress,
    diag,
    diag_indices_from,
    diagflat,
    diagonal,
    digitize,
    extract,
    fill_diagonal,
    flatnonzero,
    ix_,
    nonzero,
    searchsorted,
    select,
    take,
    take_along_axis,
    trace,
    tril,
    tril_indices,
    triu,
    triu_indices,
    unravel_index,
    where,
)
from .._ops.join import (
    append,
    array_split,
    column_stack,
    concat,
    concatenate,
    delete,
    dsplit,
    dstack,
    hsplit,
    hstack,
    insert,
    pad,
    repeat,
    resize,
    roll,
    row_stack,
    split,
    stack,
    tile,
    unstack,
    vsplit,
    vstack,
)
from .._ops.linalg import cross, dot, inner, kron, matmul, outer, tensordot, vdot, vecdot
from .._ops.quantile import average, median, percentile, quantile
from .._ops.ranges import arange, geomspace, linspace, logspace
from .._ops.reduce import (
    all,
    amax,
    amin,
    any,
    argmax,
    argmin,
    count_nonzero,
    max,
    mean,
    min,
    prod,
    ptp,
    std,
    sum,
    var,
)
from .._ops.rounding import around, ceil, fix, floor, rint, round, trunc
from .._ops.scan import cumprod, cumsum, diff, ediff1d
from .._ops.shape import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    broadcast_arrays,
    broadcast_shapes,
    broadcast_to,
    expand_dims,
    flip,
    fliplr,
    flipud,
    matrix_transpose,
    moveaxis,
    ndim,
    permute_dims,
    ravel,
    reshape,
    rollaxis,
    rot90,
    shape,
    size,
    squeeze,
    swapaxes,
    transpose,
)
from .._ops.sort import (
    argpartition,
    argsort,
    in1d,
    intersect1d,
    isin,
    partition,
    setdiff1d,
    sort,
    union1d,
    unique,
    unique_all,
    unique_counts,
    unique_inverse,
    unique_values,
)
from .._ops.stats import (
    corrcoef,
    cov,
    histogram,
    histogram_bin_edges,
    interp,
    nanmax,
    nanmean,
    nanmin,
    nanprod,
    nanstd,
    nansum,
    nanvar,
    polyval,
    trapezoid,
)
from .._ops.trig import (
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctan2,
    arctanh,
    cos,
    cosh,
    deg2rad,
    degrees,
    rad2deg,
    radians,
    sin,
    sinh,
    tan,
    tanh,
)
from . import _dispatch, _methods, linalg, random
from ._constants import (
    NAN,
    NINF,
    NZERO,
    PINF,
    PZERO,
    NaN,
    bool,
    bool_,
    boolean_dtypes,
    complex64,
    complex128,
    dtype,
    e,
    euler_gamma,
    float16,
    float32,
    float64,
    floating_dtypes,
    generic,
    get_printoptions,
    iinfo,
    inf,
    int8,
    int16,
    int32,
    int64,
    int_,
    intc,
    integer_dtypes,
    intp,
    nan,
    newaxis,
    numeric_dtypes,
    pi,
    printoptions,
    set_printoptions,
    uint8,
    uint16,
    uint32,
    uint64,
)
from ._inspect import iscomplexobj, isrealobj, isscalar, may_share_memory, min_scalar_type, shares_memory

# Other names of the same functions: NumPy's, the array API standard's and MXNet's.
abs = absolute
acos, acosh, asin, asinh, atan, atan2, atanh = arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh
bitwise_invert = bitwise_not = invert
bitwise_left_shift, bitwise_right_shift = left_shift, right_shift
conj = conjugate
divide = true_divide
mod = remainder
pow = power
round_ = around
trapz = trapezoid
product, alltrue, sometrue = prod, all, any

__getattr__ = _refuse(__name__)
__all__ = [name for name in dir() if not name.startswith("_")]
_dispatch.register(globals())
