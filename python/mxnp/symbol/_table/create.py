"""Operators that make arrays from nothing, from another's shape, or in another dtype."""

from __future__ import annotations

from typing import Any

from mxnp import np, npx

from .._spec import Attrs, row

_MADE = "shape:shape=() ctx:str= dtype:dtype?={dtype}"


def _named_dtype(ins: list, outs: list, attrs: Attrs) -> None:
    outs[:] = [attrs["dtype"] or (ins[0] if ins else "float32")]


def _range(start: float, stop: Any, step: float, repeat: int, dtype: Any) -> Any:
    low, high = (0.0, start) if stop is None else (start, stop)
    made = np.arange(low, high, step, dtype=dtype or "float32")
    return np.repeat(made, repeat) if repeat > 1 else made


def _arange_like(data: Any, ctx: str, **attrs: Any) -> Any:
    return npx.arange_like(data, **attrs)


def _full_of(value: float) -> Any:
    return lambda shape, ctx, dtype: np.full(shape, value, dtype=dtype or "float32")


def _numpy_full(
    shape: Any, ctx: str, dtype: Any, double_value: float, int_value: int, uint_value: int, value_type: int
) -> Any:
    value = (double_value, int_value, uint_value)[value_type if 0 <= value_type < 3 else 0]
    return np.full(shape, value, dtype=dtype or "float32")


def _numpy_linspace(num: int, endpoint: bool, dtype: Any, value_type: int, ctx: str, **ends: Any) -> Any:
    kind = ("double", "int", "uint")[value_type if 0 <= value_type < 3 else 0]
    return np.linspace(ends[f"start_{kind}"], ends[f"stop_{kind}"], num, endpoint, dtype=dtype or "float32")


def _linspace(start: float, stop: float, num: int, endpoint: bool, ctx: str, dtype: Any) -> Any:
    return np.linspace(start, stop, num, endpoint, dtype=dtype or "float32")


def _multicast(*data: Any, num_outputs: int, cast_narrow: bool) -> Any:
    widths = [x.dtype.itemsize for x in data]
    pick = min if cast_narrow else max
    dtype = data[widths.index(pick(widths))].dtype
    return tuple(x.astype(dtype) for x in data)


def _filled_rows() -> None:
    for old, numpy, value in (("_zeros", "_npi_zeros", 0), ("_ones", "_npi_ones", 1)):
        row(old, "", _MADE.format(dtype="float32"), _full_of(value), types=_named_dtype)
        row(numpy, "", _MADE.format(dtype="None"), _full_of(value), types=_named_dtype)
    row(
        "_zeros_without_dtype",
        "",
        "shape:shape=() ctx:str= dtype:int=-1",
        lambda shape, ctx, dtype: np.zeros(shape),
        types=lambda ins, outs, attrs: outs.__setitem__(slice(None), ["float32"]),
    )
    row(
        "_full",
        "",
        "shape:shape?=None ctx:str= dtype:dtype=float32 value:float",
        lambda shape, ctx, dtype, value: np.full(shape, value, dtype=dtype),
        types=_named_dtype,
    )
    row(
        "_npi_full",
        "",
        "shape:shape?=None ctx:str= dtype:dtype?=None double_value:float=0 int_value:int=0 uint_value:int=0 "
        "value_type:int=0",
        _numpy_full,
        types=_named_dtype,
    )
    row("zeros_like", "data", "", np.zeros_like, same=True)
    row("ones_like", "data", "", np.ones_like, same=True)
    row(
        "_npi_full_like",
        "a",
        "fill_value:float ctx:str= dtype:dtype?=None",
        lambda a, fill_value, ctx, dtype: np.full_like(a, fill_value, dtype=dtype),
        same=True,
        types=_named_dtype,
    )


def _sequence_rows() -> None:
    steps = "start:float stop:float?=None step:float=1 repeat:int=1 infer_range:bool=0 ctx:str= "
    for name, dtype in (("_arange", "float32"), ("_npi_arange", "None")):
        row(
            name,
            "",
            f"{steps}dtype:dtype?={dtype}",
            lambda start, stop, step, repeat, infer_range, ctx, dtype: _range(
                start, stop, step, repeat, dtype
            ),
            types=_named_dtype,
        )
    row(
        "_npi_linspace",
        "",
        "start_double:float=0 stop_double:float=0 start_int:int=0 stop_int:int=0 start_uint:int=0 stop_uint:int=0 "
        "num:int endpoint:bool=1 ctx:str= dtype:dtype?=None value_type:int=0",
        _numpy_linspace,
        types=_named_dtype,
    )
    row(
        "_linspace",
        "",
        "start:float stop:float num:int endpoint:bool=1 ctx:str= dtype:dtype=float32",
        _linspace,
        types=_named_dtype,
    )
    row(
        "_eye",
        "",
        "N:int M:int=0 k:int=0 ctx:str= dtype:dtype=float32",
        lambda N, M, k, ctx, dtype: np.eye(N, M or None, k, dtype=dtype),
        types=_named_dtype,
    )
    row(
        "_npi_eye",
        "",
        "N:int M:int?=None k:int=0 ctx:str= dtype:dtype?=None",
        lambda N, M, k, ctx, dtype: np.eye(N, M, k, dtype=dtype or "float32"),
        types=_named_dtype,
    )
    row(
        "_npi_identity",
        "",
        _MADE.format(dtype="None"),
        lambda shape, ctx, dtype: np.eye(shape[0], dtype=dtype or "float32"),
        types=_named_dtype,
    )
    row(
        "_npi_tri",
        "",
        "N:int M:int?=None k:int=0 dtype:dtype=float32 ctx:str=",
        lambda N, M, k, dtype, ctx: np.tri(N, M, k, dtype=dtype),
        types=_named_dtype,
    )
    row(
        "_contrib_arange_like _npx_arange_like",
        "data",
        "start:float=0 step:float=1 repeat:int=1 ctx:str= axis:int?=None",
        _arange_like,
    )


def add_rows() -> None:
    """Adds the family's rows."""
    _filled_rows()
    _sequence_rows()
    row(
        "Cast cast _npi_cast _npx_cast",
        "data",
        "dtype:dtype",
        lambda x, dtype: x.astype(dtype),
        same=True,
        types=_named_dtype,
    )
    row(
        "amp_cast _npi_amp_cast",
        "data",
        "dtype:dtype",
        lambda x, dtype: x.astype(dtype) if x.dtype.kind == "f" or x.dtype.name == "bfloat16" else x,
        same=True,
        types=_named_dtype,
    )
    row(
        "amp_multicast _npi_amp_multicast",
        "*data",
        "num_outputs:int cast_narrow:bool=0",
        _multicast,
        outputs=lambda attrs, inputs: tuple(f"output{i}" for i in range(inputs)),
    )
