"""Random shapes and arrays for tests, drawn from NumPy's global generator as MXNet's are, and small array helpers."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp


def random_arrays(*shapes: tuple[int, ...]) -> Any:
    """Standard normal float32 NumPy arrays, a list of them for several shapes.

    >>> [x.shape for x in random_arrays((2,), (3, 4))]
    [(2,), (3, 4)]
    """
    arrays = [onp.asarray(onp.random.randn(*shape), dtype=onp.float32) for shape in shapes]
    return arrays[0] if len(arrays) == 1 else arrays


def random_uniform_arrays(
    *shapes: tuple[int, ...], low: float = 0.0, high: float = 1.0, dtype: Any = "float32"
) -> list[onp.ndarray]:
    """Uniform NumPy arrays, always a list.

    >>> random_uniform_arrays((2, 3))[0].shape
    (2, 3)
    """
    return [onp.random.uniform(low, high, shape).astype(dtype) for shape in shapes]


def random_sample(population: Sequence, k: int) -> list:
    """`k` different items of `population`, in their order there.

    >>> sorted(random_sample(range(3), 3))
    [0, 1, 2]
    """
    return [population[i] for i in sorted(random.sample(range(len(population)), k))]


def rand_shape_nd(num_dim: int, dim: int = 10, allow_zero_size: bool = False) -> tuple[int, ...]:
    """A shape of `num_dim` lengths from 1 (0 with allow_zero_size) to `dim`.

    >>> len(rand_shape_nd(4))
    4
    """
    return tuple(int(n) for n in onp.random.randint(0 if allow_zero_size else 1, dim + 1, size=num_dim))


def rand_shape_2d(dim0: int = 10, dim1: int = 10, allow_zero_size: bool = False) -> tuple[int, int]:
    """A shape of two lengths up to dim0 and dim1.

    >>> len(rand_shape_2d())
    2
    """
    return rand_shape_nd(1, dim0, allow_zero_size)[0], rand_shape_nd(1, dim1, allow_zero_size)[0]


def rand_shape_3d(
    dim0: int = 10, dim1: int = 10, dim2: int = 10, allow_zero_size: bool = False
) -> tuple[int, int, int]:
    """A shape of three lengths up to dim0, dim1 and dim2.

    >>> max(rand_shape_3d(2, 2, 2)) <= 2
    True
    """
    return (*rand_shape_2d(dim0, dim1, allow_zero_size), rand_shape_nd(1, dim2, allow_zero_size)[0])


def rand_coord_2d(x_low: int, x_high: int, y_low: int, y_high: int) -> tuple[int, int]:
    """A pair of integers, the upper limits excluded.

    >>> x, y = rand_coord_2d(0, 3, 5, 8)
    >>> 0 <= x < 3 and 5 <= y < 8
    True
    """
    return int(onp.random.randint(x_low, x_high)), int(onp.random.randint(y_low, y_high))


def rand_ndarray(
    shape: tuple[int, ...],
    stype: str = "default",
    density: float | None = None,
    dtype: Any = None,
    modifier_func: Callable | None = None,
    shuffle_csr_indices: bool = False,
    distribution: str | None = None,
    ctx: Any = None,
) -> Any:
    """An mxnp array of uniform numbers from -1 to 1; dense only (`stype="default"`).

    >>> rand_ndarray((2, 3)).shape
    (2, 3)
    """
    if stype != "default":
        raise NotImplementedError(f"rand_ndarray: storage type {stype!r} is not there; 'default' is")
    from mxnp import np

    data = onp.random.uniform(-1, 1, shape)
    if modifier_func is not None:
        data = onp.vectorize(modifier_func)(data)
    array = np.array(data.astype(dtype or "float32"), dtype=dtype or "float32")
    return array if ctx is None else array.as_in_ctx(ctx)


def create_2d_np_tensor(rows: int, columns: int, dtype: Any = onp.int64) -> Any:
    """An mxnp array whose rows hold their own number.

    >>> create_2d_np_tensor(2, 3).tolist()
    [[0, 0, 0], [1, 1, 1]]
    """
    from mxnp import np

    return np.array(onp.arange(rows).reshape(rows, 1).repeat(columns, 1).astype(dtype), dtype=dtype)


def create_vector(size: int, dtype: Any = onp.int64) -> Any:
    """An mxnp array of 0 to size - 1.

    >>> create_vector(3).tolist()
    [0, 1, 2]
    """
    from mxnp import np

    return np.array(onp.arange(size, dtype=dtype), dtype=dtype)


def np_reduce(
    dat: onp.ndarray, axis: int | Sequence[int] | None, keepdims: bool, numpy_reduce_func: Callable
) -> Any:
    """Apply a NumPy reduction that takes one axis over several.

    >>> np_reduce(onp.ones((2, 3)), (0, 1), True, onp.sum)
    array([[6.]])
    """
    axes = range(dat.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    result = dat
    for each in sorted((a % dat.ndim for a in axes), reverse=True):
        result = numpy_reduce_func(result, axis=each)
    if keepdims:
        kept = [1 if i in {a % dat.ndim for a in axes} else n for i, n in enumerate(dat.shape)]
        result = onp.asarray(result).reshape(kept)
    return result


def collapse_sum_like(a: onp.ndarray, shape: tuple[int, ...]) -> onp.ndarray:
    """Sum `a` over the axes along which an array of `shape` would be broadcast to it.

    >>> collapse_sum_like(onp.ones((2, 3)), (3,))
    array([2., 2., 2.])
    """
    lead = a.ndim - len(shape)
    axes = (*range(lead), *(lead + i for i, n in enumerate(shape) if n == 1 and a.shape[lead + i] != 1))
    return onp.sum(a, axis=axes).reshape(shape)


def assign_each(the_input: Any, function: Callable | None) -> Any:
    """A NumPy array with `function` of each element.

    >>> assign_each(np.array([1, 2]), lambda x: x + 1)
    array([2., 3.], dtype=float32)
    """
    array = the_input.asnumpy() if hasattr(the_input, "asnumpy") else onp.asarray(the_input)
    return array if function is None else onp.vectorize(function)(array)


def assign_each2(input1: Any, input2: Any, function: Callable | None) -> Any:
    """A NumPy array with `function` of each pair of elements.

    >>> assign_each2(np.array([1, 2]), np.array([3, 4]), lambda x, y: x * y)
    array([3., 8.], dtype=float32)
    """
    first, second = (x.asnumpy() if hasattr(x, "asnumpy") else onp.asarray(x) for x in (input1, input2))
    return first if function is None else onp.vectorize(function)(first, second)
