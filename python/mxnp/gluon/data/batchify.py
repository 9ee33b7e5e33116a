"""Functions that make a batch from a list of samples. They know samples, not datasets or workers."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as onp

from mxnp._repr import call_of
from mxnp.error import MXNetTypeError, MXNetValueError


def default_batchify_fn(data: Sequence) -> Any:
    """Stack samples along a new first axis; a batch of tuples is a list of stacked fields, of dicts a dict of them.

    Arrays keep their dtype; Python's ints become int64, its floats the default float dtype.

    >>> x, y = default_batchify_fn([(onp.ones(2, "float32"), 0), (onp.zeros(2, "float32"), 1)])
    >>> x.shape, y
    ((2, 2), array([0, 1], dtype=int64))
    """
    return to_mxnp(stack_samples(data))


def stack_samples(data: Sequence) -> Any:
    """As default_batchify_fn, but arrays that are NumPy's stay so: what a worker process computes and sends.

    >>> stack_samples([1.0, 2.0])
    array([1., 2.], dtype=float32)
    """
    if not len(data):
        raise MXNetValueError("batchify: there are no samples to stack")
    first = data[0]
    if isinstance(first, tuple):
        if any(len(sample) != len(first) for sample in data):
            raise MXNetValueError(
                f"batchify: samples have different numbers of fields, {sorted({len(s) for s in data})}"
            )
        return [stack_samples(field) for field in zip(*data, strict=True)]
    if isinstance(first, Mapping):
        return {key: stack_samples([sample[key] for sample in data]) for key in first}
    if is_mxnp(first):
        from mxnp import np

        _check_shapes(data)
        return np.stack(list(data))
    if isinstance(first, onp.ndarray):
        _check_shapes(data)
    array = onp.asarray(data)
    if array.dtype.kind not in "biufc" and array.dtype.name != "bfloat16":
        raise MXNetTypeError(
            f"batchify: cannot stack samples of type {type(first).__name__}\n"
            "hint: batchify.AsList() keeps them as a list"
        )
    untyped = array.dtype == onp.float64 and not hasattr(first, "dtype")
    return array.astype(_default_float()) if untyped else array


def to_mxnp(batch: Any) -> Any:
    """NumPy arrays in `batch` (lists, tuples and dicts are entered) as mxnp arrays of the same dtype.

    >>> to_mxnp([onp.ones(2, "int32")])
    [array([1, 1], dtype=int32)]
    """
    if isinstance(batch, onp.ndarray):
        from mxnp import np

        return np.array(batch, dtype=batch.dtype)
    if isinstance(batch, (list, tuple)):
        return [to_mxnp(part) for part in batch]
    if isinstance(batch, dict):
        return {key: to_mxnp(part) for key, part in batch.items()}
    return batch


class Stack:
    """Stack samples of one shape along a new first axis.

    >>> Stack()([[1, 2], [3, 4]]).shape
    (2, 2)
    """

    def __init__(self, use_shared_mem: bool = False):
        self._use_shared_mem = use_shared_mem

    def __repr__(self) -> str:
        return call_of(self)

    def __call__(self, data: Sequence) -> Any:
        """The stacked batch of `data`."""
        if is_mxnp(data[0]):
            return default_batchify_fn(data)
        arrays = [onp.asarray(item) for item in data]
        _check_shapes(arrays)
        return default_batchify_fn(data if isinstance(data[0], numbers.Number) else arrays)


class Pad:
    """Pad samples with `val` (0 when not given) at the end of each axis to a common shape, then stack them.

    `round_to` rounds each padded length up to a multiple. `dtype` is the samples' own when not given.

    >>> Pad(val=-1)([[1, 2], [3]]).asnumpy().tolist()
    [[1, 2], [3, -1]]
    """

    def __init__(
        self,
        val: float | None = None,
        dtype: Any = None,
        round_to: int | None = None,
        use_shared_mem: bool = False,
    ):
        self._pad_val = 0 if val is None else val
        self._dtype = dtype
        self._round_to = round_to
        self._use_shared_mem = use_shared_mem

    def __repr__(self) -> str:
        return call_of(self, val=self._pad_val)

    def __call__(self, data: Sequence) -> Any:
        """The padded batch of `data`."""
        arrays = [item.asnumpy() if is_mxnp(item) else onp.asarray(item) for item in data]
        if len({array.ndim for array in arrays}) != 1:
            raise MXNetValueError(f"Pad: samples have different numbers of dimensions, {_shapes(arrays)}")
        shape = [max(lengths) for lengths in zip(*(array.shape for array in arrays), strict=True)]
        if self._round_to:
            shape = [-(-length // self._round_to) * self._round_to for length in shape]
        dtype = self._dtype or onp.result_type(*arrays)
        out = onp.full([len(arrays), *shape], self._pad_val, dtype)
        for i, array in enumerate(arrays):
            where: tuple[Any, ...] = (i, *(slice(length) for length in array.shape))
            out[where] = array
        return to_mxnp(out)


class Append:
    """A list with each sample as an array of its own; `expand` adds a first axis of length 1 at `batch_axis`.

    >>> [x.shape for x in Append()([[1, 2], [3]])]
    [(1, 2), (1, 1)]
    """

    def __init__(self, expand: bool = True, batch_axis: int = 0, use_shared_mem: bool = False):
        self._expand = expand
        self._batch_axis = batch_axis
        self._use_shared_mem = use_shared_mem

    def __repr__(self) -> str:
        return call_of(self)

    def __call__(self, data: Sequence) -> list:
        """The list of arrays."""
        arrays = [item.asnumpy() if is_mxnp(item) else onp.asarray(item) for item in data]
        return to_mxnp([onp.expand_dims(a, self._batch_axis) if self._expand else a for a in arrays])


class Group:
    """One batch function `fn` for each field of the samples: `Group(Stack(), Pad())` or `Group([Stack(), Pad()])`.

    The batch is a tuple with what each function returns.

    >>> tokens, label = Group(Pad(), Stack())([([1, 2], 0), ([3], 1)])
    >>> tokens.shape, label
    ((2, 2), array([0, 1], dtype=int64))
    """

    def __init__(self, fn: Callable | Sequence[Callable], *args: Callable):
        self._fn = (fn, *args) if callable(fn) else tuple(fn)
        if not callable(fn) and args:
            raise MXNetValueError("Group: give the functions as arguments or as one list, not both")
        for i, each in enumerate(self._fn):
            if not callable(each):
                raise MXNetTypeError(
                    f"Group: function {i} is a {type(each).__name__}, which cannot be called"
                )

    def __repr__(self) -> str:
        return call_of(self)

    def __call__(self, data: Sequence) -> tuple:
        """The batch of each field of `data`."""
        if len(data[0]) != len(self._fn):
            raise AssertionError(f"Group: {len(self._fn)} functions for samples of {len(data[0])} fields")
        return tuple(fn([sample[i] for sample in data]) for i, fn in enumerate(self._fn))


class AsList:
    """The samples as they are, in a list.

    >>> AsList()(["a", "b"])
    ['a', 'b']
    """

    def __repr__(self) -> str:
        return call_of(self)

    def __call__(self, data: Sequence) -> list:
        """`data` as a list."""
        return list(data)


def is_mxnp(value: Any) -> bool:
    """Whether `value` is an mxnp array (told by its methods, so that nothing need be imported).

    >>> is_mxnp(np.ones(1)), is_mxnp(onp.ones(1))
    (True, False)
    """
    return hasattr(value, "asnumpy") and hasattr(value, "attach_grad")


def _check_shapes(arrays: Sequence) -> None:
    shape = arrays[0].shape
    for i, array in enumerate(arrays):
        if array.shape != shape:
            raise MXNetValueError(
                f"batchify: sample 0 has shape {shape}, but sample {i} has {array.shape}\n"
                "hint: batchify.Pad() pads samples to one shape"
            )


def _shapes(arrays: Sequence) -> list:
    return sorted({array.shape for array in arrays})


def _default_float() -> type:
    from mxnp import npx

    return onp.float64 if npx.is_np_default_dtype() else onp.float32
