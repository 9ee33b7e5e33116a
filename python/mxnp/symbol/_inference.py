"""`infer_shape` and `infer_type` as Symbol's methods give them: arguments matched, answers in MXNet's form."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as onp

from mxnp import util
from mxnp.error import MXNetError, MXNetTypeError

from . import _infer, _values
from ._node import Node, ordered, state_variables
from ._spec import Shape


def _given(symbol: Any, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The positional arguments under their names, and the keywords, without those that are None."""
    if args and kwargs:
        raise MXNetTypeError(f"{name}: give arguments in order or by name, not both")
    arguments = symbol.list_arguments()
    if len(args) > len(arguments):
        raise MXNetTypeError(f"{name}: there are {len(arguments)} arguments, got {len(args)}")
    known = set(symbol.list_inputs())
    for key in kwargs:
        if key not in known:
            raise MXNetError(f"{name}: there is no argument '{key}'; there are {', '.join(sorted(known))}")
    pairs = zip(arguments, args, strict=False) if args else kwargs.items()
    return {key: value for key, value in pairs if value is not None}


def _split(symbol: Any) -> tuple[list[Node], list[Node]]:
    """The variables that are arguments, and those that are auxiliary states."""
    nodes = ordered(symbol._entries)
    states = state_variables(nodes)
    variables = [node for node in nodes if node.spec is None]
    return [n for n in variables if id(n) not in states], [n for n in variables if id(n) in states]


def shapes(
    symbol: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], partial: bool
) -> tuple[Any, Any, Any]:
    """What `infer_shape` and `infer_shape_partial` answer."""
    legacy = not util.is_np_shape()
    given: dict[str, Shape] = {}
    for key, value in _given(symbol, "infer_shape", args, kwargs).items():
        if not isinstance(value, (tuple, list)) or not all(isinstance(n, (int, onp.integer)) for n in value):
            raise MXNetTypeError(f"infer_shape: expected a shape for '{key}', got {value!r}")
        given[key] = _infer.normal(value, legacy)
    found = _infer.Found()
    _infer.infer_types(symbol._entries, {}, found)
    _infer.infer_shapes(symbol._entries, given, found)
    arguments, states = _split(symbol)
    keys = [
        [(id(node), 0) for node in arguments],
        [(id(node), output) for node, output in symbol._entries],
        [(id(node), 0) for node in states],
    ]
    parts = [[found.shapes.get(key) for key in group] for group in keys]
    if not partial and not all(_infer.is_known(shape) for part in parts for shape in part):
        unknown = [
            f"\t{n.name}: {s}" for n, s in zip(arguments, parts[0], strict=True) if not _infer.is_known(s)
        ]
        if unknown:
            text = "\n".join(unknown)
            warnings.warn(
                "Cannot decide shape for the following arguments. Consider providing them as input:\n" + text,
                stacklevel=3,
            )
        return None, None, None
    first, second, third = ([_shown(shape, legacy) for shape in part] for part in parts)
    return first, second, third


def _shown(shape: Shape, legacy: bool) -> Shape:
    if not legacy:
        return shape
    return () if shape is None else tuple(0 if size < 0 else size for size in shape)


def types(
    symbol: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], partial: bool
) -> tuple[Any, Any, Any]:
    """What `infer_type` and `infer_type_partial` answer: classes such as numpy.float32."""
    given = {k: _values.dtype_name(v) for k, v in _given(symbol, "infer_type", args, kwargs).items()}
    found = _infer.Found()
    _infer.infer_types(symbol._entries, given, found)
    arguments, states = _split(symbol)
    first = [found.types.get((id(node), 0)) for node in arguments]
    second = [found.types.get((id(node), output)) for node, output in symbol._entries]
    third = [found.types.get((id(node), 0)) for node in states]
    if not partial and None in (*first, *second, *third):
        return None, None, None
    a, b, c = ([None if t is None else _class_of(t) for t in part] for part in (first, second, third))
    return a, b, c


def _class_of(name: str) -> Any:
    from mxnp import _core

    return _core.dtype(name).type
