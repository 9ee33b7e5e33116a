"""Joining and splitting arrays, repeating, rolling and padding."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as onp

from mxnp._core import ndarray
from mxnp.error import MXNetTypeError, MXNetValueError

from ._table import as_array, as_mxnet, integer, look, normalize_axis, op
from .shape import atleast_1d, atleast_2d, atleast_3d

_CONCATENATE, _STACK, _REPEAT, _TILE = op("concatenate"), op("stack"), op("repeat"), op("tile")
_ROLL, _PAD, _TAKE = op("roll"), op("pad"), op("take")


def concatenate(
    arrays: Any,
    /,
    axis: int | None = 0,
    out: ndarray | None = None,
    *,
    dtype: Any = None,
    casting: str = "same_kind",
) -> ndarray:
    """The arrays one after another along `axis` (None: flattened first); other axes must agree.

    >>> np.concatenate((np.array([1, 2]), np.array([3])))
    array([1., 2., 3.])
    """
    parts = [as_array(a) for a in _sequence(arrays)]
    if axis is None:
        parts, axis = [part.ravel() for part in parts], 0
    if dtype is not None:
        parts = [part.astype(dtype, casting=casting, copy=False) for part in parts]
    if not parts:
        raise MXNetValueError("need at least one array to concatenate")
    return _CONCATENATE(*parts, axis=axis, out=out)


def concat(arrays: Any, /, axis: int | None = 0, out: ndarray | None = None) -> ndarray:
    """Another name of `concatenate`.

    >>> np.concat((np.array([1]), np.array([2])))
    array([1., 2.])
    """
    return concatenate(arrays, axis, out)


def _sequence(arrays: Any) -> Any:
    if isinstance(arrays, (list, tuple, ndarray, onp.ndarray)):
        return arrays
    raise MXNetTypeError('arrays to stack must be passed as a "sequence" type such as list or tuple.')


def stack(
    arrays: Any, axis: int = 0, out: ndarray | None = None, *, dtype: Any = None, casting: str = "same_kind"
) -> ndarray:
    """The arrays, of one shape, joined along a new axis at `axis`.

    >>> np.stack((np.array([1, 2]), np.array([3, 4])))
    array([[1., 2.],
           [3., 4.]])
    """
    parts = [as_array(a) for a in _sequence(arrays)]
    if not parts:
        raise MXNetValueError("need at least one array to stack")
    if dtype is not None:
        parts = [part.astype(dtype, casting=casting, copy=False) for part in parts]
    return _STACK(*parts, axis=axis, out=out)


def _tuple(arrays: Any) -> tuple:
    return arrays if isinstance(arrays, tuple) else (arrays,)


def vstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> ndarray:
    """The arrays below one another: joined along the first axis, vectors as rows.

    >>> np.vstack((np.array([1, 2]), np.array([3, 4])))
    array([[1., 2.],
           [3., 4.]])
    """
    return concatenate(_tuple(atleast_2d(*_sequence(tup))), 0, dtype=dtype, casting=casting)


def row_stack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> ndarray:
    """Another name of `vstack`.

    >>> np.row_stack((np.array([1]), np.array([2]))).shape
    (2, 1)
    """
    return vstack(tup, dtype=dtype, casting=casting)


def hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> ndarray:
    """The arrays side by side: joined along the second axis, vectors along their only one.

    >>> np.hstack((np.array([1, 2]), np.array([3])))
    array([1., 2., 3.])
    """
    parts = _tuple(atleast_1d(*_sequence(tup)))
    return concatenate(parts, 0 if parts and parts[0].ndim == 1 else 1, dtype=dtype, casting=casting)


def dstack(tup: Any) -> ndarray:
    """The arrays behind one another: joined along the third axis.

    >>> np.dstack((np.array([1, 2]), np.array([3, 4]))).shape
    (1, 2, 2)
    """
    return concatenate(_tuple(atleast_3d(*_sequence(tup))), 2)


def column_stack(tup: Any) -> ndarray:
    """The arrays side by side, vectors as columns.

    >>> np.column_stack((np.array([1, 2]), np.array([3, 4])))
    array([[1., 3.],
           [2., 4.]])
    """
    arrays = [as_array(a) for a in _sequence(tup)]
    return concatenate([a if a.ndim > 1 else a.reshape((-1, 1)) for a in arrays], 1)


def append(arr: Any, values: Any, axis: int | None = None) -> ndarray:
    """`arr` followed by `values` along `axis` (None: both flattened).

    >>> np.append(np.array([1, 2]), 3)
    array([1., 2., 3.])
    """
    return concatenate((as_array(arr), as_array(values)), axis)


def delete(arr: Any, obj: Any, axis: int | None = None) -> ndarray:
    """`arr` without the entries `obj` (an index, a slice, or several indices or bools) along `axis` (None: flattened).

    >>> np.delete(np.array([1, 2, 3]), 1)
    array([1., 3.])
    """
    x = as_array(arr)
    x, axis = (x.ravel(), 0) if axis is None else (x, normalize_axis(axis, x.ndim))
    gone = look(obj) if isinstance(obj, ndarray) else obj
    with as_mxnet("delete"):
        kept = onp.delete(onp.arange(x.shape[axis]), gone)
    return _TAKE(x, kept, axis=axis)


def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> ndarray:
    """`arr` with `values` put in before the positions `obj` along `axis` (None: flattened).

    >>> np.insert(np.array([1, 3]), 1, 2)
    array([1., 2., 3.])
    """
    x = as_array(arr)
    x, axis = (x.ravel(), 0) if axis is None else (x, normalize_axis(axis, x.ndim))
    place = look(obj) if isinstance(obj, ndarray) else obj
    new = as_array(values).astype(x.dtype, copy=False)
    scalar = isinstance(place, (int, onp.integer))
    if scalar and new.ndim and new.ndim >= x.ndim:
        count = new.shape[0 if axis == 0 else axis - x.ndim] if new.ndim == x.ndim else 1
        place = onp.full(count, place)
    elif scalar:
        new = new.reshape(new.shape if new.ndim else (1,) * x.ndim)
        if new.ndim < x.ndim:
            new = new.expand_dims(axis) if new.ndim == x.ndim - 1 else new
    # NumPy says which entry of the result comes from where: -1 and below are the new ones.
    size = x.shape[axis]
    places = onp.atleast_1d(onp.asarray(place))
    if places.dtype != bool:
        places = places.astype("int64") if places.size == 0 else places
    with as_mxnet("insert"):
        order = onp.insert(
            onp.arange(size),
            place if not scalar else int(place),
            size + onp.arange(len(places)) if not scalar else size,
        )
    shape = list(x.shape)
    shape[axis] = len(order) - size
    return _TAKE(_CONCATENATE(x, new.broadcast_to(tuple(shape)), axis=axis), order, axis=axis)


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[ndarray]:
    """`ary` cut along `axis` into that many parts of nearly equal size, or before the given indices: views.

    >>> np.array_split(np.arange(3), 2)
    [array([0., 1.]), array([2.])]
    """
    x = as_array(ary)
    axis = normalize_axis(axis, x.ndim)
    total = x.shape[axis]
    sections = indices_or_sections
    if hasattr(sections, "tolist"):
        sections = (look(sections) if isinstance(sections, ndarray) else sections).tolist()
    if isinstance(sections, Sequence):
        bounds = [0, *(integer(i) for i in sections), total]
    else:
        count = integer(sections)
        if count <= 0:
            raise MXNetValueError("number sections must be larger than 0.")
        each, extra = divmod(total, count)
        bounds = [i * each + min(i, extra) for i in range(count + 1)]
    lead = (slice(None),) * axis
    return [x[(*lead, slice(start, stop))] for start, stop in itertools.pairwise(bounds)]


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[ndarray]:
    """`array_split` into parts of equal size. Raises ValueError where the division is not even.

    >>> np.split(np.arange(4), 2)
    [array([0., 1.]), array([2., 3.])]
    """
    x = as_array(ary)
    if not hasattr(indices_or_sections, "__len__") or (
        hasattr(indices_or_sections, "ndim") and indices_or_sections.ndim == 0
    ):
        count = integer(indices_or_sections)
        if count <= 0:
            raise MXNetValueError("number sections must be larger than 0.")
        if x.shape[normalize_axis(axis, x.ndim)] % count:
            raise MXNetValueError("array split does not result in an equal division")
    return array_split(x, indices_or_sections, axis)


def _need(x: ndarray, ndim: int, name: str) -> None:
    if x.ndim < ndim:
        raise MXNetValueError(f"{name} only works on arrays of {ndim} or more dimensions")


def hsplit(ary: Any, indices_or_sections: Any) -> list[ndarray]:
    """`split` along the second axis, of a vector along its only one.

    >>> np.hsplit(np.array([[1, 2]]), 2)
    [array([[1.]]), array([[2.]])]
    """
    x = as_array(ary)
    _need(x, 1, "hsplit")
    return split(x, indices_or_sections, 1 if x.ndim > 1 else 0)


def vsplit(ary: Any, indices_or_sections: Any) -> list[ndarray]:
    """`split` along the first axis.

    >>> np.vsplit(np.array([[1], [2]]), 2)
    [array([[1.]]), array([[2.]])]
    """
    x = as_array(ary)
    _need(x, 2, "vsplit")
    return split(x, indices_or_sections, 0)


def dsplit(ary: Any, indices_or_sections: Any) -> list[ndarray]:
    """`split` along the third axis.

    >>> [x.shape for x in np.dsplit(np.ones((1, 1, 2)), 2)]
    [(1, 1, 1), (1, 1, 1)]
    """
    x = as_array(ary)
    _need(x, 3, "dsplit")
    return split(x, indices_or_sections, 2)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[ndarray, ...]:
    """The parts of `x` along `axis`, without it: views.

    >>> np.unstack(np.array([[1], [2]]))
    (array([1.]), array([2.]))
    """
    a = as_array(x)
    if a.ndim == 0:
        raise MXNetValueError("Input array must be at least 1-d.")
    return tuple(part for part in _moved(a, normalize_axis(axis, a.ndim)))


def _moved(a: ndarray, axis: int) -> ndarray:
    return a.transpose([axis, *(i for i in range(a.ndim) if i != axis)])


def repeat(a: Any, repeats: Any, axis: int | None = None) -> ndarray:
    """Each element of `a` repeated along `axis` (None: flattened); `repeats` is a number or one for each element.

    >>> np.repeat(np.array([1, 2]), 2)
    array([1., 1., 2., 2.])
    """
    x = as_array(a)
    x, axis = (x.ravel(), 0) if axis is None else (x, normalize_axis(axis, x.ndim))
    counts = onp.asarray(look(repeats) if isinstance(repeats, ndarray) else repeats)
    if counts.size == 1:
        count = counts.item()
        if count < 0:
            raise MXNetValueError("repeats may not contain negative values.")
        return _REPEAT(x, repeats=int(count), axis=axis)
    if counts.shape != (x.shape[axis],):
        raise MXNetValueError(
            f"operands could not be broadcast together with shape ({x.shape[axis]},) {counts.shape}"
        )
    if (counts < 0).any():
        raise MXNetValueError("repeats may not contain negative values.")
    return _TAKE(x, onp.repeat(onp.arange(x.shape[axis]), counts.astype("int64")), axis=axis)


def tile(A: Any, reps: Any) -> ndarray:
    """`A` repeated as a whole, `reps` times along each axis.

    >>> np.tile(np.array([1, 2]), 2)
    array([1., 2., 1., 2.])
    """
    counts = (look(reps) if isinstance(reps, ndarray) else reps).tolist() if hasattr(reps, "tolist") else reps
    counts = tuple(counts) if isinstance(counts, Sequence) else (integer(counts),)
    return _TILE(as_array(A), reps=counts)


def roll(a: Any, shift: Any, axis: Any = None) -> ndarray:
    """The elements moved by `shift` places along `axis` (None: in the flattened array), the last coming to the front.

    >>> np.roll(np.arange(4), 1)
    array([3., 0., 1., 2.])
    """
    x = as_array(a)
    if axis is None:
        return roll(x.ravel(), shift, 0).reshape(x.shape)
    axes = axis if isinstance(axis, Sequence) else (axis,)
    shifts = shift if isinstance(shift, Sequence) else (shift,)
    if len(axes) == 1 or len(shifts) == 1:
        count = max(len(axes), len(shifts))
        axes = tuple(axes) * (count // len(axes))
        shifts = tuple(shifts) * (count // len(shifts))
    elif len(axes) != len(shifts):
        raise MXNetValueError("'shift' and 'axis' should be scalars or 1D sequences")
    totals: dict[int, int] = {}
    for one, places in zip(axes, shifts, strict=True):
        one = normalize_axis(one, x.ndim)
        totals[one] = totals.get(one, 0) + integer(places)
    return _ROLL(x, shift=tuple(totals.values()), axis=tuple(totals))


def pad(x: Any, pad_width: Any = None, mode: str = "constant", **kwargs: Any) -> ndarray:
    """`x` with `pad_width` elements before and after each axis: a number, (before, after), or a pair for each axis.

    `mode`: 'constant' (with `constant_values`, by default 0), 'edge', 'reflect', 'symmetric' or 'wrap'.

    >>> np.pad(np.array([1, 2]), 1)
    array([0., 1., 2., 0.])
    """
    a = as_array(x)
    widths = _pairs(pad_width, a.ndim, "pad_width")
    if min((n for pair in widths for n in pair), default=0) < 0:
        raise MXNetValueError("index can't contain negative values")
    if mode == "constant":
        return _pad_constant(a, widths, kwargs.pop("constant_values", 0), kwargs)
    if mode not in ("edge", "reflect", "symmetric", "wrap"):
        raise MXNetValueError(f"mode {mode!r} is not supported")
    if kwargs:
        raise MXNetValueError(f"unsupported keyword arguments for mode '{mode}': {set(kwargs)}")
    for axis, pair in enumerate(widths):
        if pair != (0, 0):
            if a.shape[axis] == 0:
                raise MXNetValueError(
                    f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'"
                )
            order = onp.pad(onp.arange(a.shape[axis]), pair, mode)  # type: ignore[call-overload]
            a = _TAKE(a, order, axis=axis)
    return a


def _pairs(value: Any, ndim: int, name: str) -> list[tuple[Any, Any]]:
    """A number, a pair, or a pair for each axis, as a pair for each axis."""
    given = onp.asarray(look(value) if isinstance(value, ndarray) else value)
    if name == "pad_width" and given.dtype.kind not in "iu":
        raise MXNetTypeError("`pad_width` must be of integral type.")
    try:
        return [tuple(row) for row in onp.broadcast_to(given, (ndim, 2)).tolist()]
    except ValueError:
        raise MXNetValueError(
            f"operands could not be broadcast together: {name} {value!r}, {ndim} axes"
        ) from None


def _pad_constant(a: ndarray, widths: list, values: Any, rest: dict) -> ndarray:
    if rest:
        raise MXNetValueError(f"unsupported keyword arguments for mode 'constant': {set(rest)}")
    if isinstance(values, (int, float, complex)) or getattr(values, "ndim", None) == 0:
        return _PAD(a, values, pad_width=tuple(n for pair in widths for n in pair))
    for axis, (pair, fill) in enumerate(zip(widths, _pairs(values, a.ndim, "constant_values"), strict=True)):
        for side in (0, 1):
            width = [0] * (2 * a.ndim)
            width[2 * axis + side] = pair[side]
            a = _PAD(a, fill[side], pad_width=width)
    return a


def resize(a: Any, new_shape: Any) -> ndarray:
    """The elements of `a`, repeated as often as needed, in the shape `new_shape`.

    >>> np.resize(np.array([1, 2]), (3,))
    array([1., 2., 1.])
    """
    from ._table import shape_of
    from .create import zeros

    x, shape = as_array(a).ravel(), shape_of(new_shape)
    count = 1
    for n in shape:
        if n < 0:
            raise MXNetValueError("all elements of `new_shape` must be non-negative")
        count *= n
    if x.size == 0:
        return zeros(shape, x.dtype)
    return tile(x, -(-count // x.size))[:count].reshape(shape)


METHODS = (repeat, tile)
