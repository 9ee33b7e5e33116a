"""What the drivers share: rows as pytest parameters, arrays in every layout, and one call of a row.

Imports mxnp; the rows themselves do not.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as onp
import pytest
from hypothesis import settings

from mxnp import _core, np, npx
from specs import ROWS
from specs.row import Case, Row, public
from specs.tolerance import assert_close, numpy_dtype, widened

ENGINES = ("threaded", "naive")


def function(row: Row) -> Callable[..., Any]:
    """The row's function; `ndarray.astype` is the method as a function."""
    if row.name.startswith("ndarray."):
        return lambda x, **attrs: getattr(x, row.name.removeprefix("ndarray."))(**attrs)
    return public(np, npx, row.name)


def rows_and_dtypes(chosen: Callable[[Row], bool] = lambda row: True) -> list[Any]:
    """A parameter for every row and dtype."""
    seen: dict[str, int] = {}
    out = []
    for row in ROWS:
        if chosen(row):
            seen[row.name] = seen.get(row.name, -1) + 1
            suffix = f"#{seen[row.name]}" if seen[row.name] else ""
            out += [pytest.param(row, dtype, id=f"{row.name}{suffix}-{dtype}") for dtype in row.dtypes]
    return out


def sampled(params: list[Any], every: int) -> list[Any]:
    """All parameters, of which each `every`-th runs by default and the others are marked slow."""
    return [
        p if i % every == 0 else pytest.param(*p.values, id=p.id, marks=pytest.mark.slow)
        for i, p in enumerate(params)
    ]


def call(row: Row, arrays: list[Any], case: Case, **more: Any) -> Any:
    """The row's function on `arrays`."""
    inputs = [list(arrays)] if row.listed else arrays
    result = function(row)(*inputs, **case.attrs, **more)
    return tuple(arrays[i] for i in row.written) if row.written else result


def precise(row: Row, x: onp.ndarray) -> onp.ndarray:
    """An input as the reference reads it."""
    if not row.wide:
        return x
    return x.astype("float64") if row.result == "float" and x.dtype.kind in "biu" else widened(x)


def reference(row: Row, inputs: list[onp.ndarray], case: Case) -> tuple[onp.ndarray, ...]:
    """What the row's reference gives, in high precision where the row says so."""
    with onp.errstate(all="ignore"):
        want = row.ref(*(precise(row, x) for x in inputs), **case.attrs)
    return tuple(onp.asarray(w) for w in (want if isinstance(want, tuple | list) else (want,)))


def outputs(result: Any) -> tuple[onp.ndarray, ...]:
    """The results as NumPy arrays; Python numbers too."""
    results = result if isinstance(result, tuple | list) else (result,)
    return tuple(r.asnumpy() if isinstance(r, np.ndarray) else onp.asarray(r) for r in results)


def check(row: Row, inputs: list[onp.ndarray], case: Case, dtype: str, got: Any, what: str = "") -> None:
    """The values and dtypes of a result."""
    found, wanted = outputs(got), reference(row, inputs, case)
    assert len(found) == len(wanted), f"{row} {case}: {len(found)} results, expected {len(wanted)}"
    for y, want in zip(found, wanted, strict=True):
        expected = case.attrs.get("dtype") or row.result_dtype(dtype)
        if expected != "*" and isinstance(got, np.ndarray):
            assert y.dtype == numpy_dtype(expected), f"{row} {case}: {y.dtype}, expected {expected}"
        assert_close(y, want, row.loose, f"{row} ({case}) {dtype} {what}")


# How the same values can lie in memory. Each takes a NumPy array and gives an mxnp array of those values.


def dense(x: onp.ndarray) -> Any:
    return np.array(x)


def transposed(x: onp.ndarray) -> Any:
    return np.array(x.T.copy()).T


def reversed_(x: onp.ndarray) -> Any:
    """Negative steps along every axis."""
    back = (slice(None, None, -1),) * x.ndim
    return np.array(x[back].copy())[back]


def spaced(x: onp.ndarray) -> Any:
    """Every second element of a larger array, from the second on."""
    if not x.ndim:
        return np.array(onp.array([0, x, 0], x.dtype))[1]
    big = onp.zeros([2 * n + 1 for n in x.shape], x.dtype)
    cut = tuple(slice(1, 2 * n, 2) for n in x.shape)
    big[cut] = x
    return np.array(big)[cut]


def repeated(x: onp.ndarray) -> Any:
    """Strides of zero along every axis whose values are all equal."""
    thin = x
    for axis in range(x.ndim):
        first = thin.take([0], axis) if thin.shape[axis] else thin
        if thin.shape[axis] > 1 and (thin == first).all():
            thin = first
    return np.broadcast_to(np.array(thin), x.shape)


LAYOUTS = {
    "dense": dense,
    "transposed": transposed,
    "reversed": reversed_,
    "spaced": spaced,
    "repeated": repeated,
}


def constant_lines(x: onp.ndarray) -> onp.ndarray:
    """`x` with every slice along the first axis equal to the first one."""
    return onp.repeat(x[:1], x.shape[0], 0) if x.ndim and x.shape[0] else x


@contextlib.contextmanager
def engine(kind: str) -> Iterator[None]:
    """The engine of that kind, for a while."""
    former = _core.set_engine(kind)
    try:
        yield
    finally:
        _core.set_engine(former)


@contextlib.contextmanager
def threads(count: int) -> Iterator[None]:
    """That many computing threads, for a while."""
    former = _core.set_num_threads(count)
    try:
        yield
    finally:
        _core.set_num_threads(former)


@contextlib.contextmanager
def fusion(on: bool) -> Iterator[None]:
    """Fusion of elementwise calls on or off, for a while."""
    former = _core.set_fusion(on)
    try:
        yield
    finally:
        _core.set_fusion(former)


def examples(count: int) -> settings:
    """So many examples by default, and as many times more in another profile as that profile asks for."""
    return settings(max_examples=max(1, count * settings.default.max_examples // 100))


def same_bits(a: onp.ndarray, b: onp.ndarray) -> bool:
    """Equal dtype, shape and bytes."""
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
