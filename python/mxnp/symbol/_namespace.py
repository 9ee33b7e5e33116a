"""Namespaces whose functions are operators: each is made when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from . import _spec
from ._compose import call

# 1.x's prefixes that belong to namespaces of their own, or to MXNet 2.
_NOT_LEGACY = ("_npi_", "_npx_", "_np_")


@cache
def function(module: str, prefix: str, name: str) -> Callable[..., Any]:
    """The function `name` of `module`: the operator MXNet calls `prefix + name`. AttributeError where there is none."""
    spec = None
    if not name.startswith("__") and not name.startswith(_NOT_LEGACY):
        spec = _spec.find(prefix + name)
    if spec is None:
        like = [each for each in _spec.suggestions(prefix + name) if each.startswith(prefix)]
        hint = f"\nhint: similar: {', '.join(each.removeprefix(prefix) for each in like)}" if like else ""
        raise AttributeError(f"module {module!r} has no operator {name!r}{hint}")
    found = spec
    names = ", ".join(["*data"] if found.variadic else found.inputs)
    options = ", ".join(
        f"{a.name}" if a.required else f"{a.name}={a.default!r}" for a in found.attributes.values()
    )

    def operator(*args: Any, **kwargs: Any) -> Any:
        return call(found, name.lower(), args, kwargs)

    operator.__name__ = operator.__qualname__ = name
    operator.__module__ = module
    operator.__doc__ = f"The operator {found.name} of symbols ({names}) with the attributes ({options})."
    return operator
