"""Initializers: how the first values of parameters are made. Each fills an array in place.

Draws come from a random stream of their own, so that when a parameter is initialised does not change any other
draw of the program. Knows no Block and no Parameter.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as onp

from mxnp import np
from mxnp._missing import refuse as _refuse
from mxnp.error import MXNetValueError

from ._initializer import InitDesc, Initializer, alias, apart_from, create, register

__all__ = [
    "Bilinear",
    "Constant",
    "InitDesc",
    "Initializer",
    "LSTMBias",
    "Load",
    "MSRAPrelu",
    "Mixed",
    "Normal",
    "One",
    "Ones",
    "Orthogonal",
    "Uniform",
    "Xavier",
    "Zero",
    "Zeros",
    "alias",
    "create",
    "register",
]


def _uniform(arr: Any, low: float, high: float) -> None:
    arr[...] = np.random.uniform(low, high, size=arr.shape, dtype=_drawn(arr), device=arr.device)


def _normal(arr: Any, sigma: float) -> None:
    arr[...] = np.random.normal(0.0, sigma, size=arr.shape, dtype=_drawn(arr), device=arr.device)


def _drawn(arr: Any) -> str:
    """The dtype to draw in: narrower ones round the float32 values."""
    return "float64" if arr.dtype == "float64" else "float32"


@alias("zeros")
@register
class Zero(Initializer):
    """Zeros.

    >>> w = np.empty((2, 2))
    >>> mx.init.Zero()("weight", w)
    >>> w
    array([[0., 0.],
           [0., 0.]])
    """

    def __init__(self) -> None:
        super().__init__()

    def _init_weight(self, name: str, arr: Any) -> None:
        arr[...] = 0


@alias("ones")
@register
class One(Initializer):
    """Ones.

    >>> w = np.empty((2, 2))
    >>> mx.init.One()("weight", w)
    >>> w
    array([[1., 1.],
           [1., 1.]])
    """

    def __init__(self) -> None:
        super().__init__()

    def _init_weight(self, name: str, arr: Any) -> None:
        arr[...] = 1


Zeros, Ones = Zero, One


@register
class Constant(Initializer):
    """One value everywhere, or an array (any array-like) that broadcasts to the parameter's shape.

    >>> w = np.empty((2, 2))
    >>> mx.init.Constant([1, 2])("weight", w)
    >>> w
    array([[1., 2.],
           [1., 2.]])
    """

    def __init__(self, value: Any) -> None:
        super().__init__(value=value)
        self.value = value

    def _init_weight(self, name: str, arr: Any) -> None:
        value = self.value.asnumpy() if hasattr(self.value, "asnumpy") else onp.asarray(self.value)
        try:
            value = onp.broadcast_to(value, arr.shape)
        except ValueError:
            raise MXNetValueError(
                f"Constant: a value of shape {value.shape} does not fit {str(name)!r} of shape {arr.shape}"
            ) from None
        arr[...] = np.array(value, dtype=arr.dtype, device=arr.device)


@register
class Uniform(Initializer):
    """Uniform on [-scale, scale).

    >>> w = np.empty((2, 2))
    >>> mx.init.Uniform(0.5)("weight", w)
    >>> float(np.abs(w).max()) <= 0.5
    True
    """

    def __init__(self, scale: float = 0.07) -> None:
        super().__init__(scale=scale)
        self.scale = scale

    def _init_weight(self, name: str, arr: Any) -> None:
        _uniform(arr, -self.scale, self.scale)


@register
class Normal(Initializer):
    """Normal with mean 0 and standard deviation `sigma`.

    >>> w = np.empty((2, 2))
    >>> mx.init.Normal(0.1)("weight", w)
    >>> w.shape
    (2, 2)
    """

    def __init__(self, sigma: float = 0.01) -> None:
        super().__init__(sigma=sigma)
        self.sigma = sigma

    def _init_weight(self, name: str, arr: Any) -> None:
        _normal(arr, self.sigma)


@register
class Xavier(Initializer):
    """Keeps the variance of signals through a layer (Glorot and Bengio, 2010).

    With scale = sqrt(magnitude / factor): uniform on [-scale, scale), or for `rnd_type='gaussian'` normal
    with standard deviation scale. factor is, by `factor_type`, the number of inputs ('in') or outputs ('out') of a
    unit, or their mean ('avg'): with weights (outputs, inputs, *kernel), those two times the kernel's size.

    Raises ValueError for arrays of fewer than 2 dimensions.

    >>> w = np.empty((200, 100))
    >>> mx.init.Xavier()("weight", w)
    >>> float(np.abs(w).max()) <= (3 / 150) ** 0.5
    True
    """

    def __init__(self, rnd_type: str = "uniform", factor_type: str = "avg", magnitude: float = 3) -> None:
        super().__init__(rnd_type=rnd_type, factor_type=factor_type, magnitude=magnitude)
        if rnd_type not in ("uniform", "gaussian"):
            raise MXNetValueError(f"Xavier: rnd_type must be 'uniform' or 'gaussian', got {rnd_type!r}")
        if factor_type not in ("avg", "in", "out"):
            raise MXNetValueError(f"Xavier: factor_type must be 'avg', 'in' or 'out', got {factor_type!r}")
        self.rnd_type = rnd_type
        self.factor_type = factor_type
        self.magnitude = float(magnitude)

    def _init_weight(self, name: str, arr: Any) -> None:
        if len(arr.shape) < 2:
            raise MXNetValueError(
                f"{type(self).__name__}: a weight needs at least 2 dimensions, {str(name)!r} has shape {arr.shape}"
            )
        if arr.size == 0:
            return
        kernel = math.prod(arr.shape[2:])
        fan_out, fan_in = arr.shape[0] * kernel, arr.shape[1] * kernel
        factor = {"avg": (fan_in + fan_out) / 2.0, "in": fan_in, "out": fan_out}[self.factor_type]
        scale = math.sqrt(self.magnitude / factor)
        if self.rnd_type == "uniform":
            _uniform(arr, -scale, scale)
        else:
            _normal(arr, scale)


@register
class MSRAPrelu(Xavier):
    """Xavier for layers followed by a leaky ReLU of this slope (He et al., 2015).

    Normal, with the magnitude 2 / (1 + slope^2); `factor_type` is Xavier's.

    >>> w = np.empty((200, 100))
    >>> mx.init.MSRAPrelu(slope=0)("weight", w)
    >>> 0.11 < float(w.std()) < 0.12
    True
    """

    def __init__(self, factor_type: str = "avg", slope: float = 0.25) -> None:
        super().__init__("gaussian", factor_type, 2.0 / (1.0 + slope**2))
        self._kwargs = {"factor_type": factor_type, "slope": slope}


@register
class Orthogonal(Initializer):
    """Rows (or columns, whichever are fewer) orthogonal to each other and of norm `scale` (Saxe et al.,
    2013).

    The weight is seen as (first dimension, all others). `rand_type` 'uniform' or 'normal' is what is
    orthogonalised.

    >>> w = np.empty((2, 5))
    >>> mx.init.Orthogonal(scale=1)("weight", w)
    >>> np.allclose(w @ w.T, np.eye(2), atol=1e-5)
    True
    """

    def __init__(self, scale: float = 1.414, rand_type: str = "uniform") -> None:
        super().__init__(scale=scale, rand_type=rand_type)
        if rand_type not in ("uniform", "normal"):
            raise MXNetValueError(f"Orthogonal: rand_type must be 'uniform' or 'normal', got {rand_type!r}")
        self.scale = scale
        self.rand_type = rand_type

    def _init_weight(self, name: str, arr: Any) -> None:
        if len(arr.shape) < 2:
            raise MXNetValueError(
                f"Orthogonal: a weight needs at least 2 dimensions, {str(name)!r} has shape {arr.shape}"
            )
        shape = (arr.shape[0], math.prod(arr.shape[1:]))
        if self.rand_type == "uniform":
            drawn = np.random.uniform(-1.0, 1.0, size=shape)
        else:
            drawn = np.random.normal(0.0, 1.0, size=shape)
        left, _, right = onp.linalg.svd(drawn.asnumpy().astype("float64"), full_matrices=False)
        rows = left if left.shape == shape else right
        arr[...] = np.array(self.scale * rows.reshape(arr.shape), dtype=arr.dtype, device=arr.device)


@register
class Bilinear(Initializer):
    """The kernel of bilinear upsampling, for the 4-D weight of a transposed convolution.

    >>> w = np.empty((1, 1, 2, 4))
    >>> mx.init.Bilinear()("weight", w)
    >>> w[0, 0]
    array([[0.0625, 0.1875, 0.1875, 0.0625],
           [0.1875, 0.5625, 0.5625, 0.1875]])
    """

    def __init__(self) -> None:
        super().__init__()

    def _init_weight(self, name: str, arr: Any) -> None:
        if len(arr.shape) != 4:
            raise MXNetValueError(
                f"Bilinear: a weight needs 4 dimensions, {str(name)!r} has shape {arr.shape}"
            )
        height, width = arr.shape[2:]
        half = math.ceil(width / 2.0)
        centre = (2 * half - 1 - half % 2) / (2.0 * half)
        rows, columns = (1 - onp.abs(onp.arange(n) / half - centre) for n in (height, width))
        kernel = onp.broadcast_to(rows[:, None] * columns, arr.shape)
        arr[...] = np.array(kernel, dtype=arr.dtype, device=arr.device)


@register
class LSTMBias(Initializer):
    """Zeros, but `forget_bias` for the second quarter: the forget gate of an LSTM's bias.

    >>> w = np.empty(4)
    >>> mx.init.LSTMBias()("weight", w)
    >>> w
    array([0., 1., 0., 0.])
    """

    def __init__(self, forget_bias: float = 1.0) -> None:
        super().__init__(forget_bias=forget_bias)
        self.forget_bias = forget_bias

    def _init_weight(self, name: str, arr: Any) -> None:
        units = arr.shape[0] // 4
        arr[...] = 0.0
        arr[units : 2 * units] = self.forget_bias


class Mixed(Initializer):
    """Several `initializers`: the first whose regular expression in `patterns` matches the start of the name is used.

    >>> w, b = np.empty(2), np.empty(2)
    >>> start = mx.init.Mixed(["bias", ".*"], [mx.init.Zero(), mx.init.One()])
    >>> start("bias", b); start("weight", w)
    >>> start("bias", b); start("weight", w)
    >>> b, w
    (array([0., 0.]), array([1., 1.]))
    """

    def __init__(self, patterns: list[str], initializers: list[Initializer]) -> None:
        super().__init__()
        if len(patterns) != len(initializers):
            raise MXNetValueError(f"Mixed: {len(patterns)} patterns for {len(initializers)} initializers")
        self.map = [(re.compile(p), create(i)) for p, i in zip(patterns, initializers, strict=True)]

    def __call__(self, desc: str, arr: Any) -> None:
        """Fill `arr` by the initializer that the name selects."""
        for pattern, initializer in self.map:
            if pattern.match(desc):
                initializer(apart_from(self, desc), arr)
                return
        raise MXNetValueError(
            f"Mixed: no pattern matches {str(desc)!r}\nhint: end the patterns with '.*' and a default initializer"
        )


class Load(Initializer):
    """Values from saved parameters: `param` is a file, or a dict of arrays by name ('arg:' and 'aux:' are dropped).

    Parameters that are not there start by `default_init`; with `verbose` the log says which way each one started.

    >>> w = np.empty(2)
    >>> mx.init.Load({"arg:weight": np.array([1.0, 2.0])})("weight", w)
    >>> w
    array([1., 2.])
    """

    def __init__(self, param: Any, default_init: Any = None, verbose: bool = False) -> None:
        super().__init__()
        if not isinstance(param, Mapping):
            from mxnp._files.arrays import load_arrays

            param = load_arrays(param)
            if not isinstance(param, dict):
                raise MXNetValueError("Load: the file holds arrays without names")
        self.param = {name.removeprefix("arg:").removeprefix("aux:"): value for name, value in param.items()}
        self.default_init = None if default_init is None else create(default_init)
        self.verbose = verbose

    def __call__(self, desc: str, arr: Any) -> None:
        """Fill `arr` with the values saved under the name."""
        value = self.param.get(str(desc))
        if value is None:
            if self.default_init is None:
                raise AssertionError(
                    f"Load: there is no {str(desc)!r}, and no default_init for what is missing"
                )
            self.default_init(apart_from(self, desc), arr)
        elif tuple(value.shape) != tuple(arr.shape):
            raise AssertionError(f"Load: {str(desc)!r} has shape {arr.shape}, but {value.shape} was saved")
        else:
            arr[...] = np.array(value, dtype=arr.dtype, device=arr.device)
        if self.verbose:
            source = "default_init" if value is None else "saved values"
            logging.getLogger(__name__).info("Initialized %s by %s", desc, source)


__getattr__ = _refuse(__name__)
