"""Shapes and dtypes of a graph from those of some of its variables.

Parameters' shapes come from the operators' `fill`, results' from the operator itself: it is called in outline mode,
where arrays have shapes and nothing is computed. Unknown dimensions are -1 here; where some are, the operator is tried
with two sizes in their place, and what differs stays unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mxnp import _core, np
from mxnp.error import MXNetError, MXNetValueError

from . import _values
from ._node import Entry, Node, ordered
from ._run import compute, options
from ._spec import Shape

# Sizes tried in the place of unknown dimensions: both divide well and fit convolutions of usual kernels.
_TRIED = (96, 144)
# What reading an array of the outline mode raises.
_NO_CONTENTS = "no contents: only shapes are inferred here"


@dataclass
class Found:
    """What is known: by (node, output), shapes and dtypes."""

    shapes: dict[tuple[int, int], Shape] = field(default_factory=dict)
    types: dict[tuple[int, int], str | None] = field(default_factory=dict)


def is_known(shape: Shape) -> bool:
    """Whether every dimension is known."""
    return shape is not None and all(size >= 0 for size in shape)


def normal(shape: Sequence[int] | None, legacy: bool) -> Shape:
    """A shape with -1 for what is unknown; None where nothing is. 1.x writes 0, and () for nothing."""
    if shape is None or (legacy and len(shape) == 0):
        return None
    return tuple(-1 if size < 0 or (legacy and size == 0) else int(size) for size in shape)


def variable_attr(node: Node, key: str, read: Callable[[str], Any]) -> Any:
    """What a variable's attribute says, None where it has none. Raises MXNetError, naming both, for what is no such."""
    text = node.attrs.get(key)
    try:
        return None if text is None else read(text)
    except ValueError as error:
        raise MXNetError(f"variable '{node.name}': {key}: {error}, got {text!r:.60}") from None


def infer_types(heads: Sequence[Entry], given: Mapping[str, str], found: Found) -> None:
    """Fills `found.types`; variables that nothing decides stay None."""
    nodes = ordered(heads)
    for node in nodes:
        if node.spec is None:
            found.types[id(node), 0] = given.get(
                node.name, variable_attr(node, "__dtype__", _values.read_dtype)
            )
    for _ in range(2):  # parameters get their dtype from the data beside them, at first or the second time
        for node in nodes:
            if node.spec is not None:
                _types_of(node, found)


def _types_of(node: Node, found: Found) -> None:
    keys = [(id(child), output) for child, output in node.inputs]
    ins = [found.types.get(key) for key in keys]
    outs: list[str | None] = [None] * len(node.outputs())
    assert node.spec is not None
    if node.spec.types is not None:
        node.spec.types(ins, outs, node.values)
    else:
        known = next((each for each in ins if each is not None), None)
        ins = [each or known for each in ins]
        outs = [known] * len(outs)
    outs = outs + outs[-1:] * (len(node.outputs()) - len(outs))
    for key, value in zip(keys, ins, strict=True):
        found.types[key] = found.types.get(key) or value
    for i, value in enumerate(outs[: len(node.outputs())]):
        found.types[id(node), i] = value


def infer_shapes(heads: Sequence[Entry], given: Mapping[str, Shape], found: Found) -> None:
    """Fills `found.shapes` as far as it goes. Raises MXNetError, naming the node, where shapes contradict."""
    nodes = ordered(heads)
    for node in nodes:
        if node.spec is None:
            found.shapes[id(node), 0] = _variable_shape(node, given)
    before = -1
    while before != (now := _count_known(found)):
        before = now
        for node in nodes:
            if node.spec is not None:
                _shapes_of(node, found)
        for node in reversed(nodes):
            if node.spec is not None and node.spec.same:
                _share(node, found)


def _count_known(found: Found) -> int:
    return sum(1 + sum(size >= 0 for size in shape) for shape in found.shapes.values() if shape is not None)


def variable_shape(node: Node) -> Shape:
    """The shape that a variable's `__shape__` gives, None without one."""
    own = variable_attr(node, "__shape__", _values.known_shape)
    return None if own is None else normal(own, node.legacy)


def _variable_shape(node: Node, given: Mapping[str, Shape]) -> Shape:
    own = variable_shape(node)
    return _merged(f"variable '{node.name}'", given.get(node.name), own)


def _merged(where: str, one: Shape, other: Shape) -> Shape:
    """What two partial shapes say together. Raises MXNetError where they contradict."""
    if one is None or other is None:
        return one if other is None else other
    if len(one) != len(other) or any(a != b for a, b in zip(one, other, strict=True) if a >= 0 and b >= 0):
        raise MXNetValueError(f"{where}: Shape inconsistent, provided {one}, inferred {other}")
    return tuple(a if a >= 0 else b for a, b in zip(one, other, strict=True))


def _shapes_of(node: Node, found: Found) -> None:
    spec = node.spec
    assert spec is not None
    keys = [(id(child), output) for child, output in node.inputs]
    _share(node, found) if spec.same else None
    shapes = [found.shapes.get(key) for key in keys]
    if spec.fill is not None:
        wanted: list[Shape] = [shapes[0] if shapes else None, *([None] * (len(shapes) - 1))]
        spec.fill(wanted, node.values)
        where = f"node '{node.name}' ({node.op})"
        for i in range(1, len(shapes)):
            shapes[i] = _merged(f"{where}, input {node.input_names()[i]}", shapes[i], wanted[i])
            found.shapes[keys[i]] = shapes[i]
    if all(is_known(found.shapes.get((id(node), i))) for i in range(len(node.outputs()))):
        return
    if all(shape is not None for shape in shapes):
        results = _results(node, shapes, [found.types.get(key) for key in keys])
        for i, result in enumerate(results or ()):
            known = found.shapes.get((id(node), i))
            found.shapes[id(node), i] = _merged(f"node '{node.name}' ({node.op})", known, result)


def _share(node: Node, found: Found) -> None:
    """One shape for all inputs and outputs, from whichever knows more."""
    keys = [(id(child), output) for child, output in node.inputs]
    keys += [(id(node), i) for i in range(len(node.outputs()))]
    common: Shape = None
    for key in keys:
        common = _merged(f"node '{node.name}' ({node.op})", common, found.shapes.get(key))
    for key in keys:
        found.shapes[key] = common


def _results(node: Node, shapes: Sequence[Shape], types: Sequence[str | None]) -> list[Shape] | None:
    if all(is_known(shape) for shape in shapes):
        return _called(node, shapes, types)
    tries = []
    for size in _TRIED:
        filled = [tuple(size if n < 0 else n for n in shape or ()) for shape in shapes]
        try:
            tries.append(_called(node, filled, types))
        except MXNetError:
            return None  # it needs what is not known yet
    return [
        tuple(a if a == b else -1 for a, b in zip(one, other, strict=True))
        if one is not None and other is not None and len(one) == len(other)
        else None
        for one, other in zip(*tries, strict=True)
    ]


def _called(node: Node, shapes: Sequence[Shape], types: Sequence[str | None]) -> list[Shape]:
    """The outputs' shapes; unknown where the operator looks at its inputs' contents."""
    attrs = options(node)
    before = _core.set_outline(True)
    try:
        inputs: list[Any] = [
            np.empty(shape, dtype=dtype or "float32") for shape, dtype in zip(shapes, types, strict=True)
        ]
        return [tuple(array.shape) for array in compute(node, inputs, attrs)]
    except MXNetError as error:
        if _NO_CONTENTS in str(error):
            return [None] * len(node.outputs())
        raise
    finally:
        _core.set_outline(before)
