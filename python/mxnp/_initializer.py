"""The base of the initializers: names and their rules, the registry, and the stream that draws come from."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as onp

from mxnp import autograd
from mxnp._core import init_stream
from mxnp.error import MXNetNotImplementedError, MXNetTypeError, MXNetValueError

_registry: dict[str, type[Initializer]] = {}


class InitDesc(str):
    """A parameter's name that carries `attrs` and the initializer of the whole network.

    `global_init` is the network's. attrs['__init__'] is the parameter's own initializer: an Initializer, a
    name, or what `dumps` returns.

    >>> name = mx.init.InitDesc("weight", {"lr_mult": "2"})
    >>> name, name.attrs
    ('weight', {'lr_mult': '2'})
    """

    __slots__ = ("attrs", "global_init")
    attrs: dict[str, Any]
    global_init: Initializer | None

    def __new__(
        cls, name: str, attrs: Mapping[str, Any] | None = None, global_init: Initializer | None = None
    ) -> InitDesc:
        """A str with attributes."""
        self = super().__new__(cls, name)
        self.attrs = dict(attrs or {})
        self.global_init = global_init
        return self


def register(klass: type[Initializer]) -> type[Initializer]:
    """Class decorator: make `create` find the class under its lower-cased name.

    >>> @mx.init.register
    ... class Sevens(mx.init.Initializer):
    ...     def _init_weight(self, name, data):
    ...         data[:] = 7
    >>> w = np.empty(2)
    >>> mx.init.create("sevens")("weight", w)
    >>> w
    array([7., 7.])
    """
    return _add(getattr(klass, "__name__", "").lower(), klass)


def alias(*aliases: str) -> Callable[[type[Initializer]], type[Initializer]]:
    """Class decorator: make `create` find the class under these names too.

    >>> @mx.init.alias("eights")
    ... class Eight(mx.init.Initializer):
    ...     def _init_weight(self, name, data):
    ...         data[:] = 8
    >>> mx.init.create("eights")
    Eight()
    """

    def decorate(klass: type[Initializer]) -> type[Initializer]:
        for name in aliases:
            _add(name.lower(), klass)
        return klass

    return decorate


def _add(name: str, klass: type[Initializer]) -> type[Initializer]:
    if not (isinstance(klass, type) and issubclass(klass, Initializer)):
        raise MXNetTypeError(f"initializer.register: expected a subclass of Initializer, got {klass!r}")
    known = _registry.get(name)
    if known is not None and (known.__module__, known.__qualname__) != (klass.__module__, klass.__qualname__):
        warnings.warn(f"initializer {name!r}: {klass} replaces {known}", stacklevel=3)
    _registry[name] = klass
    return klass


def create(initializer: Any = None, *args: Any, **kwargs: Any) -> Initializer:
    """The initializer meant by a name and arguments, by what `dumps` returns, or by an Initializer itself.

    None is `Uniform()`, Gluon's default.

    >>> from mxnp.initializer import create
    >>> create("xavier", magnitude=2).dumps()
    '["xavier", {"rnd_type": "uniform", "factor_type": "avg", "magnitude": 2}]'
    """
    if initializer is None:
        return _registry["uniform"](*args, **kwargs)
    if isinstance(initializer, Initializer):
        if args or kwargs:
            raise MXNetValueError("initializer.create: arguments cannot be applied to a finished Initializer")
        return initializer
    if not isinstance(initializer, str):
        hint = "\nhint: pass an instance, with parentheses" if isinstance(initializer, type) else ""
        raise MXNetTypeError(
            f"initializer.create: expected a name or an Initializer, got {initializer!r}{hint}"
        )
    name = initializer
    if name.startswith("["):
        name, kwargs = _parse(name)
    try:
        klass = _registry[name.lower()]
    except KeyError:
        raise MXNetValueError(
            f"initializer.create: no initializer is called {name!r}\n"
            f"hint: there are {', '.join(sorted(_registry))}"
        ) from None
    return klass(*args, **kwargs)


def _parse(text: str) -> tuple[str, dict[str, Any]]:
    try:
        name, kwargs = json.loads(text)
        if isinstance(name, str) and isinstance(kwargs, dict):
            return name, kwargs
    except ValueError:
        pass
    raise MXNetValueError(
        f'initializer.create: expected \'["name", {{"argument": value}}]\', got {text!r:.200}'
    )


class Initializer:
    """Base of the initializers; a subclass defines `_init_weight(self, name, arr)` and fills `arr` in place.

    Called with a name and an array it fills the array: by the parameter's own initializer where the name is
    an InitDesc that carries one, else by the end of the name: `_init_weight` for weight, ones for gamma,
    running_var and max, zeros for bias, beta, running_mean and min. Other names raise ValueError.

    >>> class Countdown(mx.init.Initializer):
    ...     def _init_weight(self, name, data):
    ...         data[:] = np.arange(data.size, 0, -1).reshape(data.shape)
    >>> layer = nn.Dense(2, in_units=2)
    >>> layer.initialize(Countdown())
    >>> layer.weight.data()
    array([[4., 3.],
           [2., 1.]])
    """

    # How names end, and the method that fills arrays of that name; the first that fits decides.
    _BY_SUFFIX: ClassVar[tuple[tuple[str, str], ...]] = (
        ("weight", "_init_weight"),
        ("bias", "_init_bias"),
        ("gamma", "_init_gamma"),
        ("beta", "_init_beta"),
        ("min", "_init_zero"),
        ("max", "_init_one"),
        ("running_mean", "_init_zero"),
        ("moving_mean", "_init_zero"),
        ("moving_inv_var", "_init_zero"),
        ("moving_avg", "_init_zero"),
        ("running_var", "_init_one"),
        ("moving_var", "_init_one"),
    )

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = kwargs
        self._verbose = False
        self._print_func: Callable[[Any], Any] = _root_mean_square

    def dumps(self) -> str:
        """Name and arguments as JSON, which `create` reads."""
        return json.dumps([type(self).__name__.lower(), self._kwargs], default=_to_list)

    def set_verbosity(
        self, verbose: bool = False, print_func: Callable[[Any], Any] | None = None
    ) -> Initializer:
        """Log each parameter with `print_func(array)`, its root mean square by default; returns self."""
        self._verbose = verbose
        self._print_func = print_func or _root_mean_square
        return self

    def __call__(self, desc: str, arr: Any) -> None:
        """Fill `arr` in place."""
        if not isinstance(desc, str):
            raise MXNetTypeError(f"{type(self).__name__}: expected a parameter's name, got {desc!r}")
        desc = desc if isinstance(desc, InitDesc) else InitDesc(desc)
        own = desc.attrs.get("__init__")
        chosen = create(own) if own else self
        with autograd.pause(), init_stream():
            if not own:
                self._init_by_name(desc, arr)
            elif type(chosen).__call__ is not Initializer.__call__:
                chosen(desc, arr)
            else:
                chosen._init_weight(desc, arr)
        if self._verbose:
            logging.getLogger(__name__).info(
                "Initialized %s as %s: %s", desc, type(chosen).__name__, self._print_func(arr)
            )

    def _init_by_name(self, desc: InitDesc, arr: Any) -> None:
        for suffix, method in self._BY_SUFFIX:
            if desc.endswith(suffix):
                getattr(self, method)(desc, arr)
                return
        self._init_default(desc, arr)

    def _init_weight(self, name: str, arr: Any) -> None:
        raise MXNetNotImplementedError(f"{type(self).__name__} does not define _init_weight(self, name, arr)")

    def _init_zero(self, name: str, arr: Any) -> None:
        arr[...] = 0

    def _init_one(self, name: str, arr: Any) -> None:
        arr[...] = 1

    def _init_bias(self, name: str, arr: Any) -> None:
        self._init_zero(name, arr)

    def _init_gamma(self, name: str, arr: Any) -> None:
        self._init_one(name, arr)

    def _init_beta(self, name: str, arr: Any) -> None:
        self._init_zero(name, arr)

    def _init_default(self, name: str, arr: Any) -> None:
        raise MXNetValueError(
            f"{type(self).__name__}: no rule says how a parameter called {str(name)!r} starts; names that end in "
            "weight, bias, gamma or beta have one\n"
            "hint: give the parameter an initializer of its own, Parameter(..., init=...)"
        )

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.dumps() == self.dumps()

    def __hash__(self) -> int:
        return hash(self.dumps())

    def __repr__(self) -> str:
        arguments = ", ".join(f"{key}={value!r}" for key, value in self._kwargs.items())
        return f"{type(self).__name__}({arguments})"


def _to_list(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise MXNetTypeError(f"initializer.dumps: {value!r} has no JSON form")


def _root_mean_square(arr: Any) -> float:
    values = arr.asnumpy().astype("float64")
    return float(onp.sqrt(onp.mean(onp.square(values)))) if values.size else 0.0


def apart_from(initializer: Initializer, desc: str) -> str:
    """The name, without `initializer` as the parameter's own one: for those who pass it on to another."""
    own = getattr(desc, "attrs", {}).get("__init__")
    return str(desc) if own is initializer else desc
