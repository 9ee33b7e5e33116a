"""Products of matrices and tensors."""

from __future__ import annotations

from typing import Any

from mxnp import np, npx

from .._spec import row

_TURNED = "transpose_a:bool=0 transpose_b:bool=0"


def _dot(lhs: Any, rhs: Any, transpose_a: bool, transpose_b: bool, forward_stype: Any, legacy: bool) -> Any:
    """1.x's: the last axis of `lhs` with the first of `rhs`; transposing turns around which."""
    a = np.moveaxis(lhs, 0, -1) if transpose_a and lhs.ndim > 1 else lhs
    b = np.moveaxis(rhs, -1, 0) if transpose_b and rhs.ndim > 1 else rhs
    result = np.tensordot(a, b, 1)
    return result.reshape((1,)) if legacy and result.ndim == 0 else result


def _batch_dot(lhs: Any, rhs: Any, transpose_a: bool, transpose_b: bool, forward_stype: Any) -> Any:
    return npx.batch_dot(lhs, rhs, transpose_a=transpose_a, transpose_b=transpose_b)


def _turn(x: Any, wanted: bool) -> Any:
    return np.swapaxes(x, -1, -2) if wanted else x


def _gemm2(A: Any, B: Any, transpose_a: bool, transpose_b: bool, alpha: float, axis: int) -> Any:
    if axis != -2:
        A, B = np.moveaxis(A, axis, -2), np.moveaxis(B, axis, -2)
    product = alpha * np.matmul(_turn(A, transpose_a), _turn(B, transpose_b))
    return product if axis == -2 else np.moveaxis(product, -2, axis)


def _gemm(
    A: Any, B: Any, C: Any, transpose_a: bool, transpose_b: bool, alpha: float, beta: float, axis: int
) -> Any:
    return _gemm2(A, B, transpose_a, transpose_b, alpha, axis) + beta * C


def _syrk(A: Any, transpose: bool, alpha: float) -> Any:
    return alpha * np.matmul(_turn(A, transpose), _turn(A, not transpose))


def add_rows() -> None:
    """Adds the family's rows."""
    stored = f"{_TURNED} forward_stype:str?=None"
    row("dot", "lhs rhs", stored, _dot, legacy=True)
    row("batch_dot _npx_batch_dot", "lhs rhs", stored, _batch_dot)
    row("_npi_dot _np_dot", "a b", "", np.dot)
    row("_npi_matmul", "a b", "", np.matmul, outputs=lambda attrs, inputs: ("out",))
    row("_npi_kron", "a b", "", np.kron)
    row(
        "_npi_tensordot",
        "a b",
        "a_axes_summed:shape b_axes_summed:shape",
        lambda a, b, a_axes_summed, b_axes_summed: np.tensordot(a, b, (a_axes_summed, b_axes_summed)),
    )
    row("_npi_tensordot_int_axes", "a b", "axes:int", lambda a, b, axes: np.tensordot(a, b, axes))
    row(
        "_npi_einsum",
        "*data",
        "subscripts:str= optimize:int=0",
        lambda *data, subscripts, optimize: np.einsum(subscripts, *data),
    )
    row(
        "_npi_cross",
        "a b",
        "axisa:int=-1 axisb:int=-1 axisc:int=-1",
        lambda a, b, axisa, axisb, axisc: np.cross(a, b, axisa, axisb, axisc),
    )
    row("_linalg_gemm2 linalg_gemm2", "A B", f"{_TURNED} alpha:float=1 axis:int=-2", _gemm2)
    row("_linalg_gemm linalg_gemm", "A B C", f"{_TURNED} alpha:float=1 beta:float=1 axis:int=-2", _gemm)
    row("_linalg_syrk linalg_syrk", "A", "transpose:bool=0 alpha:float=1", _syrk)
    row(
        "_linalg_sumlogdiag linalg_sumlogdiag",
        "A",
        "",
        lambda A, legacy: np.log(np.diagonal(A, 0, -2, -1)).sum(-1, keepdims=legacy and A.ndim == 2),
        legacy=True,
    )
    row(
        "_linalg_extractdiag linalg_extractdiag",
        "A",
        "offset:int=0",
        lambda A, offset: np.diagonal(A, offset, -2, -1),
    )
