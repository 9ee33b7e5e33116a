"""Modes and their decorators: `set_np`, `use_np` and the like; environment variables."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import Any

from . import _core
from ._missing import refuse as _refuse
from .device import num_gpus
from .error import MXNetValueError

__all__ = [
    "default_array",
    "dtype_from_number",
    "get_gpu_count",
    "getenv",
    "is_np_array",
    "is_np_default_dtype",
    "is_np_shape",
    "makedirs",
    "np_array",
    "np_default_dtype",
    "np_shape",
    "reset_np",
    "set_module",
    "set_np",
    "set_np_default_dtype",
    "set_np_shape",
    "setenv",
    "use_np",
    "use_np_array",
    "use_np_default_dtype",
    "use_np_shape",
]


class _Flags(threading.local):
    """MXNet's two switches. mxnp's arrays always have NumPy's shapes: they are kept for programs that ask."""

    shape = True
    array = True


_flags = _Flags()


def set_np(shape: bool = True, array: bool = True, dtype: bool = False) -> None:
    """NumPy semantics, which mxnp always has; `dtype=True` makes NumPy's default dtypes the defaults too.

    >>> npx.set_np(dtype=True); np.array([1, 2]).dtype
    dtype('int64')
    >>> npx.set_np(); np.array([1, 2]).dtype
    dtype('float32')
    """
    if array and not shape:
        raise MXNetValueError("NumPy Shape semantics is required in using NumPy array semantics.")
    _flags.shape, _flags.array = bool(shape), bool(array)
    _core.set_numpy_dtype(bool(dtype))


def reset_np() -> None:
    """MXNet's state before `set_np`: the default dtype is float32.

    >>> npx.reset_np()
    >>> npx.is_np_array()
    False
    >>> npx.set_np()
    """
    set_np(shape=False, array=False, dtype=False)


def is_np_shape() -> bool:
    """Whether shapes are NumPy's: True until `reset_np`.

    >>> npx.is_np_shape()
    True
    """
    return _flags.shape


def is_np_array() -> bool:
    """Whether arrays are NumPy's: True until `reset_np`.

    >>> npx.is_np_array()
    True
    """
    return _flags.array


def is_np_default_dtype() -> bool:
    """Whether data without a dtype gets NumPy's default dtypes.

    >>> npx.is_np_default_dtype()
    False
    """
    return _core.is_numpy_dtype()


def set_np_shape(active: bool) -> bool:
    """Sets the shape flag and gives the former one.

    >>> npx.set_np_shape(True)
    True
    """
    before, _flags.shape = _flags.shape, bool(active)
    return before


def set_np_default_dtype(is_np_default_dtype: bool = True) -> bool:
    """Sets whether NumPy's default dtypes are the defaults, and gives the former setting.

    >>> before = npx.set_np_default_dtype(True)
    >>> np.ones(1).dtype, before
    (dtype('float64'), False)
    >>> npx.set_np_default_dtype(before)
    True
    """
    return _core.set_numpy_dtype(bool(is_np_default_dtype))


def _set_array(active: bool) -> bool:
    before, _flags.array = _flags.array, bool(active)
    return before


class _Flag:
    """A with-block with one of the switches set; also a decorator."""

    def __init__(self, setter: Callable[[bool], bool], active: bool) -> None:
        self._setter, self._active = setter, active
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(self._setter(self._active))

    def __exit__(self, *error: object) -> None:
        self._setter(self._before.pop())


def np_shape(active: bool = True) -> _Flag:
    """A with-block with the shape flag set.

    >>> with mx.util.np_shape(True):
    ...     print(mx.util.is_np_shape())
    True
    """
    return _Flag(set_np_shape, active)


def np_array(active: bool = True) -> _Flag:
    """A with-block with the array flag set.

    >>> with mx.util.np_array(True):
    ...     print(mx.util.is_np_array())
    True
    """
    return _Flag(_set_array, active)


def np_default_dtype(active: bool = True) -> _Flag:
    """A with-block with NumPy's default dtypes.

    >>> with mx.util.np_default_dtype():
    ...     np.ones(1).dtype
    dtype('float64')
    """
    return _Flag(set_np_default_dtype, active)


def _within(make: Callable[[], _Flag], target: Any) -> Any:
    """A function, or the methods of a class that MXNet wraps, run inside the block `make` gives."""
    if isinstance(target, type):
        for name in ("__init__", "forward", "hybrid_forward"):
            method = target.__dict__.get(name)
            if callable(method):
                setattr(target, name, _within(make, method))
        return target
    if not callable(target):
        raise MXNetValueError(f"use_np and its parts decorate functions and classes, got {target!r}")

    @functools.wraps(target)
    def inside(*args: Any, **kwargs: Any) -> Any:
        with make():
            return target(*args, **kwargs)

    return inside


def use_np_shape(func: Any) -> Any:
    """Decorator: the function, or the class's methods, run with the shape flag set.

    >>> @mx.util.use_np_shape
    ... def shaped():
    ...     return npx.is_np_shape()
    >>> shaped()
    True
    """
    return _within(np_shape, func)


def use_np_array(func: Any) -> Any:
    """Decorator: the function, or the class's methods, run with the array flag set.

    >>> @mx.util.use_np_array
    ... def made():
    ...     return npx.is_np_array()
    >>> made()
    True
    """
    return _within(np_array, func)


def use_np_default_dtype(func: Any) -> Any:
    """Decorator: the function, or the class's methods, run with NumPy's default dtypes.

    >>> @mx.util.use_np_default_dtype
    ... def made():
    ...     return np.ones(1).dtype
    >>> made(), np.ones(1).dtype
    (dtype('float64'), dtype('float32'))
    """
    return _within(np_default_dtype, func)


def use_np(func: Any) -> Any:
    """Decorator: the function or class runs with NumPy's semantics, as everything in mxnp does.

    >>> @mx.util.use_np
    ... def twice(x):
    ...     return 2 * x
    >>> twice(np.ones(1))
    array([2.])
    """
    return use_np_shape(use_np_array(func))


def set_module(module: str) -> Callable[[Any], Any]:
    """Decorator: `__module__` of the function or class becomes `module`.

    >>> @mx.util.set_module("elsewhere")
    ... def function():
    ...     pass
    >>> function.__module__
    'elsewhere'
    """

    def mark(target: Any) -> Any:
        if module is not None:
            target.__module__ = module
        return target

    return mark


def getenv(name: str) -> str | None:
    """The environment variable `name`, None where it is not set.

    >>> mx.util.getenv("MXNP_EXAMPLE") is None
    True
    """
    return os.environ.get(name)


def setenv(name: str, value: str | None) -> None:
    """Sets the environment variable `name`, or removes it where `value` is None.

    >>> mx.util.setenv("MXNP_EXAMPLE", "1")
    >>> mx.util.getenv("MXNP_EXAMPLE")
    '1'
    >>> mx.util.setenv("MXNP_EXAMPLE", None)
    """
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = str(value)


def makedirs(d: str | os.PathLike[str]) -> None:
    """Makes the folder `d` and those above it, where they are not there yet.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as home:
    ...     mx.util.makedirs(home + "/a/b")
    ...     print(os.path.isdir(home + "/a/b"))
    True
    """
    os.makedirs(os.path.expanduser(d), exist_ok=True)


def get_gpu_count() -> int:
    """The number of usable GPUs.

    >>> mx.util.get_gpu_count() == mx.num_gpus()
    True
    """
    return num_gpus()


def default_array(source_array: Any, device: Any = None, dtype: Any = None, ctx: Any = None) -> _core.ndarray:
    """`np.array` under its name in MXNet's util.

    >>> mx.util.default_array([1, 2])
    array([1., 2.])
    """
    return _core.array(source_array, dtype, device if ctx is None else ctx)


def dtype_from_number(number: Any) -> Any:
    """The dtype a Python or NumPy number gets as an array.

    >>> mx.util.dtype_from_number(1.5)
    dtype('float32')
    """
    return _core.array(number).dtype


__getattr__ = _refuse(__name__)
