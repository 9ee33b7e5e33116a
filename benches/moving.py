"""Workloads that move elements: sorting, indexing, drawing, running sums, pooling, convolution by channel."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy

from library import Library, trained, workload

N = 10**6
Call = Callable[[], Any]


def numbers(lib: Library, shape: tuple[int, ...], dtype: str = "float32") -> Any:
    """Normal numbers, or integers of the whole range of an integer dtype, the same in every library."""
    rng = numpy.random.default_rng(1)
    if numpy.dtype(dtype).kind in "iu":
        info = numpy.iinfo(dtype)
        return lib.array(rng.integers(info.min, info.max, shape, dtype=dtype))
    return lib.array(rng.standard_normal(shape).astype(dtype))


def places(lib: Library, n: int, below: int) -> Any:
    """Random int64 indices."""
    return lib.array(numpy.random.default_rng(2).integers(0, below, n))


def sort(lib: Library, dtype: str, shape: tuple[int, ...], axis: int) -> Call:
    """Values only; PyTorch finds the positions as well."""
    a = numbers(lib, shape, dtype)
    if lib.name == "torch":
        return lambda: lib.np.sort(a, dim=axis)[0]
    return lambda: lib.np.sort(a, axis=axis)


def argsort(lib: Library, dtype: str, shape: tuple[int, ...], axis: int) -> Call:
    """Positions."""
    a = numbers(lib, shape, dtype)
    return (
        (lambda: lib.np.argsort(a, dim=axis))
        if lib.name == "torch"
        else (lambda: lib.np.argsort(a, axis=axis))
    )


for _dtype in ("float32", "float64", "int32", "int64", "uint8", "float16"):
    workload(f"sort 1e6 {_dtype}")(partial(sort, dtype=_dtype, shape=(N,), axis=0))
    workload(f"argsort 1e6 {_dtype}")(partial(argsort, dtype=_dtype, shape=(N,), axis=0))
for _axis in (0, 1):
    workload(f"sort 1000x1000 axis {_axis}")(partial(sort, dtype="float32", shape=(1000, 1000), axis=_axis))
    workload(f"argsort 1000x1000 axis {_axis}")(
        partial(argsort, dtype="float32", shape=(1000, 1000), axis=_axis)
    )
workload("sort 50000x10")(partial(sort, dtype="float32", shape=(50_000, 10), axis=1))


def topk(lib: Library, shape: tuple[int, ...]) -> Call:
    """The ten greatest with their places; NumPy's partition finds the values alone."""
    a = numbers(lib, shape)
    if lib.name == "torch":
        return lambda: lib.np.topk(a, 10)
    if lib.name == "numpy":
        return lambda: lib.np.partition(a, shape[-1] - 10)[..., -10:]
    return lambda: lib.npx.topk(a, k=10, ret_typ="both")[0]


workload("topk 10 of 1e6")(partial(topk, shape=(N,)))
workload("topk 10 of 1000 in 1000 lines")(partial(topk, shape=(1000, 1000)))


@workload("boolean mask 1e6")
def mask(lib: Library) -> Call:
    """A comparison, a count that is waited for, and a copy."""
    a = lib.normal(N)
    return lambda: a[a > 0]


@workload("nonzero 1000x1000")
def nonzero(lib: Library) -> Call:
    """Places of half of the elements; the wait is for the first axis's."""
    a = lib.normal(1000, 1000) > 0
    return (lambda: lib.np.nonzero(a)) if lib.name == "torch" else (lambda: lib.np.nonzero(a)[0])


@workload("take 1e5 rows of 64")
def take_rows(lib: Library) -> Call:
    """An embedding's forward pass."""
    table, at = lib.normal(50_000, 64), places(lib, 10**5, 50_000)
    return (lambda: table[at]) if lib.name == "torch" else (lambda: lib.np.take(table, at, axis=0))


@workload("take 1e6 of 1000")
def take_repeated(lib: Library) -> Call:
    """Repeated indices."""
    table, at = lib.normal(1000), places(lib, N, 1000)
    return (lambda: table[at]) if lib.name == "torch" else (lambda: lib.np.take(table, at, axis=0))


def running(lib: Library, name: str, shape: tuple[int, ...], axis: int) -> Call:
    """Sums or products along an axis."""
    a = lib.normal(*shape) * 1e-3 + 1
    function = getattr(lib.np, name)
    return (lambda: function(a, axis)) if lib.name == "torch" else (lambda: function(a, axis=axis))


workload("cumprod 1e7")(partial(running, name="cumprod", shape=(10**7,), axis=0))
for _name in ("cumsum", "cumprod"):
    for _axis in (0, 1):
        workload(f"{_name} 4096x4096 axis {_axis}")(
            partial(running, name=_name, shape=(4096, 4096), axis=_axis)
        )


@workload("permutation 1e6")
def permutation(lib: Library) -> Call:
    """Random order."""
    if lib.name == "torch":
        return lambda: lib.np.randperm(N)
    return lambda: lib.np.random.permutation(N)


@workload("normal 1e7")
def draw(lib: Library) -> Call:
    """Single precision draws."""
    if lib.name == "torch":
        return lambda: lib.np.randn(10**7)
    if lib.name == "numpy":
        generator = numpy.random.default_rng(3)
        return lambda: generator.standard_normal(10**7, dtype="float32")
    return lambda: lib.np.random.normal(0, 1, size=(10**7,))


def layer(lib: Library, make: Callable[[Any], Any], x: Any, backward: bool) -> Call | None:
    """A function of `x` forward, or forward and backward with a head of ones."""
    if backward:
        return trained(lib, make, x)
    return None if lib.name == "numpy" else lambda: make(x)


def pool(lib: Library, kind: str, size: int, pad: int, side: int, backward: bool) -> Call | None:
    """Pooling by two of 64 channels."""
    x = numbers(lib, (16, 64, side, side))
    if lib.name == "torch":
        function = getattr(lib.np.nn.functional, f"{kind}_pool2d")
        return layer(lib, lambda x: function(x, size, 2, pad), x, backward)
    keywords = {"kernel": (size, size), "stride": (2, 2), "pad": (pad, pad), "pool_type": kind}
    return layer(lib, lambda x: lib.npx.pooling(x, **keywords), x, backward)


def depthwise(lib: Library, n: int, channels: int, side: int, stride: int, backward: bool) -> Call | None:
    """A window of 3x3 for each channel; backward, the gradients of data and weight."""
    x, w = numbers(lib, (n, channels, side, side)), numbers(lib, (channels, 1, 3, 3))
    if lib.name == "torch":
        if backward:
            w.requires_grad_()
        conv = lib.np.nn.functional.conv2d
        return layer(lib, lambda x: conv(x, w, stride=stride, padding=1, groups=channels), x, backward)
    if backward and lib.name != "numpy":
        w.attach_grad()
    keywords = {
        "kernel": (3, 3),
        "stride": (stride, stride),
        "pad": (1, 1),
        "num_filter": channels,
        "num_group": channels,
        "no_bias": True,
    }
    return layer(lib, lambda x: lib.npx.convolution(x, w, **keywords), x, backward)


for _back, _way in ((False, "forward"), (True, "forward and backward")):
    for _kind in ("max", "avg"):
        workload(f"{_kind} pool 2x2 {_way}")(
            partial(pool, kind=_kind, size=2, pad=0, side=56, backward=_back)
        )
        workload(f"{_kind} pool 3x3 {_way}")(
            partial(pool, kind=_kind, size=3, pad=1, side=56, backward=_back)
        )
    for _stride in (1, 2):
        for _n, _channels, _side in ((8, 128, 56), (8, 512, 14), (32, 256, 7)):
            workload(f"depthwise 3x3 stride {_stride} {_channels}x{_side}x{_side} {_way}")(
                partial(depthwise, n=_n, channels=_channels, side=_side, stride=_stride, backward=_back)
            )
