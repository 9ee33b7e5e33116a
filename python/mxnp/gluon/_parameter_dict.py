"""Dictionaries of parameters: what `block.params` and `collect_params()` give. Knows no Block."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from os import PathLike, fspath
from typing import Any

from mxnp import initializer
from mxnp._files import load_arrays, save_arrays
from mxnp.device import Device
from mxnp.error import MXNetValueError

from ._devices import DeviceLike
from ._loading import LoadOptions, load_into, named_arrays
from ._parameter import Constant, Parameter


class ParameterDict(dict[str, Parameter]):
    """A dict from name to Parameter, with the methods MXNet 1.x gave it.

    `block.params` is the live one of a block: `get` and `get_constant` register in it. `collect_params()` gives a
    new one, for all parameters below a block, keyed by structural name (`0.weight`). `prefix` is 1.x's, `shared` holds
    parameters that take the place of new ones of the same name.

    >>> net = nn.Dense(2, in_units=3)
    >>> net.collect_params(".*weight").setattr("lr_mult", 0.1)
    >>> net.weight.lr_mult
    0.1
    """

    def __init__(self, prefix: str = "", shared: Mapping[str, Parameter] | None = None) -> None:
        super().__init__()
        self.prefix = prefix
        self._shared = {} if shared is None else dict(shared)
        self._full_names: Callable[[], dict[str, str]] = (
            dict  # 1.x's names of the parameters to the keys here
        )
        self._made: dict[str, Parameter] = {}  # by the name given to `get`, whatever attribute they end up as

    # Making and sharing ---------------------------------------------------------------------------------------

    def get(self, name: str, default: Any = None, **kwargs: Any) -> Any:
        """The parameter `name`; with keyword arguments (Parameter's) it is made and registered when absent.

        Without them an absent name gives `default`, as in any dict. Raises AssertionError when `shape` or `dtype`
        contradicts the parameter that exists.
        """
        existing = self._find(name)
        if existing is None:
            return self._register(name, Parameter(name, **kwargs)) if kwargs else default
        existing.shape = kwargs.get("shape")
        if "dtype" in kwargs and existing.dtype != Parameter(name, dtype=kwargs["dtype"]).dtype:
            raise AssertionError(f"Parameter '{name}' has dtype {existing.dtype}, not {kwargs['dtype']}")
        return self._register(name, existing)

    def get_constant(self, name: str, value: Any = None) -> Parameter:
        """The constant `name`, made from `value` and registered when absent. Raises KeyError without a value."""
        existing = self._find(name)
        if existing is None and value is None:
            raise KeyError(f"no constant named '{name}': give a value to make it")
        return self._register(name, Constant(name, value) if existing is None else existing)

    def _find(self, name: str) -> Parameter | None:
        for known in (self, self._made, self._shared):
            if name in known:
                return known[name]
        return None

    def _register(self, name: str, parameter: Parameter) -> Parameter:
        if name not in self._made:
            self._made[name] = parameter
            self[name] = parameter
        return parameter

    def _adopt(self, key: str, parameter: Parameter) -> Parameter:
        """Register a block's attribute and give back what it should hold: for a new `key`, a shared parameter.

        A parameter that `get` has just registered under its own name moves to the attribute's.
        """
        adopted = parameter if key in self else self._shared.get(key, parameter)
        adopted.shape = parameter.shape
        name = next((name for name, known in self._made.items() if known is parameter), None)
        if name is not None:
            self._made[name] = adopted
            if key not in self and dict.get(self, name) is parameter:
                del self[name]
        self[key] = adopted
        return adopted

    def _shared_below(self, child: str) -> dict[str, Parameter]:
        """What is to be shared with the child of that name."""
        start = f"{child}."
        return {name.removeprefix(start): p for name, p in self._shared.items() if name.startswith(start)}

    def update(self, other: Any = (), /, **kwargs: Parameter) -> None:
        """Add the parameters of `other`. Raises ValueError when a name already stands for a different one."""
        new = dict(other, **kwargs)
        for name, parameter in new.items():
            if dict.get(self, name, parameter) is not parameter:
                raise MXNetValueError(
                    f"ParameterDict.update: '{name}' is in both dictionaries and names different parameters\n"
                    "hint: for a Trainer over two networks give a list, [*a.values(), *b.values()]"
                )
        super().update(new)

    # All of them at once --------------------------------------------------------------------------------------

    def _each(self) -> Iterable[Parameter]:
        """Every parameter once, also when it is shared and so listed under several names."""
        return dict.fromkeys(self.values())

    def setattr(self, name: str, value: Any) -> None:
        """Set one attribute (`grad_req`, `lr_mult`, ...) on every parameter."""
        for parameter in self._each():
            setattr(parameter, name, value)

    def initialize(
        self,
        init: Any = None,
        device: DeviceLike = None,
        verbose: bool = False,
        force_reinit: bool = False,
        ctx: DeviceLike = None,
    ) -> None:
        """Initialise every parameter; `init` (Uniform()) serves those without an initialiser of their own."""
        init = initializer.Uniform() if init is None else initializer.create(init)
        if verbose:
            init.set_verbosity(verbose=True)
        for parameter in self._each():
            parameter.initialize(None, device, init, force_reinit, ctx)

    def zero_grad(self) -> None:
        """Fill all gradients with zeros in place."""
        for parameter in self._each():
            parameter.zero_grad()

    def reset_device(self, device: DeviceLike = None, ctx: DeviceLike = None) -> None:
        """Move every parameter to `device` (one or a list)."""
        for parameter in self._each():
            parameter.reset_device(device, ctx)

    def reset_ctx(self, ctx: DeviceLike = None) -> None:
        """1.x's name of `reset_device`."""
        self.reset_device(ctx)

    def list_device(self) -> list[Device]:
        """Every device that holds a parameter, each once."""
        return list(dict.fromkeys(device for p in self._each() for device in p.list_device()))

    def list_ctx(self) -> list[Device]:
        """1.x's name of `list_device`."""
        return self.list_device()

    # Files ----------------------------------------------------------------------------------------------------

    def save(self, filename: str | PathLike[str], strip_prefix: str = "") -> None:
        """Write all parameters to a file, `strip_prefix` taken off their names (ValueError for one without it)."""
        for name in self:
            if not name.startswith(strip_prefix):
                raise MXNetValueError(f"ParameterDict.save: '{name}' does not start with '{strip_prefix}'")
        save_arrays(filename, {name.removeprefix(strip_prefix): p._reduce() for name, p in self.items()})

    def load(
        self,
        filename: str | PathLike[str],
        device: DeviceLike = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
        restore_prefix: str = "",
        cast_dtype: bool = False,
        dtype_source: str = "current",
        ctx: DeviceLike = None,
    ) -> None:
        """Read parameters from a file, `restore_prefix` put before its names. As `Block.load_parameters`."""
        options = LoadOptions.create(device, ctx, allow_missing, ignore_extra, cast_dtype, dtype_source)
        self._load(load_arrays(filename), f"file '{fspath(filename)}'", options, restore_prefix)

    def load_dict(
        self,
        param_dict: dict[str, Any],
        device: DeviceLike = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
        restore_prefix: str = "",
        filename: str | None = None,
        cast_dtype: bool = False,
        dtype_source: str = "current",
        ctx: DeviceLike = None,
    ) -> None:
        """As `load`, from a dict of arrays; `filename` is what messages call it."""
        options = LoadOptions.create(device, ctx, allow_missing, ignore_extra, cast_dtype, dtype_source)
        self._load(
            param_dict, "param_dict" if filename is None else f"file '{filename}'", options, restore_prefix
        )

    def _load(self, loaded: Any, source: str, options: LoadOptions, prefix: str = "") -> None:
        """Write named arrays into the parameters. Where no name is structural, 1.x's full names are tried."""
        arrays = named_arrays(loaded, source, prefix)
        if not any(name in self for name in arrays):
            keys = self._full_names()
            arrays = {keys.get(name) or keys.get(self.prefix + name, name): a for name, a in arrays.items()}
        load_into(self, arrays, source, options)
