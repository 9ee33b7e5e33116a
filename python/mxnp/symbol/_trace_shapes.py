"""Conversions of operations whose attributes are sizes. A size that is another one in the second trace follows the
batch: it is left open, copied from where it is an input's, or taken from an array that has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .symbol import Symbol

if TYPE_CHECKING:
    from ._trace import Traced, _Converter

Shape = tuple[int, ...]


def reshape(self: _Converter, index: int, node: Traced) -> Symbol:
    """A reshape; sizes that follow the batch are copied (-2) or left over (-1)."""
    first, second = self.sizes(index)
    x = self.operand(node["inputs"][0])
    return self.made("_npx_reshape", node, x, newshape=_open(self, node, first, second))


def _open(self: _Converter, node: Traced, first: Shape, second: Shape) -> Shape:
    source, source2 = (self.shape(node["inputs"][0], again) for again in (False, True))
    codes = list(first)
    if first == second and source == source2:
        return first
    leading = True
    for i, size in enumerate(first):
        leading = leading and i < len(source) and source[i] == size and source2[i] == second[i]
        if leading:
            codes[i] = -2
        elif second[i] != size:
            codes[i] = -1
    return tuple(codes) if codes.count(-1) <= 1 and 0 not in first else first


def full(self: _Converter, index: int, node: Traced) -> Symbol:
    """An array of one number."""
    first, second = self.sizes(index)
    key, dtype = node["inputs"][0], node["outputs"][0][1].name
    value = self.operand(key)
    if isinstance(value, Symbol):
        return spread(self, node, value, (self.shape(key), self.shape(key, True)), (first, second))
    follows = _following(self, first, second)
    sizes = tuple(1 if axis in follows else size for axis, size in enumerate(first))
    x = self.made("_full", node, shape=sizes, value=float(value), dtype=dtype)
    return _taking(self, node, x, follows)


def arange(self: _Converter, index: int, node: Traced) -> Symbol:
    """A range as long as the batch; one of another length is a constant, see `_Converter.fold`."""
    attrs, dtype = node["attrs"], node["outputs"][0][1]
    start, step = (attrs[f"int_{key}" if dtype.kind in "iu" else key] for key in ("start", "step"))
    ((other, axis),) = _following(self, *self.results(index)).values()
    other = self.made("Cast", node, other, dtype=dtype.name)
    return self.made("_contrib_arange_like", node, other, start=start, step=step, axis=axis)


def broadcast_to(self: _Converter, index: int, node: Traced) -> Symbol:
    """A broadcast to a shape."""
    key = node["inputs"][0]
    return spread(self, node, self.operand(key), (self.shape(key), self.shape(key, True)), self.sizes(index))


def spread(
    self: _Converter, node: Traced, x: Symbol, source: tuple[Shape, Shape], target: tuple[Shape, Shape]
) -> Symbol:
    """`x`, of the shape `source` in both traces, broadcast to the shape `target`."""
    if target[0] == target[1] and source[0] == source[1]:
        return self.made("_npi_broadcast_to", node, x, shape=target[0])
    follows, rank = _following(self, *target), len(target[0])
    before, before2 = ((1,) * (rank - len(shape)) + tuple(shape) for shape in source)
    for _ in range(rank - len(source[0])):
        x = self.made("expand_dims", node, x, axis=0)
    axes = [i for i in range(rank) if i not in follows and before[i] != target[0][i]]
    if axes:
        x = self.made("broadcast_axis", node, x, axis=axes, size=[target[0][i] for i in axes])
    return _taking(self, node, x, {i: at for i, at in follows.items() if before[i] == before2[i]})


def _taking(self: _Converter, node: Traced, x: Symbol, follows: dict[int, tuple[Symbol, int]]) -> Symbol:
    """`x` with some of its axes, of length 1, as long as those of arrays."""
    for axis, (other, theirs) in follows.items():
        x = self.made("broadcast_like", node, x, other, lhs_axes=(axis,), rhs_axes=(theirs,))
    return x


def _following(self: _Converter, first: Shape, second: Shape) -> dict[int, tuple[Symbol, int]]:
    """The axes whose size differs between the traces, each with an array and the axis of it that has its size."""
    found = {}
    for axis, sizes in enumerate(zip(first, second, strict=True)):
        place = self.place_of(sizes) if sizes[0] != sizes[1] else None
        if place is not None:
            found[axis] = place
    return found


def follows(self: _Converter, index: int) -> bool:
    """Whether the shape of a node's result follows the batch, each such size that of an array."""
    first, second = self.results(index)
    differing = [axis for axis, sizes in enumerate(zip(first, second, strict=True)) if sizes[0] != sizes[1]]
    return differing != [] and list(_following(self, first, second)) == differing


def as_result(self: _Converter, index: int, node: Traced, key: Any) -> Symbol:
    """An operand, symbol or number, broadcast to the shape of a node's result."""
    x = self.operand(key)
    if isinstance(x, Symbol):
        return spread(self, node, x, (self.shape(key), self.shape(key, True)), self.results(index))
    x = self.made("_full", node, shape=(), value=float(x), dtype=node["outputs"][0][1].name)
    return spread(self, node, x, ((), ()), self.results(index))


def basic_slice(self: _Converter, index: int, node: Traced) -> Symbol:
    """A basic index: ranges by `slice`, then the axes of integers dropped, then new axes put in."""
    x = self.operand(node["inputs"][0])
    sources = [self.shape(node["inputs"][0], again) for again in (False, True)]
    texts = [nodes[index]["attrs"]["index"].strip("[]").split(",") for nodes in (self.nodes, self.other)]
    ranges: list[tuple[int | None, int | None, int | None]] = []
    codes: list[int] = []
    fresh: list[int] = []
    at = 0
    for items in zip(*texts, strict=True):
        if items[0] == "None":
            fresh.append(at)
            at += 1
        elif items[0]:
            axis = len(codes)
            ranges.append(_range(items, (sources[0][axis], sources[1][axis])))
            codes.append(-2 if ":" in items[0] else -3)
            at += ":" in items[0]
    if any(item != (None, None, None) for item in ranges):
        begin, end, step = zip(*ranges, strict=True)
        x = self.made("slice", node, x, begin=begin, end=end, step=step)
    if -3 in codes:
        rest = [-4] if len(codes) < len(sources[0]) else []
        x = self.made("_npx_reshape", node, x, newshape=codes + rest)
    for axis in fresh:
        x = self.made("expand_dims", node, x, axis=axis)
    return x if codes or fresh else self.made("_copy", node, x)


def _range(items: tuple[str, ...], sizes: tuple[int, int]) -> tuple[int | None, int | None, int | None]:
    """Begin, end and step of `start:step:len` or a number, in both traces; all None for a whole axis.

    What is not the same in both, but as far from the end, is counted from the end.
    """
    parts = [[int(part) for part in item.split(":")] for item in items]
    starts = [part[0] for part in parts]
    step = parts[0][1] if len(parts[0]) == 3 else 1
    lengths = [part[2] if len(part) == 3 else 1 for part in parts]
    if all((starts[i], step, lengths[i]) == (0, 1, sizes[i]) for i in (0, 1)):
        return None, None, None
    if lengths == [0, 0]:
        return 0, 0, 1
    ends = [start + step * length for start, length in zip(starts, lengths, strict=True)]
    if step < 0 and starts == [size - 1 for size in sizes] and starts[0] != starts[1]:
        begin = None
    else:
        begin = _from_end(starts, sizes)
    return begin, _end(ends, step, sizes), step


def _end(ends: list[int], step: int, sizes: tuple[int, int]) -> int | None:
    """The end of a range whose next element would be at `ends` in the two traces."""
    if max(ends) < 0:
        return None
    if sizes[0] != sizes[1] and all(end >= size for end, size in zip(ends, sizes, strict=True)):
        return None  # steps beyond the last element, as many as there are
    if min(ends) < 0:  # an end that both ranges stop at
        both = set.intersection(*({*range(max(end, 0), end - step)} for end in ends))
        return min(both, default=None)
    return _from_end(ends, sizes)


def _from_end(places: list[int], sizes: tuple[int, int]) -> int | None:
    """A place that is the same in both traces, or as far from the end; the end itself is None."""
    first, second = (place - size for place, size in zip(places, sizes, strict=True))
    if places[0] == places[1] or first != second or first > 0:
        return places[0]
    return first or None
