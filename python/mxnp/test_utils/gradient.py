"""Gradients against finite differences, and hybridized blocks against eager ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from .compare import assert_almost_equal
from .tolerance import NUMERIC_EPS


def check_numeric_gradient(
    fn: Callable,
    location: Sequence | dict,
    aux_states: Any = None,
    numeric_eps: float | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    grad_nodes: Sequence | None = None,
    use_forward_train: bool = True,
    ctx: Any = None,
    dtype: Any = None,
) -> None:
    """Compare autograd's gradients of `fn` with central differences, element by element.

    `fn` is a function or block of arrays; `location` holds its arguments (arrays or NumPy arrays of floats; a dict
    gives keyword arguments). The outputs are reduced to one number by fixed random weights. `grad_nodes` names the
    arguments to check (positions, or keys of the dict); all when None. `numeric_eps` is the step, by default a power
    of two that suits the dtype. Raises AssertionError naming the argument. `aux_states` is accepted and not used.

    >>> check_numeric_gradient(np.tanh, [np.array([0.5, -1.0], dtype="float64")])
    """
    from mxnp import autograd, np

    names: list[Any] = list(location) if isinstance(location, dict) else list(range(len(location)))
    given = [location[name] for name in names]
    dtype = onp.dtype(dtype or getattr(given[0], "dtype", onp.float32))
    points = [onp.array(x.asnumpy() if hasattr(x, "asnumpy") else x, dtype) for x in given]
    eps = NUMERIC_EPS[dtype.name] if numeric_eps is None else numeric_eps
    weights: list = []

    def evaluate(values: list) -> Any:
        result = fn(**dict(zip(names, values, strict=True))) if isinstance(location, dict) else fn(*values)
        outputs = list(result) if isinstance(result, (list, tuple)) else [result]
        if not weights:
            generator = onp.random.default_rng(0)
            weights.extend(
                generator.uniform(0.5, 1.5, out.shape) * generator.choice([-1, 1], out.shape)
                for out in outputs
            )
        return outputs

    def number(values: list) -> float:
        with autograd.record(train_mode=use_forward_train):
            outputs = evaluate([np.array(value, dtype=dtype) for value in values])
        # Summed in float64, so that the difference below loses no more than the function's own rounding.
        return sum(
            float(onp.sum(out.asnumpy().astype(onp.float64) * w))
            for out, w in zip(outputs, weights, strict=True)
        )

    arrays = [np.array(point, dtype=dtype) for point in points]
    for array in arrays:
        array.attach_grad()
    with autograd.record(train_mode=use_forward_train):
        outputs = evaluate(arrays)
    heads = [np.array(w, dtype=out.dtype) for w, out in zip(weights, outputs, strict=True)]
    autograd.backward(outputs, heads)
    for name in names if grad_nodes is None else grad_nodes:
        position = names.index(name)
        numeric = _central_differences(number, points, position, eps)
        assert_almost_equal(
            numeric,
            arrays[position].grad.asnumpy(),  # type: ignore[union-attr]
            1e-2 if rtol is None else rtol,
            1e-3 if atol is None else atol,
            (f"numeric gradient of argument {name!r}", f"gradient of argument {name!r}"),
        )


def _central_differences(number: Callable, points: list, position: int, eps: float) -> onp.ndarray:
    base = points[position]
    gradient = onp.zeros(base.shape, onp.float64)
    for index in onp.ndindex(base.shape):
        sides = []
        for step in (eps, -eps):
            moved = base.copy()
            moved[index] += step
            sides.append((number([*points[:position], moved, *points[position + 1 :]]), float(moved[index])))
        # The step as rounded to the dtype, not as asked for.
        gradient[index] = (sides[0][0] - sides[1][0]) / (sides[0][1] - sides[1][1])
    return gradient


def check_gluon_hybridize_consistency(
    net_builder: Callable,
    data_l: Sequence,
    numpy_func: Callable | None = None,
    test_grad: bool = True,
    rtol: float = 1e-4,
    atol: float = 1e-4,
) -> None:
    """Build a block twice, hybridize one, and compare outputs, input gradients and parameter gradients.

    `numpy_func` of the inputs, as NumPy arrays, gives the expected output where it is known.

    >>> check_gluon_hybridize_consistency(lambda: nn.Dense(2), [np.ones((3, 4))])
    """
    from mxnp import autograd

    results = []
    saved: dict | None = None
    for hybridize in (False, True):
        net = net_builder()
        net.initialize()
        if hybridize:
            net.hybridize()
        inputs = [array.copy() for array in data_l]
        net(*inputs)
        params = net.collect_params()
        if saved is None:
            saved = {name: param.data().asnumpy() for name, param in params.items()}
        for name, param in params.items():
            param.set_data(_like(param.data(), saved[name]))
        for array in inputs:
            array.attach_grad()
        with autograd.record(train_mode=test_grad):
            out = net(*inputs)
        grads = {}
        if test_grad:
            out.backward()
            grads = {f"input {i}": array.grad.asnumpy() for i, array in enumerate(inputs)}
            grads |= {name: p.grad().asnumpy() for name, p in params.items() if p.grad_req != "null"}
        results.append((out.asnumpy(), grads))
    assert_almost_equal(results[1][0], results[0][0], rtol, atol, ("hybridized", "eager"))
    for name, eager in results[0][1].items():
        assert_almost_equal(
            results[1][1][name], eager, rtol, atol, (f"hybridized gradient of {name}", "eager")
        )
    if numpy_func is not None:
        expected = numpy_func(*[array.asnumpy() for array in data_l])
        assert_almost_equal(results[0][0], expected, rtol, atol, ("output", "expected"))


def _like(array: Any, value: onp.ndarray) -> Any:
    from mxnp import np

    return np.array(value, dtype=array.dtype)
