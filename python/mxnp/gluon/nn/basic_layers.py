"""Layers without a spatial meaning: Dense, Embedding, Dropout, Flatten, and functions as layers."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

from mxnp import np, npx
from mxnp.error import MXNetValueError

from .._legacy import F
from .._parameter import Parameter
from ..block import Block, HybridBlock
from ._common import axis_size, device_of, whole
from .activations import Activation


class Dense(HybridBlock):
    """A fully connected layer: `activation(x @ weight.T + bias)`.

    Parameters
    ----------
    units : size of the output.
    activation : name for Activation; None for none.
    use_bias : whether there is a bias.
    flatten : True takes (N, ...) as (N, in_units); False works on the last axis.
    dtype : of the parameters.
    weight_initializer, bias_initializer : None takes the one given to `initialize`.
    in_units : size of the input; 0 finds it in the first forward.

    >>> layer = nn.Dense(10, activation="relu")
    >>> layer.initialize()
    >>> layer(np.ones((2, 3, 4))).shape
    (2, 10)
    """

    def __init__(
        self,
        units: int,
        activation: str | None = None,
        use_bias: bool = True,
        flatten: bool = True,
        dtype: Any = "float32",
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        in_units: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._units = units = whole(units, self, "units")
        in_units = whole(in_units, self, "in_units", -1)
        self._flatten = flatten
        self.weight = Parameter(
            "weight", shape=(units, in_units), dtype=dtype, init=weight_initializer, allow_deferred_init=True
        )
        self.bias = (
            Parameter("bias", shape=(units,), dtype=dtype, init=bias_initializer, allow_deferred_init=True)
            if use_bias
            else None
        )
        self.act = Activation(activation) if activation is not None else None

    def infer_shape(self, x: Any, *args: Any) -> None:
        """The last axis, or all but the first, is the input size."""
        size = axis_size(x, -1, self)
        self.weight.shape = (self._units, math.prod(x.shape[1:]) if self._flatten else size)

    def forward(self, x: Any) -> Any:
        """(N, ...) to (N, units), or (..., in_units) to (..., units) without `flatten`."""
        device = device_of(x, self)
        weight = self.weight.data(device)
        bias = None if self.bias is None else self.bias.data(device)
        y = npx.fully_connected(
            x, weight, bias, num_hidden=self._units, no_bias=bias is None, flatten=self._flatten
        )
        return y if self.act is None else self.act(y)

    def __repr__(self) -> str:
        units, in_units = self.weight.shape
        return f"Dense({in_units} -> {units}, {'linear' if self.act is None else self.act})"


class Embedding(HybridBlock):
    """A table of vectors: each index in the input becomes its row. Indices out of range raise.

    Parameters
    ----------
    input_dim : number of rows.
    output_dim : size of a row.
    dtype : of the table.
    weight_initializer : None takes the one given to `initialize`.
    sparse_grad : accepted; the gradient is dense.

    >>> layer = nn.Embedding(1000, 16)
    >>> layer.initialize()
    >>> layer(np.ones((2, 5))).shape
    (2, 5, 16)
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        dtype: Any = "float32",
        weight_initializer: Any = None,
        sparse_grad: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._input_dim = input_dim = whole(input_dim, self, "input_dim")
        self._output_dim = output_dim = whole(output_dim, self, "output_dim")
        self.weight = Parameter(
            "weight",
            shape=(input_dim, output_dim),
            dtype=dtype,
            init=weight_initializer,
            grad_stype="row_sparse" if sparse_grad else "default",
        )

    def forward(self, x: Any) -> Any:
        """Indices of any shape (...) to (..., output_dim)."""
        weight = self.weight.data(device_of(x, self))
        return npx.embedding(
            x, weight, input_dim=self._input_dim, output_dim=self._output_dim, dtype=str(self.weight.dtype)
        )

    def __repr__(self) -> str:
        return f"Embedding({self._input_dim} -> {self._output_dim}, {self.weight.dtype})"


class Dropout(HybridBlock):
    """In training, zeros elements with probability `rate` and scales the rest by 1/(1 - rate); else the identity.

    `axes` lists the axes along which one decision is shared.

    >>> nn.Dropout(0.5)(np.ones(3)).tolist()
    [1.0, 1.0, 1.0]
    >>> with autograd.record():
    ...     set(nn.Dropout(0.5)(np.ones(100)).tolist()) <= {0.0, 2.0}
    True
    """

    def __init__(self, rate: float, axes: tuple[int, ...] = (), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not 0 <= rate <= 1:
            raise MXNetValueError(f"Dropout: rate must be a probability between 0 and 1, got {rate!r}")
        self._rate = rate
        self._axes = axes

    def forward(self, x: Any) -> Any:
        """Same shape and dtype."""
        return npx.dropout(x, p=self._rate, axes=self._axes) if self._rate > 0 else x

    def __repr__(self) -> str:
        return f"Dropout(p = {self._rate}, axes={self._axes})"


class Flatten(HybridBlock):
    """(N, ...) to (N, product of the rest).

    >>> nn.Flatten()(np.ones((2, 3, 4))).shape
    (2, 12)
    """

    def forward(self, x: Any) -> Any:
        """A view where the layout allows one."""
        return x.reshape((axis_size(x, 0, self), math.prod(x.shape[1:])))

    def __repr__(self) -> str:
        return "Flatten"


class Identity(HybridBlock):
    """Gives its input back; stands in for a layer that is left out.

    >>> nn.Identity()(np.ones(2)).tolist()
    [1.0, 1.0]
    """

    def forward(self, x: Any) -> Any:
        """The input itself."""
        return x


class Lambda(Block):
    """A function as a block: a callable, or the name of one in np or npx.

    >>> nn.Lambda("abs")(np.array([-1, 2])).tolist()
    [1.0, 2.0]
    >>> nn.Lambda(lambda x: x**2)(np.array([-1, 2])).tolist()
    [1.0, 4.0]
    """

    def __init__(self, function: str | Callable[..., Any], prefix: str | None = None) -> None:
        super().__init__(prefix)
        self._function, self._function_name = _function(function)

    def forward(self, *args: Any) -> Any:
        """What the function gives."""
        return self._function(*args)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._function_name})"


class HybridLambda(HybridBlock):
    """A function as a hybrid block: a callable of the inputs, or of 1.x's `F` and the inputs, or a name.

    A callable whose first parameter is called `F` gets the namespace of operators there.

    >>> nn.HybridLambda("abs")(np.array([-1, 2])).tolist()
    [1.0, 2.0]
    >>> nn.HybridLambda(lambda F, x: F.relu(x))(np.array([-1, 2])).tolist()
    [0.0, 2.0]
    """

    def __init__(self, function: str | Callable[..., Any], prefix: str | None = None) -> None:
        super().__init__(prefix)
        self._function, self._function_name = _function(function)
        self._takes_operators = not isinstance(function, str) and _first_parameter(function) == "F"

    def forward(self, *args: Any) -> Any:
        """What the function gives."""
        return self._function(F, *args) if self._takes_operators else self._function(*args)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._function_name})"


def _function(function: str | Callable[..., Any]) -> tuple[Callable[..., Any], str]:
    """The callable and a name to print."""
    if isinstance(function, str):
        for space in (np, npx):
            if hasattr(space, function):
                return getattr(space, function), function
        raise MXNetValueError(f"Lambda: neither np nor npx has a function '{function}'")
    if not callable(function):
        raise MXNetValueError(
            f"Lambda: expected a function or the name of one, got {type(function).__name__}"
        )
    return function, getattr(function, "__name__", repr(function))


def _first_parameter(function: Callable[..., Any]) -> str | None:
    try:
        return next(iter(inspect.signature(function).parameters), None)
    except (TypeError, ValueError):  # builtins without a signature
        return None


def __getattr__(name: str) -> Any:
    """The layers that MXNet has in its module of this name, and mxnp in others."""
    from mxnp.gluon import nn

    if name in nn.__all__:
        return getattr(nn, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
