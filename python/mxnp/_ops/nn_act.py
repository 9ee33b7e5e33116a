"""Activations and what normalises to probabilities: relu, sigmoid, softmax, leaky_relu, ..."""

from __future__ import annotations

from typing import Any

from mxnp import _core
from mxnp._core import ndarray
from mxnp.error import MXNetTypeError, MXNetValueError

from ._table import as_array, op, ufunc

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
mish = ufunc(
    "mish",
    "x tanh(log(1 + exp(x))).",
    ">>> npx.mish(np.array([0]))\narray([0.])",
    signature="(data, out=None)",
)
_SOFTMAX, _LOG_SOFTMAX, _LEAKY_RELU = op("softmax"), op("log_softmax"), op("leaky_relu")
_SOFTMIN, _MASKED_SOFTMAX, _MASKED_LOG_SOFTMAX = op("softmin"), op("masked_softmax"), op("masked_log_softmax")
_ABS, _TANH, _WHERE = op("absolute"), op("tanh"), op("where")
_UNIFORM = op("uniform")


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


def hard_sigmoid(data: Any, alpha: float = 0.2, beta: float = 0.5) -> ndarray:
    """alpha x + beta, clipped to [0, 1].

    >>> npx.hard_sigmoid(np.array([0]))
    array([0.5])
    """
    from .arith import clip

    return clip(as_array(data) * alpha + beta, 0, 1)


ACTIVATIONS: dict[str, Any] = {
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
        function = ACTIVATIONS[act_type]
    except (KeyError, TypeError):
        raise MXNetValueError(
            f"activation: act_type must be one of {', '.join(sorted(ACTIVATIONS))}, got {act_type!r}"
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
        return _LEAKY_RELU(data, gamma, act_type=act_type)
    if act_type == "rrelu" and _core.is_training():
        return _rrelu(as_array(data), lower_bound, upper_bound)
    bounds: dict[str, Any] = (
        {"lower_bound": float(lower_bound), "upper_bound": float(upper_bound)} if act_type == "rrelu" else {}
    )
    return _LEAKY_RELU(data, act_type=act_type, slope=float(slope), **bounds)


def _rrelu(x: ndarray, low: float, high: float) -> ndarray:
    dtype = None if x.dtype.kind in "iub" else x.dtype
    slope = _UNIFORM(low, high, size=x.shape, dtype=dtype, device=x.device)
    return _WHERE(x > 0, x, slope * x)


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
    to = None if dtype is None else _core.dtype(dtype)
    if use_length and length is not None:
        return _SOFTMAX(data, length, axis=axis, temperature=temperature, dtype=to, use_length=True)
    return _SOFTMAX(data, axis=axis, temperature=temperature, dtype=to)


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
    to = None if dtype is None else _core.dtype(dtype)
    if use_length and length is not None:
        return _LOG_SOFTMAX(data, length, axis=axis, temperature=temperature, dtype=to, use_length=True)
    return _LOG_SOFTMAX(data, axis=axis, temperature=temperature, dtype=to)


def softmin(data: Any, axis: int = -1, temperature: float | None = None, dtype: Any = None) -> ndarray:
    """`softmax` of -x.

    >>> npx.softmin(np.array([0, 0]))
    array([0.5, 0.5])
    """
    return _SOFTMIN(
        data, axis=axis, temperature=temperature, dtype=None if dtype is None else _core.dtype(dtype)
    )


def masked_softmax(
    data: Any, mask: Any, axis: int = -1, temperature: float | None = 1.0, normalize: bool = True
) -> ndarray:
    """`softmax` over the places where `mask` holds; 0 elsewhere, and everywhere in a line without any.

    >>> npx.masked_softmax(np.array([0, 9, 0]), np.array([True, False, True]))
    array([0.5, 0. , 0.5])
    """
    return _MASKED_SOFTMAX(
        data, mask, axis=axis, temperature=1.0 if temperature is None else float(temperature)
    )


def masked_log_softmax(
    data: Any, mask: Any, axis: int = -1, temperature: float | None = 1.0, normalize: bool = True
) -> ndarray:
    """The logarithm of `masked_softmax`: -inf where the mask does not hold.

    >>> npx.masked_log_softmax(np.array([0, 9]), np.array([True, False]))
    array([  0., -inf])
    """
    return _MASKED_LOG_SOFTMAX(
        data, mask, axis=axis, temperature=1.0 if temperature is None else float(temperature)
    )


def smooth_l1(data: Any, scalar: float = 1.0) -> ndarray:
    """(scalar x)**2 / 2 where |x| < 1 / scalar**2, else |x| - 1 / (2 scalar**2).

    >>> npx.smooth_l1(np.array([0.5, 2]))
    array([0.125, 1.5  ])
    """
    x = as_array(data)
    if scalar == 0:
        raise MXNetValueError("smooth_l1: scalar must not be 0")
    size, square = _ABS(x), float(scalar) ** 2
    return _WHERE(size < 1 / square, 0.5 * square * x * x, size - 0.5 / square)


METHODS = (softmax, log_softmax)
