"""Workloads that move elements, each at three sizes: indexing by arrays and masks, joining, repeating, running sums.

What they have in common is an array of n elements, whatever its shape, so that a row reads as time per element.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy

from library import Library, trained, workload

SIZES = {"1e3": 10**3, "1e5": 10**5, "1e7": 10**7}
Call = Callable[[], Any]
Make = Callable[..., Call | None]


def sized(name: str, sizes: tuple[str, ...] = tuple(SIZES)) -> Callable[[Make], Make]:
    """Register a workload for each size."""

    def register(make: Make) -> Make:
        for size in sizes:
            workload(f"{name} {size}")(partial(make, n=SIZES[size]))
        return make

    return register


def integers(lib: Library, n: int, below: int, *shape: int) -> Any:
    """Random int64 numbers from 0 on."""
    return lib.array(numpy.random.default_rng(2).integers(0, below, shape or n))


def changed(lib: Library, array: Any, change: Callable[[Any], None]) -> Call:
    """A call that changes an array in place, and gives it to be waited for."""

    def run() -> Any:
        change(array)
        return array

    return run


@sized("a[i]")
def get(lib: Library, n: int) -> Call:
    """As many indices as elements."""
    a, at = lib.normal(n), integers(lib, n, n)
    return lambda: a[at]


@sized("a[i, j]")
def get_two(lib: Library, n: int) -> Call:
    """Two index arrays."""
    a, i, j = lib.normal(n // 100, 100), integers(lib, n, n // 100), integers(lib, n, 100)
    return lambda: a[i, j]


@sized("a[:, j]")
def get_columns(lib: Library, n: int) -> Call:
    """Columns of a matrix."""
    a, j = lib.normal(n // 100, 100), integers(lib, 50, 100)
    return lambda: a[:, j]


@sized("a[i] rows")
def get_rows(lib: Library, n: int) -> Call:
    """Rows of a matrix."""
    a, at = lib.normal(n // 50, 50), integers(lib, n // 50, n // 50)
    return lambda: a[at]


@sized("a[i] = v")
def put(lib: Library, n: int) -> Call:
    """Assignment at indices, some twice."""
    a, at, v = lib.normal(n), integers(lib, n, n), lib.normal(n)
    return changed(lib, a, lambda a: a.__setitem__(at, v))


@sized("a[i] = 1")
def put_number(lib: Library, n: int) -> Call:
    """One number at indices."""
    a, at = lib.normal(n), integers(lib, n, n)
    return changed(lib, a, lambda a: a.__setitem__(at, 1.0))


@sized("a[i] rows = v")
def put_rows(lib: Library, n: int) -> Call:
    """Assignment of rows."""
    a, at, v = lib.normal(n // 50, 50), integers(lib, n // 50, n // 50), lib.normal(n // 50, 50)
    return changed(lib, a, lambda a: a.__setitem__(at, v))


@sized("a[i] += v")
def add_at_once(lib: Library, n: int) -> Call:
    """Read, add, write: of equal indices one counts."""
    a, at, v = lib.normal(n), integers(lib, n, n), lib.normal(n)

    def change(a: Any) -> None:
        a[at] += v

    return changed(lib, a, change)


def adding(lib: Library, a: Any, at: Any, v: Any) -> Call:
    """Adding up at indices, where equal ones all count; in mxnp a new array."""
    if lib.name == "torch":
        return lambda: a.index_add_(0, at, v)
    if lib.name == "numpy":
        return changed(lib, a, lambda a: lib.np.add.at(a, at, v))
    at = at.reshape(1, -1)
    return lambda: lib.npx.index_add(a, at, v)


@sized("index_add")
def add(lib: Library, n: int) -> Call:
    """Single elements."""
    return adding(lib, lib.normal(n), integers(lib, n, n), lib.normal(n))


@sized("index_add to 1000")
def add_few(lib: Library, n: int) -> Call:
    """Many on each place: a histogram's loop."""
    return adding(lib, lib.normal(1000), integers(lib, n, 1000), lib.normal(n))


@sized("index_add rows")
def add_rows(lib: Library, n: int) -> Call:
    """Rows of 50."""
    m = n // 50
    return adding(lib, lib.normal(m, 50), integers(lib, m, m), lib.normal(m, 50))


@sized("take_along_axis 1")
def take_along(lib: Library, n: int) -> Call:
    """Along rows of 100."""
    a, at = lib.normal(n // 100, 100), integers(lib, n, 100, n // 100, 100)
    if lib.name == "torch":
        return lambda: lib.np.take_along_dim(a, at, 1)
    return lambda: lib.np.take_along_axis(a, at, 1)


@sized("take_along_axis 0")
def take_along_columns(lib: Library, n: int) -> Call:
    """Along columns."""
    a, at = lib.normal(n // 100, 100), integers(lib, n, n // 100, n // 100, 100)
    if lib.name == "torch":
        return lambda: lib.np.take_along_dim(a, at, 0)
    return lambda: lib.np.take_along_axis(a, at, 0)


@sized("pick")
def pick(lib: Library, n: int) -> Call:
    """One element of each row of ten."""
    a, at = lib.normal(n // 10, 10), integers(lib, n // 10, 10)
    if lib.name == "torch":
        return lambda: a.gather(1, at[:, None])
    rows = numpy.arange(n // 10)
    if lib.name == "numpy":
        return lambda: a[rows, at]
    return lambda: lib.npx.pick(a, at)


@sized("one_hot")
def one_hot(lib: Library, n: int) -> Call | None:
    """Of 100 classes."""
    at = integers(lib, n // 100, 100)
    if lib.name == "torch":
        return lambda: lib.np.nn.functional.one_hot(at, 100)
    if lib.name == "numpy":
        rows = numpy.eye(100, dtype="float32")
        return lambda: rows[at]
    return lambda: lib.npx.one_hot(at, 100)


@sized("embedding forward and backward")
def embedding(lib: Library, n: int) -> Call | None:
    """Rows of 64, each looked up about once."""
    rows = max(n // 64, 1)
    table, at = lib.normal(rows, 64), integers(lib, rows, rows)
    if lib.name == "torch":
        return trained(lib, lambda w: lib.np.nn.functional.embedding(at, w), table)
    return trained(lib, lambda w: lib.npx.embedding(at, w, input_dim=rows, output_dim=64), table)


@sized("a[i] forward and backward")
def get_back(lib: Library, n: int) -> Call | None:
    """The gradient of indexing."""
    at = integers(lib, n, n)
    return trained(lib, lambda a: a[at], lib.normal(n))


@sized("dropout forward and backward")
def dropout(lib: Library, n: int) -> Call | None:
    """Half of the elements."""
    if lib.name == "torch":
        return trained(lib, lambda x: lib.np.nn.functional.dropout(x, 0.5), lib.normal(n))
    return trained(lib, lambda x: lib.npx.dropout(x, p=0.5), lib.normal(n))


@sized("a[mask]")
def mask_get(lib: Library, n: int) -> Call:
    """Half of the elements."""
    a = lib.normal(n)
    mask = a > 0
    return lambda: a[mask]


@sized("a[mask] = 1")
def mask_number(lib: Library, n: int) -> Call:
    """A number."""
    a = lib.normal(n)
    mask = a > 0
    return changed(lib, a, lambda a: a.__setitem__(mask, 1.0))


@sized("a[mask] = v")
def mask_put(lib: Library, n: int) -> Call:
    """An array of as many as hold."""
    a = lib.normal(n)
    mask = a > 0
    v = lib.normal(int(mask.sum()))
    return changed(lib, a, lambda a: a.__setitem__(mask, v))


@sized("a[mask] rows")
def mask_rows(lib: Library, n: int) -> Call:
    """Rows of 50 by a mask."""
    a = lib.normal(n // 50, 50)
    mask = a[:, 0] > 0
    return lambda: a[mask]


@sized("nonzero")
def nonzero(lib: Library, n: int) -> Call:
    """Half of the elements."""
    a = lib.normal(n) > 0
    return (lambda: lib.np.nonzero(a)) if lib.name == "torch" else (lambda: lib.np.nonzero(a)[0])


@sized("where broadcast")
def where(lib: Library, n: int) -> Call:
    """A choice between a row and a matrix."""
    a, b = lib.normal(n // 100, 100), lib.normal(100)
    mask = a > 0
    return lambda: lib.np.where(mask, a, b)


@sized("searchsorted")
def searchsorted(lib: Library, n: int) -> Call:
    """Random numbers into 1000 sorted ones."""
    edges = lib.array(numpy.sort(numpy.random.default_rng(4).standard_normal(1000).astype("float32")))
    v = lib.normal(n)
    return lambda: lib.np.searchsorted(edges, v)


@sized("searchsorted in 1e6", ("1e5",))
def searchsorted_long(lib: Library, n: int) -> Call:
    """Random numbers into a million sorted ones."""
    edges = lib.array(numpy.sort(numpy.random.default_rng(4).standard_normal(10**6).astype("float32")))
    v = lib.normal(n)
    return lambda: lib.np.searchsorted(edges, v)


@sized("unique of 1000")
def unique_few(lib: Library, n: int) -> Call:
    """Integers that repeat."""
    a = integers(lib, n, 1000)
    return lambda: lib.np.unique(a)


@sized("unique float32")
def unique(lib: Library, n: int) -> Call:
    """Floats that hardly repeat."""
    a = lib.normal(n)
    return lambda: lib.np.unique(a)


@sized("bincount")
def bincount(lib: Library, n: int) -> Call:
    """Of 1000 numbers."""
    a = integers(lib, n, 1000)
    return lambda: lib.np.bincount(a)


def joins(lib: Library, n: int, name: str, parts: int, axis: int) -> Call:
    """Pieces that together have n elements, in rows of ten or (axis 1) of 10 n / parts."""
    rows = n // parts // 10 if axis == 0 or name == "stack" else n // 10 // parts
    pieces = [lib.normal(max(rows, 1), 10) for _ in range(parts)]
    function = lib.np.cat if (name, lib.name) == ("concatenate", "torch") else getattr(lib.np, name)
    return lambda: function(pieces, axis)


for _name in ("concatenate", "stack"):
    for _parts, _axis in ((2, 0), (2, 1), (100, 0), (100, 1)):
        sized(f"{_name} {_parts} axis {_axis}")(partial(joins, name=_name, parts=_parts, axis=_axis))


@sized("split 10 and add")
def split(lib: Library, n: int) -> Call:
    """Ten views, and one sum of two of them."""
    a = lib.normal(n)

    def run() -> Any:
        parts = lib.np.split(a, n // 10) if lib.name == "torch" else lib.np.split(a, 10)
        return parts[0] + parts[9]

    return run


@sized("repeat 3")
def repeat(lib: Library, n: int) -> Call:
    """Each element three times."""
    a = lib.normal(n // 3)
    return (lambda: a.repeat_interleave(3)) if lib.name == "torch" else (lambda: lib.np.repeat(a, 3))


@sized("repeat rows 3")
def repeat_rows(lib: Library, n: int) -> Call:
    """Each row of 50 three times."""
    a = lib.normal(n // 150, 50)
    return (lambda: a.repeat_interleave(3, 0)) if lib.name == "torch" else (lambda: lib.np.repeat(a, 3, 0))


@sized("tile 3x3")
def tile(lib: Library, n: int) -> Call:
    """A matrix of columns of ten."""
    a = lib.normal(n // 90, 10)
    return lambda: lib.np.tile(a, (3, 3))


@sized("flip")
def flip(lib: Library, n: int) -> Call:
    """A copy in reverse."""
    a = lib.normal(n)
    return (lambda: a.flip(0)) if lib.name == "torch" else (lambda: a[::-1].copy())


@sized("flip both")
def flip_both(lib: Library, n: int) -> Call:
    """A matrix in reverse."""
    a = lib.normal(n // 100, 100)
    return (lambda: a.flip(0, 1)) if lib.name == "torch" else (lambda: lib.np.flip(a, (0, 1)).copy())


@sized("roll 1")
def roll(lib: Library, n: int) -> Call:
    """By one place."""
    a = lib.normal(n)
    return lambda: lib.np.roll(a, 1)


@sized("roll axis 1")
def roll_columns(lib: Library, n: int) -> Call:
    """Rows of 100 by three places."""
    a = lib.normal(n // 100, 100)
    return lambda: lib.np.roll(a, 3, 1)


@sized("pad")
def pad(lib: Library, n: int) -> Call:
    """A border of one around images."""
    a = lib.normal(max(n // 1024, 1), 32, 32)
    if lib.name == "torch":
        return lambda: lib.np.nn.functional.pad(a, (1, 1, 1, 1))
    return lambda: lib.np.pad(a, ((0, 0), (1, 1), (1, 1)))


@sized("cumsum")
def cumsum(lib: Library, n: int) -> Call:
    """Along the only axis."""
    a = lib.normal(n)
    return lambda: lib.np.cumsum(a, 0)


@sized("cumsum axis 0")
def cumsum_columns(lib: Library, n: int) -> Call:
    """Along columns."""
    a = lib.normal(n // 100, 100)
    return lambda: lib.np.cumsum(a, 0)


@sized("cumsum int64")
def cumsum_integers(lib: Library, n: int) -> Call:
    """Integers."""
    a = integers(lib, n, 100)
    return lambda: lib.np.cumsum(a, 0)


@sized("diff")
def diff(lib: Library, n: int) -> Call:
    """Differences of neighbours."""
    a = lib.normal(n)
    return lambda: lib.np.diff(a)


@sized("reshape and transpose")
def reshape(lib: Library, n: int) -> Call:
    """Views alone."""
    a = lib.normal(n)
    return lambda: a.reshape(10, n // 10).T
