"""`mx.sym.npx`: the functions of `npx` on symbols, under the operators that MXNet 2 writes for them."""

from __future__ import annotations

from functools import cache
from typing import Any

from . import _spec
from ._compose import call
from ._operators import apply


def gelu(data: Any, name: str | None = None) -> Any:
    """x times the standard normal distribution function of x."""
    from .numpy import _Symbol

    return apply("LeakyReLU", "leaky_relu", data, act_type="gelu", name=name, cls=_Symbol)


def silu(data: Any) -> Any:
    """x sigmoid(x), from two operators."""
    return data.as_np_ndarray() * function("sigmoid")(data)


def softrelu(data: Any, name: str | None = None) -> Any:
    """log(1 + exp(x))."""
    from .numpy import _Symbol

    return apply("Activation", "activation", data, act_type="softrelu", name=name, cls=_Symbol)


@cache
def function(name: str) -> Any:
    """The operator of `npx.name` as a function of symbols. AttributeError where there is none."""
    spec = _spec.find(f"_npx_{name}")
    if spec is None or name.startswith("_"):
        raise AttributeError(f"module 'mxnp.symbol.numpy_extension' has no function {name!r}")
    found = spec

    def made(*args: Any, **kwargs: Any) -> Any:
        from .numpy import _Symbol

        symbol = call(found, name, args, kwargs, _Symbol)
        return list(symbol) if len(symbol) > 1 and name in ("topk", "slice_channel") else symbol

    made.__name__ = made.__qualname__ = name
    made.__module__ = __name__
    made.__doc__ = f"`npx.{name}` on symbols: the operator {found.name}."
    return made


def __getattr__(name: str) -> Any:
    """The function of `npx` of this name, on symbols."""
    return function(name)
