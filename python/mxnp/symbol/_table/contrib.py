"""1.x's contrib operators that files of vision and language models use."""

from __future__ import annotations

import math
from typing import Any

import numpy as onp

from mxnp import np
from mxnp.error import MXNetValueError

from .._spec import row


def adaptive_average(data: Any, output_size: Any) -> Any:
    """The means of (N, C, H, W) over a grid of `output_size` windows that cover it, as even as whole pixels allow."""
    sizes = tuple(output_size) or (1, 1)
    rows, columns = sizes if len(sizes) == 2 else (sizes[0], sizes[0])
    return _weighted(data, _windows(data.shape[2], rows), _windows(data.shape[3], columns))


def _weighted(data: Any, down: onp.ndarray, across: onp.ndarray) -> Any:
    """`data` times one matrix along its third axis and another along its fourth."""
    dtype = data.dtype
    wide = np.matmul(data, np.array(across.T, dtype=dtype, device=data.device))
    return np.matmul(np.array(down, dtype=dtype, device=data.device), wide)


def _windows(size: int, count: int) -> onp.ndarray:
    weights = onp.zeros((count, size))
    for i in range(count):
        low, high = i * size // count, -((-(i + 1) * size) // count)
        weights[i, low:high] = 1 / (high - low)
    return weights


def _lines(size: int, count: int, aligned: bool) -> onp.ndarray:
    """The weights of linear interpolation from `size` to `count` points; `aligned`: the corners fall together."""
    places = onp.arange(count, dtype=onp.float64)
    if aligned:
        at = places * ((size - 1) / (count - 1)) if count > 1 else places * 0
    else:
        at = onp.maximum((places + 0.5) * size / count - 0.5, 0)
    low = onp.minimum(onp.floor(at).astype(int), size - 1)
    high = onp.minimum(low + 1, size - 1)
    weights = onp.zeros((count, size))
    onp.add.at(weights, (places.astype(int), low), 1 - (at - low))
    onp.add.at(weights, (places.astype(int), high), at - low)
    return weights


def _bilinear_resize(
    data: Any,
    *like: Any,
    height: int,
    width: int,
    scale_height: Any,
    scale_width: Any,
    mode: str,
    align_corners: bool,
) -> Any:
    h, w = data.shape[2:4]
    if mode == "like":
        height, width = like[0].shape[2:4]
    elif mode == "size":
        if scale_height is not None and scale_width is not None:
            height, width = int(h * scale_height), int(w * scale_width)
    elif mode == "odd_scale":
        height, width = _odd(h, scale_height), _odd(w, scale_width)
    elif mode in ("to_even_down", "to_even_up", "to_odd_down", "to_odd_up"):
        odd, up = "odd" in mode, mode.endswith("up")
        height, width = (n if (n % 2 == 1) == odd else n + (1 if up else -1) for n in (h, w))
    else:
        raise MXNetValueError(f"BilinearResize2D: unknown mode {mode!r}")
    return _weighted(data, _lines(h, height, align_corners), _lines(w, width, align_corners))


def _odd(size: int, scale: float) -> int:
    return int(size * scale) if size % 2 == 0 else int((size - 1) * scale) + 1


def _heads(x: Any, heads: int, parts: int) -> list[Any]:
    """(length, batch, heads * parts * d) as `parts` arrays of shape (batch * heads, length, d)."""
    length, batch, width = x.shape
    split = x.reshape((length, batch, heads, parts, width // (heads * parts)))
    return [
        split[:, :, :, i].transpose((1, 2, 0, 3)).reshape((batch * heads, length, -1)) for i in range(parts)
    ]


def _scores(queries: Any, keys: Any) -> Any:
    scale = 1 / math.sqrt(queries.shape[-1])
    return np.matmul(queries * scale, keys.transpose((0, 2, 1)))


def _mixed(attention: Any, values: Any, heads: int) -> Any:
    mixed = np.matmul(attention, values)
    rows, length, width = mixed.shape
    batch = rows // heads
    return mixed.reshape((batch, heads, length, width)).transpose((2, 0, 1, 3)).reshape((length, batch, -1))


def _self_scores(x: Any, heads: int) -> Any:
    queries, keys, _ = _heads(x, heads, 3)
    return _scores(queries, keys)


def _cross_scores(queries: Any, keys_values: Any, heads: int) -> Any:
    return _scores(_heads(queries, heads, 1)[0], _heads(keys_values, heads, 2)[0])


def _attention_rows() -> None:
    row(
        "_contrib_interleaved_matmul_selfatt_qk _npx_interleaved_matmul_selfatt_qk",
        "queries_keys_values",
        "heads:int",
        _self_scores,
    )
    row(
        "_contrib_interleaved_matmul_selfatt_valatt _npx_interleaved_matmul_selfatt_valatt",
        "queries_keys_values attention",
        "heads:int",
        lambda x, attention, heads: _mixed(attention, _heads(x, heads, 3)[2], heads),
    )
    row(
        "_contrib_interleaved_matmul_encdec_qk _npx_interleaved_matmul_encdec_qk",
        "queries keys_values",
        "heads:int",
        _cross_scores,
    )
    row(
        "_contrib_interleaved_matmul_encdec_valatt _npx_interleaved_matmul_encdec_valatt",
        "keys_values attention",
        "heads:int",
        lambda x, attention, heads: _mixed(attention, _heads(x, heads, 2)[1], heads),
    )


def add_rows() -> None:
    """Adds the family's rows."""
    _attention_rows()
    row("_contrib_AdaptiveAvgPooling2D", "data", "output_size:shape=()", adaptive_average)
    row(
        "_contrib_BilinearResize2D",
        "data like",
        "height:int=1 width:int=1 scale_height:float?=None scale_width:float?=None mode:str=size align_corners:bool=1",
        _bilinear_resize,
        wanted=lambda attrs: ("data", "like") if attrs["mode"] == "like" else ("data",),
    )
    row(
        "_contrib_div_sqrt_dim",
        "data",
        "",
        lambda x: x / math.sqrt(x.shape[-1]),
        same=True,
    )
    row(
        "_contrib_quadratic",
        "data",
        "a:float=0 b:float=0 c:float=0",
        lambda x, a, b, c: (a * x + b) * x + c,
        same=True,
    )
