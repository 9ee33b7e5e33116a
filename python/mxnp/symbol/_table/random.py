"""Draws. Each evaluation draws anew from mxnp's generator, so numbers differ from MXNet's."""

from __future__ import annotations

from typing import Any

from mxnp import np

from .._spec import Attrs, row


def _named_dtype(ins: list, outs: list, attrs: Attrs) -> None:
    outs[:] = [attrs["dtype"] or "float32"]


def _given(attrs: Attrs, *names: str) -> tuple[str, ...]:
    """Parameters that are arrays: those whose attribute is None."""
    return tuple(f"input{i + 1}" for i in range(sum(attrs[name] is None for name in names)))


def _filled(inputs: tuple, values: tuple) -> list[Any]:
    rest = iter(inputs)
    return [next(rest) if value is None else value for value in values]


def _old(draw: Any, first: str, second: str) -> Any:
    def run(shape: Any, ctx: str, dtype: Any, **attrs: float) -> Any:
        return draw(attrs[first], attrs[second], size=shape or (1,), dtype=dtype or "float32")

    return run


def _old_like(draw: Any, first: str, second: str) -> Any:
    return lambda data, **attrs: draw(attrs[first], attrs[second], size=data.shape, dtype=data.dtype)


def _numpy(draw: Any, first: str, second: str, prefix: bool) -> Any:
    def run(*inputs: Any, size: Any, ctx: str, dtype: Any, **attrs: Any) -> Any:
        low, high = _filled(inputs, (attrs[first], attrs[second]))
        if prefix:
            shapes = [getattr(each, "shape", ()) for each in (low, high)]
            size = (*(size or ()), *np.broadcast_shapes(*shapes))
        return draw(low, high, size=size, dtype=dtype)

    return run


def _bernoulli(*inputs: Any, prob: Any, logit: Any, size: Any, ctx: str, dtype: Any, is_logit: bool) -> Any:
    from mxnp import npx

    value = inputs[0] if inputs else logit if is_logit else prob
    return npx.random.bernoulli(**{"logit" if is_logit else "prob": value}, size=size, dtype=dtype)


def _shuffle(data: Any) -> Any:
    return data[np.random.permutation(data.shape[0])]


def add_rows() -> None:
    """Adds the family's rows."""
    pairs = (
        ("uniform", np.random.uniform, "low", "high", 0, 1),
        ("normal", np.random.normal, "loc", "scale", 0, 1),
    )
    for name, draw, first, second, low, high in pairs:
        both = f"{first}:float={low} {second}:float={high}"
        row(
            f"_random_{name} random_{name} {name}",
            "",
            f"{both} shape:shape?=None ctx:str= dtype:dtype?=None",
            _old(draw, first, second),
            types=_named_dtype,
        )
        row(f"_random_{name}_like", "data", both, _old_like(draw, first, second))
        for suffix in ("", "_n"):
            row(
                f"_npi_{name}{suffix}",
                "input1 input2",
                f"{first}:float? {second}:float? size:shape?=None ctx:str=cpu dtype:dtype?=None",
                _numpy(draw, first, second, bool(suffix)),
                wanted=lambda attrs, first=first, second=second: _given(attrs, first, second),
                types=_named_dtype,
            )
    row(
        "_random_randint random_randint randint _npi_random_randint",
        "",
        "low:int high:int shape:shape?=None ctx:str= dtype:dtype?=None",
        lambda low, high, shape, ctx, dtype: np.random.randint(
            low, high, shape or (1,), dtype=dtype or "int32"
        ),
        types=lambda ins, outs, attrs: outs.__setitem__(slice(None), [attrs["dtype"] or "int32"]),
    )
    row(
        "_random_exponential random_exponential exponential",
        "",
        "lam:float=1 shape:shape?=None ctx:str= dtype:dtype?=None",
        lambda lam, shape, ctx, dtype: np.random.exponential(1 / lam, size=shape or (1,), dtype=dtype),
        types=_named_dtype,
    )
    row(
        "_npi_bernoulli",
        "input1",
        "prob:float? logit:float? size:shape?=None ctx:str=cpu dtype:dtype?=None is_logit:bool",
        _bernoulli,
        wanted=lambda attrs: _given(attrs, "logit" if attrs["is_logit"] else "prob"),
        types=_named_dtype,
    )
    row("_shuffle shuffle _npi_shuffle", "data", "", _shuffle, same=True)
