"""`mx.sym.np.random`: draws whose parameters are numbers or symbols."""

from __future__ import annotations

from typing import Any

from ._compose import is_symbol
from ._operators import apply


def _draw(op: str, first: tuple[str, Any], second: tuple[str, Any], size: Any, dtype: Any) -> Any:
    from .numpy import _Symbol

    pairs = (first, second)
    arrays = [value for _, value in pairs if is_symbol(value)]
    numbers = {name: "None" if is_symbol(value) else float(value) for name, value in pairs}
    shape = (size,) if isinstance(size, int) else size
    hint = op.removeprefix("_npi_")
    return apply(op, hint, *arrays, size=shape, dtype=dtype, ctx="cpu(0)", cls=_Symbol, **numbers)


def uniform(low: Any = 0.0, high: Any = 1.0, size: Any = None, dtype: Any = None, **_: Any) -> Any:
    """Numbers from `low` to below `high`."""
    return _draw("_npi_uniform", ("low", low), ("high", high), size, dtype)


def normal(loc: Any = 0.0, scale: Any = 1.0, size: Any = None, dtype: Any = None, **_: Any) -> Any:
    """Normal numbers of mean `loc` and standard deviation `scale`."""
    return _draw("_npi_normal", ("loc", loc), ("scale", scale), size, dtype)
