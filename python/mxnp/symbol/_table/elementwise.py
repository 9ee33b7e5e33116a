"""Elementwise operators: 1.x's for equal shapes and with broadcasting, NumPy's, and with a scalar."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from mxnp import np, npx
from mxnp.error import MXNetValueError

from .._spec import row

_SCALAR = "scalar:float=1 is_int:bool=1"
# NumPy's name: 1.x's operator for equal shapes and its aliases; the stem of 1.x's operators that broadcast and that
# take a scalar. Without the first, 1.x has no such operator.
_ARITHMETIC = {
    "add": ("elemwise_add _plus _Plus _add _grad_add", "add plus", "plus"),
    "subtract": ("elemwise_sub _minus _Minus _sub", "sub minus", "minus"),
    "multiply": ("elemwise_mul _mul _Mul", "mul", "mul"),
    "true_divide": ("elemwise_div _div _Div", "div", "div"),
    "mod": ("_mod _Mod", "mod", "mod"),
    "power": ("_power _Power", "power", "power"),
    "maximum": ("_maximum _Maximum", "maximum", "maximum"),
    "minimum": ("_minimum _Minimum", "minimum", "minimum"),
    "hypot": ("_hypot _Hypot", "hypot", "hypot"),
}
_COMPARISONS = {
    "equal": ("_equal _Equal", "equal", "equal"),
    "not_equal": ("_not_equal _Not_Equal", "not_equal", "not_equal"),
    "greater": ("_greater _Greater", "greater", "greater"),
    "greater_equal": ("_greater_equal _Greater_Equal", "greater_equal", "greater_equal"),
    "less": ("_lesser _Lesser", "lesser", "lesser"),
    "less_equal": ("_lesser_equal _Lesser_Equal", "lesser_equal", "lesser_equal"),
    "logical_and": ("_logical_and _Logical_And", "logical_and", "logical_and"),
    "logical_or": ("_logical_or _Logical_Or", "logical_or", "logical_or"),
    "logical_xor": ("_logical_xor _Logical_Xor", "logical_xor", "logical_xor"),
}
_REVERSED = ("subtract", "true_divide", "mod", "power")
_NUMPY_ONLY = (
    "arctan2",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "copysign",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "logaddexp",
)
# 1.x's camel-case aliases of the operators with a scalar.
_CAMEL = {
    "_plus_scalar": "_PlusScalar",
    "_minus_scalar": "_MinusScalar",
    "_rminus_scalar": "_RMinusScalar",
    "_mul_scalar": "_MulScalar",
    "_div_scalar": "_DivScalar",
    "_rdiv_scalar": "_RDivScalar",
    "_mod_scalar": "_ModScalar",
    "_rmod_scalar": "_RModScalar",
    "_power_scalar": "_PowerScalar",
    "_rpower_scalar": "_RPowerScalar",
    "_maximum_scalar": "_MaximumScalar",
    "_minimum_scalar": "_MinimumScalar",
    "_hypot_scalar": "_HypotScalar",
    "_equal_scalar": "_EqualScalar",
    "_not_equal_scalar": "_NotEqualScalar",
    "_greater_scalar": "_GreaterScalar",
    "_greater_equal_scalar": "_GreaterEqualScalar",
    "_lesser_scalar": "_LesserScalar",
    "_lesser_equal_scalar": "_LesserEqualScalar",
    "_logical_and_scalar": "_LogicalAndScalar",
    "_logical_or_scalar": "_LogicalOrScalar",
    "_logical_xor_scalar": "_LogicalXorScalar",
}
_UNARY_BOTH = (
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctanh",
    "cbrt",
    "ceil",
    "cos",
    "cosh",
    "degrees",
    "exp",
    "expm1",
    "fix",
    "floor",
    "log",
    "log10",
    "log1p",
    "log2",
    "logical_not",
    "negative",
    "radians",
    "reciprocal",
    "rint",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
)


def _bool_types(ins: list, outs: list, attrs: dict) -> None:
    outs[:] = ["bool"]


def _number(scalar: float, is_int: bool) -> float:
    """An integer where the file's scalar stands for one: integer arrays then stay integers."""
    return int(scalar) if is_int and math.isfinite(scalar) and scalar == int(scalar) else scalar


def _equal_shapes(name: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    def run(lhs: Any, rhs: Any) -> Any:
        if lhs.shape != rhs.shape:
            raise MXNetValueError(
                f"{name}: expected equal shapes, got {lhs.shape} and {rhs.shape}\n"
                "hint: the operators broadcast_* and those of np broadcast"
            )
        return fn(lhs, rhs)

    return run


def _as_input(fn: Callable[..., Any]) -> Callable[..., Any]:
    """1.x's comparisons and quotients have their operand's dtype."""

    def run(lhs: Any, *rhs: Any) -> Any:
        return fn(lhs, *rhs).astype(lhs.dtype)

    return run


def _with_scalar(fn: Callable[..., Any]) -> Callable[..., Any]:
    return lambda data, scalar, is_int: fn(data, _number(scalar, is_int))


def _scalar_first(fn: Callable[..., Any]) -> Callable[..., Any]:
    return lambda data, scalar, is_int: fn(_number(scalar, is_int), data)


def _scalar_row(names: str, run: Callable[..., Any], types: Any = None) -> None:
    camel = _CAMEL.get(names.split(maxsplit=1)[0], "")
    row(f"{names} {camel}", "data", _SCALAR, run, same=True, types=types)


def _binary_rows() -> None:
    for name, (equal, stems, stem) in {**_ARITHMETIC, **_COMPARISONS}.items():
        fn = getattr(np, name)
        compares = name in _COMPARISONS
        keeps_dtype = compares or name == "true_divide"
        old = _as_input(fn) if keeps_dtype else fn
        shared = name in ("maximum", "minimum")  # 2 writes 1.x's names for these two
        row(equal, "lhs rhs", "", _equal_shapes(equal.partition(" ")[0], old), same=True)
        broadcast = " ".join(f"broadcast_{each}" for each in stems.split())
        row(f"{broadcast} _npi_{name}" if shared else broadcast, "lhs rhs", "", old)
        scalar, numpy_scalar = f"_{stem}_scalar", f"_npi_{name}_scalar"
        old_scalar = _as_input(_with_scalar(fn)) if compares else _with_scalar(fn)
        if keeps_dtype and not compares:
            old_scalar = _divided(fn)
        _scalar_row(
            f"{scalar} {numpy_scalar}" if shared else scalar,
            _keyword(old_scalar) if keeps_dtype else old_scalar,
        )
        if not shared:
            types = _bool_types if compares else None
            row(f"_npi_{name}", "lhs rhs", "", fn, types=types)
            _scalar_row(numpy_scalar, _with_scalar(fn), types)
        if name in _REVERSED:
            turned = _scalar_first(fn)
            _scalar_row(f"_r{stem}_scalar", _keyword(_as_first(fn)) if keeps_dtype else turned)
            _scalar_row(f"_npi_r{name}_scalar", turned)


def _keyword(fn: Callable[..., Any]) -> Callable[..., Any]:
    return lambda data, scalar, is_int: fn(data, scalar, is_int)


def _divided(fn: Callable[..., Any]) -> Callable[..., Any]:
    return lambda data, scalar, is_int: fn(data, _number(scalar, is_int)).astype(data.dtype)


def _as_first(fn: Callable[..., Any]) -> Callable[..., Any]:
    return lambda data, scalar, is_int: fn(_number(scalar, is_int), data).astype(data.dtype)


def _numpy_rows() -> None:
    for name in _NUMPY_ONLY:
        fn = getattr(np, name)
        inputs = "x1 x2" if name in ("arctan2", "logaddexp") else "lhs rhs"
        row(f"_npi_{name}", inputs, "", fn)
        if name != "logaddexp":
            _scalar_row(f"_npi_{name}_scalar", _with_scalar(fn))
        if name in ("arctan2", "copysign", "floor_divide", "fmod"):
            _scalar_row(f"_npi_r{name}_scalar", _scalar_first(fn))
    for name, fn in (("left", np.left_shift), ("right", np.right_shift)):
        row(f"_npi_bitwise_{name}_shift", "lhs rhs", "", fn)
        _scalar_row(f"_npi_bitwise_{name}_shift_scalar", _with_scalar(fn))
        _scalar_row(f"_npi_rbitwise_{name}_shift_scalar", _scalar_first(fn))
    row("_npi_ldexp", "lhs rhs", "", lambda lhs, rhs: lhs * 2.0**rhs)


def _unary_rows() -> None:
    for name in _UNARY_BOTH:
        fn = getattr(np, name)
        if name == "logical_not":
            row(name, "data", "", _as_input(fn), same=True)
            row(f"_npi_{name}", "x", "", fn, same=True, types=_bool_types)
        else:
            row(name, "data", "", fn, same=True)
            row(f"_npi_{name}", "x", "", fn, same=True)
    row("abs", "data", "", np.abs, same=True)
    row("_npi_absolute _npi_abs", "x", "", np.abs, same=True)
    row("round", "data", "", _round_half_away, same=True)
    row(
        "_npi_around",
        "x",
        "decimals:int=0",
        lambda x, decimals: np.round(x, decimals),
        same=True,
    )
    row("_npi_bitwise_not", "x", "", np.bitwise_not, same=True)
    row("rcbrt", "data", "", lambda x: 1 / np.cbrt(x), same=True)
    row("rsqrt", "data", "", npx.rsqrt, same=True)
    for name in ("isnan", "isinf", "isfinite", "isposinf", "isneginf"):
        row(f"_npi_{name}", "x", "", getattr(np, name), same=True, types=_bool_types)
    row("erf _npx_erf", "data", "", npx.erf, same=True)
    row("erfinv _npx_erfinv", "data", "", npx.erfinv, same=True)
    row("relu", "data", "", npx.relu, same=True)
    row("_npx_relu", "data", "", npx.relu, same=True)
    row("sigmoid", "data", "", npx.sigmoid, same=True)
    row("_npx_sigmoid", "data", "", npx.sigmoid, same=True)
    row("softsign _npx_softsign", "data", "", npx.softsign, same=True)
    row("log_sigmoid _npx_log_sigmoid", "data", "", npx.log_sigmoid, same=True)
    row("mish _npx_mish", "data", "", npx.mish, same=True)
    row(
        "hard_sigmoid _npx_hard_sigmoid",
        "data",
        "alpha:float=0.2 beta:float=0.5",
        npx.hard_sigmoid,
        same=True,
    )
    row("smooth_l1 _npx_smooth_l1", "data", "scalar:float=1", npx.smooth_l1, same=True)


def _round_half_away(x: Any) -> Any:
    """1.x's `round`: halves go away from 0."""
    return np.where(x < 0, np.ceil(x - 0.5), np.floor(x + 0.5)).astype(x.dtype)


def _clip(x: Any, a_min: float | None, a_max: float | None) -> Any:
    """Integers stay integers: files hold every bound as a floating number."""
    if x.dtype.kind not in "iub":
        return np.clip(x, a_min, a_max)
    low, high = (None if bound is None else int(bound) for bound in (a_min, a_max))
    return np.clip(x, low, high)


def _add_n(*args: Any) -> Any:
    return npx.add_n(*args)


def add_rows() -> None:
    """Adds the family's rows."""
    _binary_rows()
    _numpy_rows()
    _unary_rows()
    row("_copy identity _npi_copy _np_copy", "data", "", lambda x: x, same=True)
    row(
        "clip _npi_clip",
        "data",
        "a_min:float? a_max:float?",
        _clip,
        same=True,
    )
    row("add_n ElementWiseSum _npx_add_n _sum", "*arg", "", _add_n, same=True)
    row("BlockGrad stop_gradient _npx_stop_gradient", "data", "", npx.stop_gradient, same=True)
    row(
        "_identity_with_attr_like_rhs",
        "lhs rhs",
        "",
        lambda lhs, rhs: lhs,
        same=True,
    )
    row("_scatter_elemwise_div", "lhs rhs", "", np.true_divide, same=True)
    row(
        "_npi_nan_to_num",
        "data",
        "copy:bool=1 nan:float=0 posinf:float?=None neginf:float?=None",
        lambda data, copy, nan, posinf, neginf: np.nan_to_num(data, nan=nan, posinf=posinf, neginf=neginf),
        same=True,
    )
