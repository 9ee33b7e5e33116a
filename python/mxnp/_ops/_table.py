"""What the op tables are written with: looking up an op, making a universal function, and small argument helpers.

Knows no op and no family.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as onp

from mxnp import _core
from mxnp._core import Op, Ufunc, ndarray
from mxnp.error import (
    MXNetAxisError,
    MXNetError,
    MXNetIndexError,
    MXNetOverflowError,
    MXNetTypeError,
    MXNetValueError,
)

Axis = int | Sequence[int] | None


def op(name: str) -> Op:
    """The core's op called `name`, to be held in a module constant."""
    return _core.op(name)


_UNARY = "Takes any shape; integers become the default float where the result is not an integer."
_BINARY = "The operands broadcast together and are converted to their common dtype."


def ufunc(
    name: str, doc: str, example: str = "", *, op: str | None = None, signature: str | None = None
) -> Ufunc:
    """The universal function `name` of the elementwise op `op`, with `doc` (a sentence) and a runnable example."""
    nin = 2 if "x1" in doc or "x2" in doc else 1
    text = f"{doc}\n\n{_BINARY if nin == 2 else _UNARY} `out`, `where`, `dtype` and `casting` are NumPy's."
    if example:
        text += "\n\n" + "\n".join(line.strip() for line in example.strip().splitlines()) + "\n"
    return Ufunc(op or name, name, text, signature)


def as_array(x: Any) -> ndarray:
    """`x` where it is an array, else an array of it."""
    return x if isinstance(x, ndarray) else _core.asarray(x)


def integer(x: Any, name: str = "") -> int:
    """`x` as a Python integer. Raises TypeError, naming the argument, for anything else than a whole number's type."""
    try:
        return operator.index(x)
    except TypeError:
        prefix = f"{name}: " if name else ""
        text = f"{prefix}'{type(x).__name__}' object cannot be interpreted as an integer"
        raise MXNetTypeError(text) from None


@contextmanager
def as_mxnet(name: str) -> Iterator[None]:
    """What NumPy raises on the way is raised as mxnp's class of the same kind, naming the function `name`."""
    kinds = (
        (IndexError, MXNetIndexError),
        (OverflowError, MXNetOverflowError),
        (TypeError, MXNetTypeError),
        (ValueError, MXNetValueError),
    )
    try:
        yield
    except MXNetError:
        raise
    except (IndexError, OverflowError, TypeError, ValueError) as error:
        made = next(to for kind, to in kinds if isinstance(error, kind))
        raise made(f"{name}: {error}") from None


def normalize_axis(axis: int, ndim: int, name: str = "axis") -> int:
    """`axis` counted from 0. Raises AxisError where it is out of range."""
    number = integer(axis, name)
    if not -ndim <= number < ndim:
        prefix = f"{name}: " if name != "axis" else ""
        raise MXNetAxisError(f"{prefix}axis {number} is out of bounds for array of dimension {ndim}")
    return number % ndim if ndim else 0


def normalize_axes(axis: Axis, ndim: int, name: str = "axis") -> tuple[int, ...]:
    """The axes named by one number, several or None (all), each counted from 0."""
    if axis is None:
        return tuple(range(ndim))
    if not isinstance(axis, Sequence):
        return (normalize_axis(axis, ndim, name),)
    axes = tuple(normalize_axis(a, ndim, name) for a in axis)
    if len(set(axes)) != len(axes):
        raise MXNetValueError(f"repeated {name}" if name != "axis" else "duplicate value in 'axis'")
    return axes


def deliver(result: ndarray, out: Any) -> ndarray:
    """`result`, or `out` filled with it where one was given. Raises ValueError where the shapes differ."""
    if out is None:
        return result
    if not isinstance(out, ndarray):
        raise MXNetTypeError("return arrays must be of ArrayType (mxnp.np.ndarray)")
    if out.shape != result.shape:
        raise MXNetValueError(f"output array has shape {out.shape}, the result has {result.shape}")
    out[...] = result
    return out


def one_device(device: Any, ctx: Any) -> Any:
    """The device given as `device` or by 1.x's name `ctx`. Raises ValueError where both are."""
    if device is not None and ctx is not None:
        raise MXNetValueError("device and ctx are two names of one argument: give one of them")
    return ctx if device is None else device


def look(x: ndarray) -> onp.ndarray:
    """The data of `x`, for Python code that needs it; a block that is being compiled runs in Python then."""
    _core.end_trace("needs the data of an array in Python", x)
    return x.asnumpy()


def shape_of(shape: Any) -> tuple[int, ...]:
    """A shape given as an integer or a sequence of integers."""
    if isinstance(shape, (tuple, list)):
        for n in shape:
            if type(n) is not int:
                return tuple(integer(n, "shape") for n in shape)
        return tuple(shape)
    if isinstance(shape, ndarray) or hasattr(shape, "tolist"):
        values = (look(shape) if isinstance(shape, ndarray) else shape).tolist()
        values = values if isinstance(values, list) else [values]
        # Shapes computed in the default mode are float32: whole numbers are taken for what they mean.
        whole = [int(n) if isinstance(n, float) and n.is_integer() else n for n in values]
        return tuple(integer(n, "shape") for n in whole)
    if isinstance(shape, str) or not hasattr(shape, "__iter__"):
        return (integer(shape, "shape"),)
    return tuple(integer(n, "shape") for n in shape)
