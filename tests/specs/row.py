"""What a spec row is: one public function, its reference, and the inputs on which the two must agree.

Rows are data for the drivers (test_ops, test_grad, test_cuda_rows, test_completeness). Making rows imports no mxnp.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as onp

from specs.tolerance import numpy_dtype

BOOL = ("bool",)
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTS = SIGNED + UNSIGNED
FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
REAL = INTS + FLOATS
NUMBERS = REAL + COMPLEX
ALL = BOOL + NUMBERS


@dataclass(frozen=True)
class Domain:
    """Where an input's values are drawn from, so that the function is defined (and smooth) there."""

    low: float = -3.0
    high: float = 3.0
    avoid: tuple[float, ...] = ()  # kept `gap` away from: kinks, poles, zero divisors
    gap: float = 0.125
    distinct: bool = False  # no two values are equal: sorting, maxima
    dtype: str | None = None  # this input's own dtype, whatever the row's: indices, masks

    def draw(self, shape: Sequence[int], dtype: str, rng: onp.random.Generator) -> onp.ndarray:
        """An array of `shape`; `dtype` counts where the domain names none of its own."""
        wanted = numpy_dtype(self.dtype or dtype)
        if wanted.kind == "b":
            return rng.random(tuple(shape)) < 0.5
        if wanted.kind in "iu":
            return self._integers(tuple(shape), wanted, rng)
        values = self._reals(tuple(shape), rng)
        if wanted.kind == "c":
            values = values + 1j * self._reals(tuple(shape), rng)
        return onp.asarray(values).astype(wanted)

    def _integers(self, shape: tuple[int, ...], dtype: onp.dtype, rng: onp.random.Generator) -> onp.ndarray:
        bounds = onp.iinfo(dtype)
        low, high = max(int(onp.ceil(self.low)), bounds.min), min(int(onp.floor(self.high)), bounds.max)
        size = int(onp.prod(shape))
        if self.distinct:
            low, high = (low, low + size) if high - low < size else (low, high)
            return rng.permutation(onp.arange(low, high + 1))[:size].reshape(shape).astype(dtype)
        choices = onp.array(
            [v for v in range(low, high + 1) if v not in self.avoid] if high - low < 64 else []
        )
        drawn = rng.choice(choices, shape) if choices.size else rng.integers(low, high, shape, endpoint=True)
        return onp.asarray(drawn).astype(dtype)

    def _reals(self, shape: tuple[int, ...], rng: onp.random.Generator) -> onp.ndarray:
        if self.distinct:
            size = int(onp.prod(shape))
            values = rng.permutation(onp.linspace(self.low, self.high, size)).reshape(shape)
        else:
            values = rng.uniform(self.low, self.high, shape)
        values = onp.asarray(values)
        for point in self.avoid:
            near = onp.abs(values - point) < self.gap
            values = onp.where(near, point + onp.where(values < point, -self.gap, self.gap), values)
        return values


@dataclass(frozen=True)
class Case:
    """The shapes of the inputs and the keywords of one call. `core` is what the core's op calls the keywords,
    where that differs; None there means that the function is more than that one op for this case.
    """

    shapes: tuple[tuple[int, ...], ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    core: Mapping[str, Any] | str | None = "same"
    smooth: bool = True  # whether gradients are checked here

    def core_attrs(self) -> Mapping[str, Any] | None:
        return self.attrs if self.core == "same" else self.core  # type: ignore[return-value]

    def __str__(self) -> str:
        keywords = ", ".join(f"{k}={v!r}" for k, v in self.attrs.items())
        return f"{' '.join(map(str, self.shapes))} {keywords}".strip()


@dataclass(frozen=True)
class Bad:
    """A call that must raise at once: `call(np, npx)`, the class and a regular expression of the message."""

    call: Callable[[Any, Any], Any]
    error: type[Exception]
    match: str


@dataclass(frozen=True)
class Row:
    """One public function (`np.add`, `npx.relu`) against its reference."""

    name: str
    ref: Callable[..., Any]
    dtypes: tuple[str, ...]
    cases: tuple[Case, ...]
    op: str | None = "same"  # the core's op; None where the function is written with several
    result: str | Callable[[str], str] = (
        "same"  # 'same', 'float', 'sum', a dtype, or a rule from the row's dtype
    )
    domain: tuple[Domain, ...] = (Domain(),)  # one per input; the last one stands for those that follow
    grad: int | str = 2  # the order that is checked (0: zero everywhere), or why there is none
    loose: float = 1.0  # a factor on the tolerance table
    wide: bool = True  # the reference computes in float64 (else in the row's dtype)
    elementwise: bool = False  # broadcasts; takes scalars, `out` and `where`
    out: bool = False  # takes `out`
    listed: bool = False  # takes its arrays as one list
    specials: bool = True  # NaN and infinities go where the reference sends them
    written: tuple[int, ...] = ()  # the inputs that are its results: it writes in place
    writes: bool = False  # updates some of its inputs: none may be read-only
    scalar: bool = True  # (elementwise) takes Python scalars in an array's place
    bad: tuple[Bad, ...] = ()

    def __str__(self) -> str:
        return self.name

    @property
    def core_op(self) -> str | None:
        return self.name.rsplit(".", 1)[1] if self.op == "same" else self.op

    def domain_of(self, i: int) -> Domain:
        return self.domain[min(i, len(self.domain) - 1)]

    def seed(self, *more: Any) -> onp.random.Generator:
        """The generator of this row's inputs: the same in every run."""
        return onp.random.default_rng(zlib.crc32(repr((self.name, *more)).encode()))

    def draw(self, case: Case, dtype: str, **changes: Any) -> list[onp.ndarray]:
        """Inputs for `case`."""
        rng = self.seed(str(case), dtype)
        domains = [replace(self.domain_of(i), **changes) for i in range(len(case.shapes))]
        return [d.draw(shape, dtype, rng) for d, shape in zip(domains, case.shapes, strict=True)]

    def result_dtype(self, dtype: str) -> str:
        """The dtype of the result in MXNet's default mode, for inputs of `dtype`."""
        if callable(self.result):
            return self.result(dtype)
        return {"same": lambda d: d, "float": floating, "sum": summed}.get(
            self.result, lambda d: self.result
        )(dtype)


def floating(dtype: str) -> str:
    """What floating functions give: inexact dtypes stay, integers and bools become float32."""
    return dtype if dtype in FLOATS + COMPLEX else "float32"


def summed(dtype: str) -> str:
    """What sums give: integers and bools become 64 bits wide, as in NumPy."""
    return "uint64" if dtype in UNSIGNED else "int64" if dtype in SIGNED + BOOL else dtype


def magnitude(dtype: str) -> str:
    """What abs gives: the real part's dtype."""
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


def shapes(*each: Any, **attrs: Any) -> Case:
    """`shapes((2, 3), (3,), axis=0)`: a case."""
    return Case(tuple(each), attrs)


UNARY = (shapes((3, 4)), shapes(()), shapes((0, 3)), shapes((5, 67)))
BINARY = (
    shapes((3, 4), (3, 4)),
    shapes((3, 1), (1, 4)),
    shapes((2, 3, 4), (4,)),
    shapes((), (3,)),
    shapes((), ()),
    shapes((0, 3), (1, 3)),
    shapes((5, 67), (5, 67)),
)


def unary(name: str, ref: Callable[..., Any], dtypes: tuple[str, ...] = REAL, **kw: Any) -> Row:
    """A row of an elementwise function of one array."""
    return Row(name, ref, dtypes, kw.pop("cases", UNARY), elementwise=True, out=True, **kw)


def binary(name: str, ref: Callable[..., Any], dtypes: tuple[str, ...] = REAL, **kw: Any) -> Row:
    """A row of an elementwise function of two arrays."""
    bad = kw.pop("bad", ()) + (not_broadcastable(name),)
    return Row(name, ref, dtypes, kw.pop("cases", BINARY), elementwise=True, out=True, bad=bad, **kw)


def public(np: Any, npx: Any, name: str) -> Any:
    """The function called `name`: 'np.linalg.norm', or 'core.rsqrt' for an op of the core that nothing else calls."""
    head, *rest = name.split(".")
    if head == "core":
        from mxnp import _core

        return _core.op(rest[0])
    found = {"np": np, "npx": npx}[head]
    for part in rest:
        found = getattr(found, part)
    return found


def not_broadcastable(name: str) -> Bad:
    """Two shapes that do not go together."""
    return Bad(
        lambda np, npx: public(np, npx, name)(np.ones((2, 3), "int32"), np.ones((4,), "int32")),
        ValueError,
        r"could not be broadcast together.*\(2, ?3\).*\(4,\)",
    )
