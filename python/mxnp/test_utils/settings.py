"""Where tests run (device, dtype, environment variables) and how often (retry)."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as onp

from mxnp.util import getenv, setenv

_default_device: Any = None


def default_device() -> Any:
    """The device tests use: what set_default_device set, else the current one.

    >>> default_device()
    cpu(0)
    """
    from mxnp import device

    return _default_device if _default_device is not None else device.current_device()


def set_default_device(device: Any) -> None:
    """Make `device` the one that default_device() gives.

    >>> set_default_device(mx.cpu(1))
    >>> default_device()
    cpu(1)
    >>> set_default_device(mx.cpu(0))
    """
    global _default_device
    _default_device = device


default_context = default_device
set_default_context = set_default_device


def default_dtype() -> type:
    """The dtype of data without one: float32, or float64 in NumPy's mode.

    >>> default_dtype()
    <class 'numpy.float32'>
    """
    from mxnp import npx

    return onp.float64 if npx.is_np_default_dtype() else onp.float32


def use_np(func: Any) -> Any:
    """MXNet's decorator that turns NumPy semantics on; mxnp always has them, so `func` is returned as it is.

    >>> @use_np
    ... def twice(x):
    ...     return 2 * x
    >>> twice(np.ones(1))
    array([2.])
    """
    return func


def list_gpus() -> list[int]:
    """The numbers of the GPUs.

    >>> len(list_gpus()) == mx.num_gpus()
    True
    """
    from mxnp import device

    return list(range(device.num_gpus()))


@contextlib.contextmanager
def environment(*args: Any) -> Iterator[None]:
    """Set environment variables for a block: `environment(name, value)` or `environment({name: value, ...})`.

    None removes a variable. Afterwards all are as they were.

    >>> with environment("MXNP_EXAMPLE", "1"):
    ...     getenv("MXNP_EXAMPLE")
    '1'
    """
    if len(args) == 1 and isinstance(args[0], dict):
        wanted = args[0]
    elif len(args) == 2 and isinstance(args[0], str):
        wanted = {args[0]: args[1]}
    else:
        raise ValueError("environment: expected a name and a value, or one dict")
    before = {name: getenv(name) for name in wanted}
    try:
        for name, value in wanted.items():
            setenv(name, value)
        yield
    finally:
        for name, value in before.items():
            setenv(name, value)


def retry(n: int) -> Callable:
    """A decorator that calls a function up to `n` times until it raises no AssertionError; the last one counts.

    >>> tries = []
    >>> @retry(3)
    ... def flaky():
    ...     tries.append(1)
    ...     assert len(tries) == 2
    >>> flaky()
    >>> len(tries)
    2
    """
    if n < 1:
        raise ValueError(f"retry: n must be at least 1, but got {n}")

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            for _ in range(n - 1):
                with contextlib.suppress(AssertionError):
                    return function(*args, **kwargs)
            return function(*args, **kwargs)

        return wrapper

    return decorate
