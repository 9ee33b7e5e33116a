"""Workloads of the table of speeds that stand nowhere else: whole-array arithmetic, normalisation, gradients, Adam."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from library import Library, workload

Call = Callable[[], Any]
SIDE = 4096


def jitted(lib: Library, function: Callable[..., Any], *args: Any) -> Call:
    """A call of `function`, compiled where the library compiles."""
    return partial(lib.jit(function) if lib.jit else function, *args)


@workload("add 1e7")
def add(lib: Library) -> Call:
    """Memory bandwidth, far beyond the caches."""
    return jitted(lib, lambda a, b: a + b, lib.normal(10**7), lib.normal(10**7))


@workload("broadcast add 4096x4096")
def broadcast_add(lib: Library) -> Call:
    """A row added to a matrix."""
    a, b = lib.normal(SIDE, SIDE), lib.normal(SIDE)
    return lambda: a + b


@workload("chain 1e6")
def chain_with_tanh(lib: Library) -> Call:
    """Five operations, one of them costly; nothing in between is kept."""
    a, b, c = (lib.normal(10**6) for _ in range(3))
    return jitted(lib, lambda a, b, c: lib.np.tanh(a * b + c) * 0.5 + 1, a, b, c)


@workload("chain 1e7")
def chain_of_arithmetic(lib: Library) -> Call:
    """Five cheap operations: bandwidth is all."""
    a, b, c = (lib.normal(10**7) for _ in range(3))
    return jitted(lib, lambda a, b, c: (a * b + c) * 0.5 - a / 3, a, b, c)


@workload("erf 1e6")
def erf(lib: Library) -> Call | None:
    """A function that NumPy lacks."""
    a = lib.normal(10**6)
    if lib.name in {"numpy", "jax"}:
        return None
    return partial(lib.np.erf if lib.name == "torch" else lib.npx.erf, a)


def total(lib: Library, axis: int | None) -> Call:
    """A sum."""
    a = lib.normal(SIDE, SIDE)
    return (lambda: a.sum()) if axis is None else (lambda: a.sum(axis))


for _axis in (None, 0, 1):
    workload(f"sum 4096x4096 axis {_axis}")(partial(total, axis=_axis))


@workload("argmax 4096x4096 axis 1")
def argmax(lib: Library) -> Call:
    """The place of the greatest in each row."""
    a = lib.normal(SIDE, SIDE)
    return lambda: a.argmax(1)


@workload("copy 4096x4096")
def copy(lib: Library) -> Call:
    """All of a matrix, as it lies."""
    a = lib.normal(SIDE, SIDE)
    return lambda: a.clone() if lib.name == "torch" else a.copy()


@workload("transpose copy 4096x4096")
def transpose_copy(lib: Library) -> Call:
    """All of a matrix, turned."""
    a = lib.normal(SIDE, SIDE)
    return (lambda: a.T.contiguous()) if lib.name == "torch" else (lambda: a.T.copy())


@workload("softmax 4096x1024")
def softmax(lib: Library) -> Call | None:
    """Rows that sum to one."""
    a = lib.normal(SIDE, 1024)
    if lib.name == "numpy":
        return None
    if lib.name == "jax":
        return jitted(lib, import_module("jax.nn").softmax, a)
    return (lambda: lib.np.softmax(a, -1)) if lib.name == "torch" else (lambda: lib.npx.softmax(a))


@workload("layer norm 4096x1024")
def layer_norm(lib: Library) -> Call | None:
    """A layer without gradients."""
    a = lib.normal(SIDE, 1024)
    if lib.name in {"numpy", "jax"}:
        return None
    if lib.name == "torch":
        layer = lib.np.nn.LayerNorm(1024).requires_grad_(False)
    else:
        layer = __import__(lib.name).gluon.nn.LayerNorm(in_channels=1024)
        layer.initialize()
    return partial(layer, a)


@workload("gradient of a small chain")
def small_chain_grad(lib: Library) -> Call | None:
    """Eight elements: the cost of recording and of the way back."""
    a, b = lib.normal(8), lib.normal(8)
    if lib.name == "torch":
        a.requires_grad_()

        def step() -> Any:
            a.grad = None
            ((a * b + a).tanh() * b).sum().backward()
            return a.grad

        return step
    if lib.record is None:
        return None
    a.attach_grad()

    def step_mx() -> Any:
        with lib.record():
            y = (lib.np.tanh(a * b + a) * b).sum()
        y.backward()
        return a.grad

    return step_mx


@workload("Adam on 64 arrays of 156250")
def adam(lib: Library, count: int = 64, size: int = 156_250) -> Call | None:
    """Gradients of sums, and one update of ten million parameters."""
    if lib.name == "torch":
        parameters = [lib.np.nn.Parameter(lib.normal(size)) for _ in range(count)]
        optimizer = lib.np.optim.Adam(parameters, lr=1e-3, fused=True)

        def step() -> Any:
            optimizer.zero_grad()
            sum(p.sum() for p in parameters).backward()
            optimizer.step()
            return parameters[0]

        return step
    if lib.record is None:
        return None
    module = __import__(lib.name)
    gluon, own = module.gluon, {}
    for i in range(count):
        own[f"p{i}"] = gluon.Parameter(f"p{i}", shape=(size,))
        own[f"p{i}"].initialize(module.init.Uniform())
    trainer = gluon.Trainer(own, "adam", {"learning_rate": 1e-3})

    def step_mx() -> Any:
        with lib.record():
            first, *rest = (p.data().sum() for p in own.values())
            loss = sum(rest, first)
        loss.backward()
        trainer.step(1)
        lib.npx.waitall()
        return first

    return step_mx
