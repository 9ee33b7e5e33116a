"""Calls of operators on symbols: arguments to inputs and attributes, names, and variables for inputs not given."""

from __future__ import annotations

from typing import Any

from mxnp import attribute, name, util
from mxnp.error import MXNetError, MXNetTypeError

from . import _values
from ._node import Entry, Node, variable
from ._spec import COUNTS, Spec, is_hidden


def is_symbol(value: Any) -> bool:
    """Whether `value` is a Symbol."""
    from .symbol import Symbol

    return isinstance(value, Symbol)


def _single(value: Any, spec: Spec) -> Entry:
    entries: list[Entry] = value._entries
    if len(entries) != 1:
        raise MXNetError(
            f"{spec.name}: a symbol of {len(entries)} outputs cannot be an input\nhint: choose one: symbol[0]"
        )
    return entries[0]


def call(
    spec: Spec, hint: str, args: tuple[Any, ...], kwargs: dict[str, Any], cls: type | None = None
) -> Any:
    """A symbol of `spec`; what `mx.sym.FullyConnected(data, num_hidden=10, name='fc1')` does.

    `hint` is what the name starts with when none is given. Positional arguments fill the inputs, then the attributes
    in MXNet's order.
    """
    given_name = kwargs.pop("name", None)
    attr = kwargs.pop("attr", None)
    kwargs.pop("out", None)
    entries: dict[str, Entry] = {}
    several: list[Entry] = []
    values: dict[str, Any] = {}
    if spec.variadic:
        several, args = _leading(spec, args)
    _positional(spec, args, entries, values)
    for key, value in kwargs.items():
        if is_symbol(value):
            entries[key] = _single(value, spec)
        elif isinstance(value, (list, tuple)) and value and all(is_symbol(v) for v in value):
            several = [_single(v, spec) for v in value]
        elif value is not None or (key in spec.attributes and spec.attributes[key].kind.endswith("?")):
            values[key] = value
    if spec.variadic and entries:
        several = [*several, *entries.values()]
    return _made(spec, hint, given_name, attr, entries, several, values, cls)


def _leading(spec: Spec, args: tuple[Any, ...]) -> tuple[list[Entry], tuple[Any, ...]]:
    if args and isinstance(args[0], (list, tuple)) and args[0] and is_symbol(args[0][0]):
        args = (*args[0], *args[1:])
    count = next((i for i, arg in enumerate(args) if not is_symbol(arg)), len(args))
    return [_single(arg, spec) for arg in args[:count]], args[count:]


def _positional(spec: Spec, args: tuple[Any, ...], entries: dict[str, Entry], values: dict[str, Any]) -> None:
    inputs = [] if spec.variadic else list(spec.inputs)
    attributes = list(spec.attributes)
    for arg in args:
        if is_symbol(arg):
            if not inputs:
                raise MXNetTypeError(f"{spec.name}: takes {len(spec.inputs)} inputs, got more")
            entries[inputs.pop(0)] = _single(arg, spec)
            continue
        if arg is None and inputs and not values:
            inputs.pop(0)
            continue
        inputs = []
        if not attributes:
            raise MXNetTypeError(f"{spec.name}: too many arguments, {arg!r} is left")
        values[attributes.pop(0)] = arg


def _made(
    spec: Spec,
    hint: str,
    given_name: str | None,
    attr: dict[str, str] | None,
    entries: dict[str, Entry],
    several: list[Entry],
    values: dict[str, Any],
    cls: type | None,
) -> Any:
    from .symbol import Symbol

    own = name.current().get(given_name, hint)
    scope = {**attribute.current(), **_strings(attr)}
    texts = {**scope, **{key: _values.write(value) for key, value in values.items() if key not in COUNTS}}
    _check_keys(spec, values, attr)
    if spec.variadic:
        texts["num_args"] = str(len(several))
    legacy = not util.is_np_shape()
    node = Node(spec, own, texts, several, legacy)
    if not spec.variadic:
        node.inputs = _inputs(node, entries, scope)
    names = node.outputs()
    return (cls or Symbol)([(node, i) for i in range(len(names))])


def _check_keys(spec: Spec, values: dict[str, Any], attr: dict[str, str] | None) -> None:
    for key in (*values, *(attr or ())):
        if key not in spec.attributes and key not in COUNTS and not is_hidden(key):
            known = ", ".join(spec.attributes) or "none"
            raise MXNetError(f"{spec.name}: there is no attribute '{key}'; it has {known}")


def _strings(attr: dict[str, str] | None) -> dict[str, str]:
    found = {}
    for key, value in (attr or {}).items():
        if not isinstance(value, str):
            raise MXNetTypeError(f"attributes of a symbol must be strings, got {value!r} for '{key}'")
        found[attribute.with_underscores(key)] = value
    return found


def _inputs(node: Node, entries: dict[str, Entry], scope: dict[str, str]) -> list[Entry]:
    """The node's inputs in order; a new variable `name_weight` where one is not given."""
    spec = node.spec
    assert spec is not None
    names = node.input_names()
    extra = [key for key in entries if key not in names]
    if extra:
        raise MXNetError(
            f"{spec.name}: there is no input '{extra[0]}'; it takes {', '.join(names) or 'none'}"
        )
    inputs = []
    for key in names:
        if key in entries:
            inputs.append(entries[key])
            continue
        attrs = dict(scope)
        if key in spec.states:
            attrs["__init__"] = f'["{spec.states[key]}", {{}}]'
        inputs.append((variable(f"{node.name}_{key}", attrs, node.legacy), 0))
    return inputs
