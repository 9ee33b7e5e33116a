"""Operators that pick, place and order elements: take, pick, where, sort, topk, diagonals, masks."""

from __future__ import annotations

from typing import Any

from mxnp import np, npx

from .._spec import Attrs, row


def _second_is_index(ins: list, outs: list, attrs: Attrs) -> None:
    """The index has a dtype of its own."""
    ins[1] = ins[1] or "float32"
    outs[:] = [ins[0]]


def _named_dtype(ins: list, outs: list, attrs: Attrs) -> None:
    outs[:] = [attrs["dtype"]] * max(len(outs), 1)


def _where_types(ins: list, outs: list, attrs: Attrs) -> None:
    ins[0] = ins[0] or "float32"
    values = [each for each in ins[1:] if each]
    for i in range(1, len(ins)):
        ins[i] = ins[i] or (values[0] if values else None)
    outs[:] = [values[0] if values else None]


def _topk_types(ins: list, outs: list, attrs: Attrs) -> None:
    kind = attrs["ret_typ"]
    both = [ins[0], attrs["dtype"]]
    outs[:] = both if kind == "both" else [attrs["dtype"] if kind == "indices" else ins[0]]


def _topk(data: Any, **attrs: Any) -> Any:
    found = npx.topk(data, **attrs)
    return tuple(found) if isinstance(found, list) else found


def _ordered(x: Any, axis: Any, is_ascend: bool) -> Any:
    y = np.sort(x, axis)
    return y if is_ascend else np.flip(y, -1 if axis is None else axis)


def _order(x: Any, axis: Any, is_ascend: bool, dtype: Any) -> Any:
    return np.argsort(x, axis, descending=not is_ascend).astype(dtype)


def _where(condition: Any, x: Any, y: Any) -> Any:
    if condition.ndim == 1 and x.ndim > 1 and condition.shape[0] == x.shape[0]:
        condition = condition.reshape((-1,) + (1,) * (x.ndim - 1))  # 1.x: one truth value for each row
    return np.where(condition, x, y)


def _diag(data: Any, k: int, axis1: int, axis2: int) -> Any:
    return np.diag(data, k) if data.ndim == 1 else np.diagonal(data, k, axis1, axis2)


def _scatter_nd(data: Any, indices: Any, shape: Any) -> Any:
    return npx.index_update(np.zeros(shape, dtype=data.dtype), indices, data)


def _batch_take(a: Any, indices: Any) -> Any:
    return npx.pick(a, indices, axis=-1, mode="clip")


def _take_rows() -> None:
    row(
        "take _npi_take",
        "a indices",
        "axis:int=0 mode:str=clip",
        lambda a, indices, axis, mode: np.take(a, indices, axis, mode=mode),
        types=_second_is_index,
    )
    row("batch_take", "a indices", "", _batch_take, types=_second_is_index)
    row(
        "pick _npx_pick choose_element_0index",
        "data index",
        "axis:int?=-1 keepdims:bool=0 mode:str=clip",
        npx.pick,
        types=_second_is_index,
    )
    row(
        "one_hot _npx_one_hot",
        "indices",
        "depth:int on_value:float=1 off_value:float=0 dtype:dtype=float32",
        npx.one_hot,
        types=_named_dtype,
    )
    row("gather_nd _npi_gather_nd _npx_gather_nd", "data indices", "", npx.gather_nd, types=_second_is_index)
    row("scatter_nd", "data indices", "shape:shape", _scatter_nd, types=_second_is_index)
    row("_npx_index_update", "a ind val", "", npx.index_update)
    row("_npx_index_add", "a ind val", "", npx.index_add)
    row(
        "_contrib_boolean_mask _contrib_bool_mask _npi_boolean_mask",
        "data index",
        "axis:int=0",
        lambda data, index, axis: np.compress(index, data, axis),
        types=_second_is_index,
    )
    row("_npi_advanced_indexing", "data indices", "", lambda data, indices: data[indices])


def _number_like(x: Any, scalar: float) -> Any:
    """A number of a file, which is a floating one there, as the array it stands beside would hold it."""
    return {"b": bool, "i": int, "u": int}.get(x.dtype.kind, float)(scalar)


def _where_rows() -> None:
    row("where", "condition x y", "", _where, types=_where_types)
    row("_npi_where", "condition x y", "", np.where, types=_where_types)
    row(
        "_npi_where_lscalar",
        "condition x",
        "scalar:float=0",
        lambda condition, y, scalar: np.where(condition, _number_like(y, scalar), y),
        types=_where_types,
    )
    row(
        "_npi_where_rscalar",
        "condition x",
        "scalar:float=0",
        lambda condition, x, scalar: np.where(condition, x, _number_like(x, scalar)),
        types=_where_types,
    )
    row(
        "_npi_where_scalar2",
        "condition",
        "x:float=0 y:float=0",
        lambda condition, x, y: np.where(condition, x, y),
    )


def _sort_rows() -> None:
    row("sort _npi_sort", "data", "axis:int?=-1 is_ascend:bool=1", _ordered)
    row(
        "argsort _npi_argsort",
        "data",
        "axis:int?=-1 is_ascend:bool=1 dtype:dtype=float32",
        _order,
        types=_named_dtype,
    )
    row(
        "topk _npx_topk",
        "data",
        "axis:int?=-1 k:int=1 ret_typ:str=indices is_ascend:bool=0 dtype:dtype=float32",
        _topk,
        outputs=lambda attrs, inputs: ("output0", "output1") if attrs["ret_typ"] == "both" else ("output",),
        types=_topk_types,
    )


def _diagonal_rows() -> None:
    row("diag", "data", "k:int=0 axis1:int=0 axis2:int=1", _diag)
    row("_npi_diag _np_diag", "data", "k:int=0", lambda x, k: np.diag(x, k))
    row("_npi_diagflat _np_diagflat", "data", "k:int=0", lambda x, k: np.diagflat(x, k))
    places = "offset:int=0 axis1:int=0 axis2:int=1"
    row("_npi_diagonal _np_diagonal", "data", places, np.diagonal)
    row("_npi_trace _np_trace", "data", places, np.trace)
    for name in ("tril", "triu"):
        row(f"_npi_{name}", "data", "k:int=0", _banded(getattr(np, name)), same=True)


def _banded(fn: Any) -> Any:
    return lambda x, k: fn(x, k)


def add_rows() -> None:
    """Adds the family's rows."""
    _take_rows()
    _where_rows()
    _sort_rows()
    _diagonal_rows()
