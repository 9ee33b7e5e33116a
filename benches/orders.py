"""Workloads that order and draw elements, each at three sizes: sorting of every kind, random numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy

from library import Library
from places import Call, changed, sized


def kinds(n: int, dtype: str, kind: str) -> Any:
    """Numbers to sort: random over the dtype's range, in order, in reverse, or all equal."""
    rng = numpy.random.default_rng(1)
    if dtype == "bool":
        a = rng.integers(0, 2, n).astype(bool)
    elif numpy.dtype(dtype).kind in "iu":
        info = numpy.iinfo(dtype)
        a = rng.integers(info.min, info.max, n, dtype=dtype)
    else:
        a = rng.standard_normal(n).astype(dtype)
    return {"random": a, "in order": numpy.sort(a), "in reverse": numpy.sort(a)[::-1].copy(), "equal": a * 0}[
        kind
    ]


def sorts(lib: Library, n: int, name: str, dtype: str, kind: str) -> Call:
    """PyTorch's sort finds places as well."""
    a = lib.array(kinds(n, dtype, kind))
    function = getattr(lib.np, name)
    if (name, lib.name) == ("sort", "torch"):
        return lambda: function(a)[0]
    return lambda: function(a)


for _name in ("sort", "argsort"):
    for _dtype in ("float32", "float64", "int32", "int64", "int8", "uint8", "int16", "bool", "float16"):
        sized(f"{_name} {_dtype}", ("1e3", "1e5"))(partial(sorts, name=_name, dtype=_dtype, kind="random"))
    for _kind in ("in order", "in reverse", "equal"):
        for _dtype in ("float32", "int64"):
            sized(f"{_name} {_dtype} {_kind}", ("1e3", "1e5"))(
                partial(sorts, name=_name, dtype=_dtype, kind=_kind)
            )
    sized(f"{_name} float32", ("1e7",))(partial(sorts, name=_name, dtype="float32", kind="random"))


def lines(lib: Library, n: int, name: str, length: int, axis: int, dtype: str = "float32") -> Call:
    """Lines of one length."""
    a = kinds(n, dtype, "random")
    a = lib.array(a.reshape(-1, length) if axis else a.reshape(length, -1))
    function = getattr(lib.np, name)
    if (name, lib.name) == ("sort", "torch"):
        return lambda: function(a, axis)[0]
    return lambda: function(a, axis)


for _name in ("sort", "argsort"):
    for _length in (10, 100):
        for _axis in (0, 1):
            sized(f"{_name} lines of {_length} axis {_axis}")(
                partial(lines, name=_name, length=_length, axis=_axis)
            )
    sized(f"{_name} int64 lines of 100 axis 1")(partial(lines, name=_name, length=100, axis=1, dtype="int64"))


@sized("topk 5")
def topk(lib: Library, n: int) -> Call:
    """The five greatest, in order."""
    a = lib.normal(n)
    if lib.name == "torch":
        return lambda: lib.np.topk(a, 5)
    if lib.name == "numpy":
        return lambda: lib.np.partition(a, n - 5)[-5:]
    return lambda: lib.npx.topk(a, k=5, ret_typ="both", dtype="int64")[0]


@sized("topk half")
def topk_half(lib: Library, n: int) -> Call:
    """The greater half, in order."""
    a = lib.normal(n)
    if lib.name == "torch":
        return lambda: lib.np.topk(a, n // 2)
    if lib.name == "numpy":
        return lambda: lib.np.sort(lib.np.partition(a, n // 2)[n // 2 :])[::-1].copy()
    return lambda: lib.npx.topk(a, k=n // 2, ret_typ="both", dtype="int64")[0]


@sized("median")
def median(lib: Library, n: int) -> Call:
    """Of one line."""
    a = lib.normal(n)
    return lambda: lib.np.median(a)


GENERATOR = numpy.random.default_rng(3)


def draws(lib: Library, n: int, ours: Callable[[Any], Any], numpys: Any, torchs: Any) -> Call | None:
    """One draw, spelled for each library."""
    if lib.name == "torch":
        return None if torchs is None else lambda: torchs(lib.np, n)
    if lib.name == "numpy":
        return None if numpys is None else lambda: numpys(GENERATOR, n)
    random = lib.np.random
    return lambda: ours(random, n)  # type: ignore[call-arg]


DRAWS: dict[str, tuple[Any, Any, Any]] = {
    "uniform float32": (
        lambda r, n: r.uniform(size=(n,)),
        lambda g, n: g.random(n, "float32"),
        lambda t, n: t.rand(n),
    ),
    "uniform float64": (
        lambda r, n: r.uniform(size=(n,), dtype="float64"),
        lambda g, n: g.random(n),
        lambda t, n: t.rand(n, dtype=t.float64),
    ),
    "uniform float16": (
        lambda r, n: r.uniform(size=(n,), dtype="float16"),
        None,
        lambda t, n: t.rand(n, dtype=t.float16),
    ),
    "normal float32": (
        lambda r, n: r.normal(size=(n,)),
        lambda g, n: g.standard_normal(n, "float32"),
        lambda t, n: t.randn(n),
    ),
    "normal float64": (
        lambda r, n: r.normal(size=(n,), dtype="float64"),
        lambda g, n: g.standard_normal(n),
        lambda t, n: t.randn(n, dtype=t.float64),
    ),
    "normal float16": (
        lambda r, n: r.normal(size=(n,), dtype="float16"),
        None,
        lambda t, n: t.randn(n, dtype=t.float16),
    ),
    "exponential": (
        lambda r, n: r.exponential(size=(n,)),
        lambda g, n: g.standard_exponential(n, "float32"),
        lambda t, n: t.empty(n).exponential_(),
    ),
    "lognormal": (
        lambda r, n: r.lognormal(size=(n,)),
        lambda g, n: g.lognormal(size=n),
        lambda t, n: t.empty(n).log_normal_(),
    ),
    "bernoulli": (
        lambda r, n: r.bernoulli(0.3, size=(n,)),
        lambda g, n: g.binomial(1, 0.3, n),
        lambda t, n: t.empty(n).bernoulli_(0.3),
    ),
    "randint int64": (
        lambda r, n: r.randint(0, 1000, size=(n,), dtype="int64"),
        lambda g, n: g.integers(0, 1000, n),
        lambda t, n: t.randint(0, 1000, (n,)),
    ),
    "randint int32": (
        lambda r, n: r.randint(0, 1000, size=(n,), dtype="int32"),
        lambda g, n: g.integers(0, 1000, n, dtype="int32"),
        lambda t, n: t.randint(0, 1000, (n,), dtype=t.int32),
    ),
    "permutation": (
        lambda r, n: r.permutation(n),
        lambda g, n: g.permutation(n),
        lambda t, n: t.randperm(n),
    ),
    "choice": (
        lambda r, n: r.choice(1000, size=(n,)),
        lambda g, n: g.choice(1000, n),
        None,
    ),
    "choice without replacement": (
        lambda r, n: r.choice(2 * n, size=(n,), replace=False),
        lambda g, n: g.choice(2 * n, n, replace=False),
        None,
    ),
}
for _name, (_ours, _numpys, _torchs) in DRAWS.items():
    sized(_name)(partial(draws, ours=_ours, numpys=_numpys, torchs=_torchs))


@sized("shuffle")
def shuffle(lib: Library, n: int) -> Call | None:
    """In place."""
    a = lib.normal(n)
    if lib.name == "torch":
        return lambda: a[lib.np.randperm(n)]
    if lib.name == "numpy":
        return changed(lib, a, GENERATOR.shuffle)
    return changed(lib, a, lib.np.random.shuffle)


@sized("choice with p")
def choice_weighted(lib: Library, n: int) -> Call | None:
    """By weights of 100 classes."""
    p = numpy.full(100, 0.01)
    if lib.name == "torch":
        weights = lib.array(p)
        return lambda: lib.np.multinomial(weights, n, replacement=True)
    if lib.name == "numpy":
        return lambda: GENERATOR.choice(100, n, p=p)
    return lambda: lib.np.random.choice(100, size=(n,), p=p)
