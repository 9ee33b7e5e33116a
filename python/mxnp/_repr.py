"""How objects that are made by a call show themselves: as that call."""

from __future__ import annotations

import inspect
from typing import Any

_PLAIN = (bool, int, float, str, tuple, list, dict)


def call_of(thing: Any, **values: Any) -> str:
    """`Class(argument=value, ...)`: the arguments of `__init__` that `thing` keeps and that are not the default.

    An argument is looked for in `values`, then among the attributes `argument` and `_argument`; one that is kept
    under neither name, or as something that is long to show, is left out.
    """
    shown = []
    for name, parameter in inspect.signature(type(thing)).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        own = vars(thing)
        value = values.get(name, own.get(name, own.get(f"_{name}", parameter.empty)))
        if value is parameter.empty or _same(value, parameter.default):
            continue
        is_shown = isinstance(value, _PLAIN) or "object at 0x" not in repr(value)
        text = repr(value) if is_shown else getattr(value, "__name__", type(value).__name__)
        shown.append(f"{name}={text if len(text) <= 80 else text[:77] + '...'}")
    return f"{type(thing).__name__}({', '.join(shown)})"


def _same(value: Any, default: Any) -> bool:
    return value is default or (
        isinstance(value, _PLAIN) and type(value) is type(default) and value == default
    )
