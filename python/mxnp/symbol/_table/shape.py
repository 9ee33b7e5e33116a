"""Operators that change shapes, order and position: reshape with 1.x's codes, transpose, slices, joins, pads."""

from __future__ import annotations

from typing import Any

from mxnp import np, npx
from mxnp.error import MXNetValueError

from .._spec import row


def old_reshape(own: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """The target shape of 1.x's `Reshape`: 0 copies, -1 is left over, -2 copies the rest, -3 joins, -4 splits.

    >>> old_reshape((2, 3, 4), (-3, 0))
    (6, 4)
    """
    target: list[int] = []
    taken = at = 0

    def take() -> int:
        nonlocal taken
        if taken >= len(own):
            raise MXNetValueError(f"Reshape: {shape} asks for more axes than {own} has")
        taken += 1
        return own[taken - 1]

    while at < len(shape):
        code = shape[at]
        if code == 0:
            target.append(take())
        elif code == -2:
            target.extend(own[taken:])
            taken = len(own)
        elif code == -3:
            target.append(take() * take())
        elif code == -4:
            if at + 2 >= len(shape):
                raise MXNetValueError(f"Reshape: -4 in {shape} must be followed by two sizes")
            target.extend(_halves(take(), shape[at + 1], shape[at + 2], shape))
            at += 2
        elif code == -1 or code > 0:
            target.append(code)
            taken = min(taken + 1, len(own))
        else:
            raise MXNetValueError(f"Reshape: {code} in {shape} is no size and no code")
        at += 1
    return tuple(target)


def _halves(size: int, first: int, second: int, shape: tuple[int, ...]) -> tuple[int, int]:
    if first == -1 and second > 0:
        first = size // second
    elif second == -1 and first > 0:
        second = size // first
    if first * second != size or first < 0:
        raise MXNetValueError(f"Reshape: {shape} does not split {size}")
    return first, second


def _reshape(data: Any, shape: Any, reverse: bool, target_shape: Any, keep_highest: bool) -> Any:
    if not shape and target_shape:  # before 1.0, 0 was what -1 is now
        target = tuple(-1 if n == 0 else n for n in target_shape)
        return data.reshape((data.shape[0], *target[1:]) if keep_highest else target)
    own = tuple(data.shape)
    if not reverse:
        return data.reshape(old_reshape(own, shape))
    codes = list(reversed(shape))
    for i, code in enumerate(codes):  # the sizes after -4 come before it now
        if code == -4:
            codes[i - 2 : i + 1] = [-4, codes[i - 1], codes[i - 2]]
    turned = old_reshape(own[::-1], tuple(codes))[::-1]
    return data.reshape(turned)


def _transpose(data: Any, axes: Any) -> Any:
    return np.transpose(data, axes or None)


def _slice(data: Any, begin: Any, end: Any, step: Any) -> Any:
    return npx.slice(data, begin=begin, end=end, step=step or None)


def _slice_axis(data: Any, axis: int, begin: int, end: Any) -> Any:
    index = [slice(None)] * data.ndim
    index[axis] = slice(begin, end)
    return data[tuple(index)]


def _slice_like(data: Any, like: Any, axes: Any) -> Any:
    return npx.slice_like(data, like, axes=axes or None)


# More parts than any network cuts; a file may say anything.
MAX_PARTS = 1 << 14


def parts(count: int) -> tuple[str, ...]:
    """The names of so many outputs."""
    if not 1 <= count <= MAX_PARTS:
        raise MXNetValueError(f"expected 1 to {MAX_PARTS} outputs, got {count}")
    return tuple(f"output{i}" for i in range(count)) if count > 1 else ("output",)


def _numbered(attrs: dict, inputs: int) -> tuple[str, ...]:
    return parts(attrs["num_outputs"])


def _split_outputs(attrs: dict, inputs: int) -> tuple[str, ...]:
    indices, sections = attrs["indices"], attrs["sections"]
    return parts(sections or (len(indices) if indices[:1] == (0,) else len(indices) + 1))


def _channels(data: Any, num_outputs: int, axis: int, squeeze_axis: bool) -> Any:
    parts = npx.slice_channel(data, num_outputs=num_outputs, axis=axis, squeeze_axis=squeeze_axis)
    return tuple(parts) if isinstance(parts, list) else parts


def _split(data: Any, indices: Any, axis: int, squeeze_axis: bool, sections: int) -> Any:
    # Files list where each part begins, the first at 0; NumPy lists the cuts.
    cuts = sections or (indices[1:] if indices[:1] == (0,) else indices)
    parts = np.array_split(data, cuts, axis)
    return tuple(part.squeeze(axis) if squeeze_axis else part for part in parts)


def _concat(*data: Any, dim: Any) -> Any:
    return np.concatenate(data, axis=dim)


def _pad(data: Any, mode: str, pad_width: Any, constant_value: float) -> Any:
    return npx.pad(data, mode=mode, pad_width=pad_width, constant_value=constant_value)


def _numpy_pad(data: Any, pad_width: Any, mode: str, constant_values: float, reflect_type: str) -> Any:
    if mode == "constant":
        return np.pad(data, pad_width, mode, constant_values=constant_values)
    return np.pad(data, pad_width, mode)


def _broadcast_axis(data: Any, axis: Any, size: Any) -> Any:
    shape = list(data.shape)
    for a, n in zip(axis, size, strict=True):
        shape[a] = n
    return np.broadcast_to(data, tuple(shape))


def _broadcast_to(data: Any, shape: Any) -> Any:
    """1.x's: 0 keeps a dimension."""
    own = (1,) * (len(shape) - data.ndim) + tuple(data.shape)
    kept = tuple(n if n > 0 else o for n, o in zip(shape, own, strict=True))
    return np.broadcast_to(data, kept)


def _depth_to_space(data: Any, block_size: int) -> Any:
    n, c, h, w = data.shape
    b = block_size
    x = data.reshape((n, b, b, c // (b * b), h, w)).transpose((0, 3, 4, 1, 5, 2))
    return x.reshape((n, c // (b * b), h * b, w * b))


def _space_to_depth(data: Any, block_size: int) -> Any:
    n, c, h, w = data.shape
    b = block_size
    x = data.reshape((n, c, h // b, b, w // b, b)).transpose((0, 3, 5, 1, 2, 4))
    return x.reshape((n, c * b * b, h // b, w // b))


def _crop(*data: Any, offset: Any, h_w: Any, center_crop: bool) -> Any:
    x = data[0]
    h, w = data[1].shape[2:4] if len(data) > 1 else h_w
    top, left = ((x.shape[2] - h) // 2, (x.shape[3] - w) // 2) if center_crop else offset
    if not (0 <= top <= x.shape[2] - h and 0 <= left <= x.shape[3] - w):
        raise MXNetValueError(f"Crop: a window of {(h, w)} at {(top, left)} is not inside {x.shape[2:4]}")
    return x[:, :, top : top + h, left : left + w]


def _bounds_of(key: str) -> str:
    return f"begin:bounds end:bounds step:bounds={key}"


def _axis_rows() -> None:
    row("transpose", "data", "axes:shape?=()", _transpose)
    row("_npi_transpose _np_transpose", "a", "axes:shape?=None", _transpose)
    row(
        "SwapAxis swapaxes _npi_swapaxes",
        "data",
        "dim1:int=0 dim2:int=0",
        lambda x, dim1, dim2: np.swapaxes(x, dim1, dim2),
    )
    row(
        "_npi_moveaxis _np_moveaxis",
        "a",
        "source:shape destination:shape",
        lambda x, source, destination: np.moveaxis(x, source, destination),
    )
    row(
        "_npi_rollaxis",
        "data",
        "axis:int start:int=0",
        lambda x, axis, start: np.rollaxis(x, axis, start),
    )
    row("expand_dims _npi_expand_dims", "data", "axis:int", lambda x, axis: np.expand_dims(x, axis))
    row("squeeze", "data", "axis:shape?=None", lambda x, axis: np.squeeze(x, axis or None))
    row("_npi_squeeze _np_squeeze", "a", "axis:shape?=None", lambda x, axis: np.squeeze(x, axis))
    row("reverse flip", "data", "axis:shape", lambda x, axis: np.flip(x, axis))
    row("_npi_flip", "data", "axis:shape", lambda x, axis: np.flip(x, axis))
    row("_npi_rot90", "data", "k:int=1 axes:shape?=None", lambda x, k, axes: np.rot90(x, k, axes or (0, 1)))
    row(
        "_npi_roll _np_roll",
        "data",
        "shift:shape?=None axis:shape?=None",
        lambda x, shift, axis: np.roll(x, shift if axis else shift[0], axis),
    )


def _slice_rows() -> None:
    row("slice _npi_slice _npx_slice crop", "data", _bounds_of("()"), _slice)
    row("slice_axis", "data", "axis:int begin:int end:int?", _slice_axis)
    row("slice_like _npx_slice_like", "data shape_like", "axes:shape=()", _slice_like)
    row(
        "SliceChannel split _npx_slice_channel",
        "data",
        "num_outputs:int axis:int=1 squeeze_axis:bool=0",
        _channels,
        outputs=_numbered,
    )
    row(
        "_split_v2 _npi_split _npi_array_split",
        "data",
        "indices:shape axis:int=1 squeeze_axis:bool=0 sections:int=0",
        _split,
        outputs=_split_outputs,
    )
    row("Crop", "*data", "offset:shape=(0,0) h_w:shape=(0,0) center_crop:bool=0", _crop)


def _join_rows() -> None:
    row(
        "Concat concat _npi_concatenate _rnn_param_concat _npi_rnn_param_concat",
        "*arg",
        "dim:int?=1",
        _concat,
    )
    row("stack _npi_stack", "*arg", "axis:int=0", lambda *xs, axis: np.stack(xs, axis))
    row("_npi_vstack", "*data", "", lambda *xs: np.vstack(xs))
    row("_npi_hstack", "*data", "dim:int?=1", lambda *xs, dim: np.hstack(xs))
    row("_npi_dstack", "*data", "dim:int?=1", lambda *xs, dim: np.dstack(xs))
    row("_npi_column_stack", "*data", "", lambda *xs: np.column_stack(xs))
    row("tile _npi_tile", "data", "reps:shape", lambda x, reps: np.tile(x, reps))
    row(
        "repeat _npi_repeat _np_repeat",
        "data",
        "repeats:int axis:int?=None",
        lambda x, repeats, axis: np.repeat(x, repeats, axis),
    )
    row(
        "_npi_repeats",
        "data",
        "repeats:shape axis:int?=None",
        lambda x, repeats, axis: np.repeat(x, repeats[0] if len(repeats) == 1 else list(repeats), axis),
    )
    row("Pad pad _npx_pad", "data", "mode:str pad_width:shape constant_value:float=0", _pad)
    row(
        "_npi_pad",
        "data",
        "pad_width:pairs mode:str=constant constant_values:float=0 reflect_type:str=even",
        _numpy_pad,
    )


def add_rows() -> None:
    """Adds the family's rows."""
    row(
        "Reshape reshape",
        "data",
        "shape:shape=() reverse:bool=0 target_shape:shape=() keep_highest:bool=0",
        _reshape,
    )
    row(
        "_npx_reshape _npi_reshape",
        "a",
        "newshape:shape reverse:bool=0 order:str=C",
        lambda x, newshape, reverse, order: npx.reshape(x, newshape, reverse, order),
    )
    row(
        "_np_reshape",
        "a",
        "newshape:shape order:str=C",
        lambda x, newshape, order: np.reshape(x, newshape, order),
    )
    row(
        "reshape_like _npx_reshape_like",
        "lhs rhs",
        "lhs_begin:int?=None lhs_end:int?=None rhs_begin:int?=None rhs_end:int?=None",
        npx.reshape_like,
    )
    row("Flatten flatten _npx_batch_flatten", "data", "", npx.batch_flatten)
    row("broadcast_to", "data", "shape:shape=()", _broadcast_to)
    row("_npi_broadcast_to", "array", "shape:shape=()", lambda x, shape: np.broadcast_to(x, shape))
    row("broadcast_axis broadcast_axes", "data", "axis:shape=() size:shape=()", _broadcast_axis)
    row(
        "broadcast_like _npx_broadcast_like",
        "lhs rhs",
        "lhs_axes:shape?=None rhs_axes:shape?=None",
        npx.broadcast_like,
    )
    for n in (1, 2, 3):
        row(f"_npi_atleast_{n}d _np_atleast_{n}d", "*arys", "", _atleast(n), outputs=_as_many)
    row("depth_to_space", "data", "block_size:int", _depth_to_space)
    row("space_to_depth", "data", "block_size:int", _space_to_depth)
    _axis_rows()
    _slice_rows()
    _join_rows()


def _as_many(attrs: dict, inputs: int) -> tuple[str, ...]:
    return tuple(f"output{i}" for i in range(inputs)) if inputs > 1 else ("output",)


def _atleast(n: int) -> Any:
    fn = getattr(np, f"atleast_{n}d")

    def run(*arys: Any) -> Any:
        found = fn(*arys)
        return tuple(found) if isinstance(found, (list, tuple)) else found

    return run
