"""Activations and what normalises to probabilities: relu, sigmoid, softmax, leaky_relu, ..."""

from __future__ import annotations

from typing import Any

import numpy as onp

from mxnp import _core
from mxnp._core import ndarray
from mxnp.error import MXNetTypeError, MXNetValueError

from ._table import as_array, normalize_axis, op, ufunc

relu = ufunc(
    "relu",
    "x where it is positive, else 0.",
    ">>> npx.relu(np.array([-1, 2]))\narray([0., 2.])",
    signature="(data, out=None)",
)
sigmoid = ufunc(
    "sigmoid",
    "1 / (1 + exp(-x)).",
    ">>> npx.sigmoid(np.array([0]))\narray([0.5])",
    signature="(data, out=None)",
)
softrelu = ufunc(
    "softplus",
    "log(1 + exp(x)), without overflow.",
    ">>> npx.softrelu(np.array([0]))\narray([0.6931472])",
    signature="(data, out=None)",
)
gelu = ufunc(
    "gelu",
    "x times the standard normal distribution function of x.",
    ">>> npx.gelu(np.array([0]))\narray([0.])",
    signature="(data, out=None)",
)
silu = ufunc(
    "silu", "x sigmoid(x).", ">>> npx.silu(np.array([0]))\narray([0.])", signature="(data, out=None)"
)
_SOFTMAX, _LOG_SOFTMAX, _LEAKY_RELU = op("softmax"), op("log_softmax"), op("leaky_relu")
_ABS, _TANH, _WHERE = op("absolute"), op("tanh"), op("where")
_UNIFORM = op("uniform")
# Klambauer et al. 2017: the fixed point of mean 0 and variance 1.
SELU_SCALE, SELU_ALPHA = 1.0507009873554805, 1.6732632423543772


def softsign(data: Any) -> ndarray:
    """x / (1 + |x|).

    >>> npx.softsign(np.array([1]))
    array([0.5])
    """
    x = as_array(data)
    return x / (1 + _ABS(x))


def log_sigmoid(data: Any) -> ndarray:
    """The logarithm of sigmoid(x), exact for large x of either sign.

    >>> npx.log_sigmoid(np.array([0]))
    array([-0.6931472])
    """
    return -softrelu(-as_array(data))


def mish(data: Any) -> ndarray:
    """x tanh(log(1 + exp(x))).

    >>> npx.mish(np.array([0]))
    array([0.])
    """
    x = as_array(data)
    return x * _TANH(softrelu(x))


def hard_sigmoid(data: Any, alpha: float = 0.2, beta: float = 0.5) -> ndarray:
    """alpha x + beta, clipped to [0, 1].

    >>> npx.hard_sigmoid(np.array([0]))
    array([0.5])
    """
    from .arith import clip

    return clip(as_array(data) * alpha + beta, 0, 1)


_ACTIVATIONS: dict[str, Any] = {
    "relu": relu,
    "sigmoid": sigmoid,
    "tanh": _TANH,
    "softrelu": softrelu,
    "softsign": softsign,
    "log_sigmoid": log_sigmoid,
    "mish": mish,
}


def activation(data: Any, act_type: str = "relu", **kwargs: Any) -> ndarray:
    """The activation called `act_type`: relu, sigmoid, log_sigmoid, mish, tanh, softrelu or softsign.

    >>> npx.activation(np.array([-1, 2]), act_type='relu')
    array([0., 2.])
    """
    try:
        function = _ACTIVATIONS[act_type]
    except (KeyError, TypeError):
        raise MXNetValueError(
            f"activation: act_type must be one of {', '.join(sorted(_ACTIVATIONS))}, got {act_type!r}"
        ) from None
    return function(data)


def leaky_relu(
    data: Any,
    gamma: Any = None,
    act_type: str = "leaky",
    slope: float = 0.25,
    lower_bound: float = 0.125,
    upper_bound: float = 0.334,
    **kwargs: Any,
) -> ndarray:
    """The activation `act_type`, which is not flat below 0.

    'leaky': slope x below 0; 'elu': slope (exp(x) - 1) below 0; 'selu' and 'gelu' without parameters; 'prelu': gamma x
    below 0, gamma one number or one for each entry of axis 1; 'rrelu': a slope drawn from
    [lower_bound, upper_bound) for each element in training, their mean in prediction.

    >>> npx.leaky_relu(np.array([-1, 2]), slope=0.1)
    array([-0.1,  2. ])
    """
    if act_type == "prelu":
        if gamma is None:
            raise MXNetTypeError("leaky_relu: act_type 'prelu' needs gamma")
        return _prelu(as_array(data), as_array(gamma))
    if act_type == "rrelu":
        return _rrelu(as_array(data), lower_bound, upper_bound)
    return _LEAKY_RELU(data, act_type=act_type, slope=float(slope))


def _prelu(x: ndarray, gamma: ndarray) -> ndarray:
    if gamma.ndim == 1 and x.ndim > 1 and gamma.size > 1:
        gamma = gamma.reshape((1, -1) + (1,) * (x.ndim - 2))
    return _WHERE(x > 0, x, gamma * x)


def _rrelu(x: ndarray, low: float, high: float) -> ndarray:
    slope: Any = (low + high) / 2
    if _core.is_training():
        slope = _UNIFORM(
            low, high, size=x.shape, dtype=x.dtype if x.dtype.kind != "i" else None, device=x.device
        )
    return _WHERE(x > 0, x, slope * x)


def _scaled(x: ndarray, temperature: float | None) -> ndarray:
    if temperature is None or temperature == 1.0:
        return x
    if temperature == 0:
        raise MXNetValueError("softmax: temperature must not be 0")
    return x / temperature


def _valid(x: ndarray, length: Any, axis: int) -> ndarray:
    """Which places along `axis` are below the length of their line."""
    axis = normalize_axis(axis, x.ndim)
    lengths = as_array(length).expand_dims(axis)
    steps = _core.array(onp.arange(x.shape[axis]), lengths.dtype, x.device)
    return steps.reshape(tuple(-1 if i == axis else 1 for i in range(x.ndim))) < lengths


def softmax(
    data: Any,
    length: Any = None,
    axis: int = -1,
    temperature: float | None = None,
    use_length: bool = False,
    dtype: Any = None,
) -> ndarray:
    """exp(x / temperature) scaled to sum 1 along `axis`; with `use_length` only the first `length` of each line count.

    An integer in the place of `length` is the axis. Integers become the default float; `dtype` is the result's.

    >>> npx.softmax(np.array([0, 0]))
    array([0.5, 0.5])
    """
    if isinstance(length, int):
        length, axis = None, length
    x = as_array(data) if dtype is None else as_array(data).astype(dtype, copy=False)
    x = _scaled(x, temperature)
    if use_length and length is not None:
        return masked_softmax(x, _valid(x, length, axis), axis)
    return _SOFTMAX(x, axis=axis)


def log_softmax(
    data: Any,
    axis: int = -1,
    length: Any = None,
    temperature: float | None = None,
    use_length: bool = False,
    dtype: Any = None,
) -> ndarray:
    """The logarithm of `softmax`, exact where the softmax is tiny.

    >>> npx.log_softmax(np.array([0, 0]))
    array([-0.6931472, -0.6931472])
    """
    x = as_array(data) if dtype is None else as_array(data).astype(dtype, copy=False)
    x = _scaled(x, temperature)
    if use_length and length is not None:
        return masked_log_softmax(x, _valid(x, length, axis), axis)
    return _LOG_SOFTMAX(x, axis=axis)


def softmin(data: Any, axis: int = -1, temperature: float | None = None, dtype: Any = None) -> ndarray:
    """`softmax` of -x.

    >>> npx.softmin(np.array([0, 0]))
    array([0.5, 0.5])
    """
    return softmax(-as_array(data), None, axis, temperature, False, dtype)


def masked_softmax(
    data: Any, mask: Any, axis: int = -1, temperature: float | None = 1.0, normalize: bool = True
) -> ndarray:
    """`softmax` over the places where `mask` holds; 0 elsewhere, and everywhere in a line without any.

    >>> npx.masked_softmax(np.array([0, 9, 0]), np.array([True, False, True]))
    array([0.5, 0. , 0.5])
    """
    keep = as_array(mask).astype("bool", copy=False)
    lowest = _WHERE(keep, _scaled(as_array(data), temperature), -onp.inf)
    # A line without any place would be NaN: it is computed on zeros, and masked.
    empty = keep.any(axis, None, True) == False  # noqa: E712 an array's ==
    return _WHERE(keep, _SOFTMAX(_WHERE(empty, 0, lowest), axis=axis), 0)


def masked_log_softmax(
    data: Any, mask: Any, axis: int = -1, temperature: float | None = 1.0, normalize: bool = True
) -> ndarray:
    """The logarithm of `masked_softmax`: -inf where the mask does not hold.

    >>> npx.masked_log_softmax(np.array([0, 9]), np.array([True, False]))
    array([  0., -inf])
    """
    keep = as_array(mask).astype("bool", copy=False)
    lowest = _WHERE(keep, _scaled(as_array(data), temperature), -onp.inf)
    empty = keep.any(axis, None, True) == False  # noqa: E712 an array's ==
    return _WHERE(keep, _LOG_SOFTMAX(_WHERE(empty, 0, lowest), axis=axis), -onp.inf)


def smooth_l1(data: Any, scalar: float = 1.0) -> ndarray:
    """(scalar x)**2 / 2 where |x| < 1 / scalar**2, else |x| - 1 / (2 scalar**2).

    >>> npx.smooth_l1(np.array([0.5, 2]))
    array([0.125, 1.5  ])
    """
    x = as_array(data)
    size, square = _ABS(x), float(scalar) ** 2
    return _WHERE(size < 1 / square, 0.5 * square * x * x, size - 0.5 / square)


METHODS = (softmax, log_softmax)
