"""Blocks: what networks are made of. A block owns parameters and children and maps inputs to outputs.

Knows no layer. Naming, files, hooks, the summary and 1.x's `F` have modules of their own.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Self

from mxnp import _core
from mxnp.error import (
    DeferredInitializationError,
    MXNetError,
    MXNetNotImplementedError,
    MXNetTypeError,
    MXNetValueError,
)

from . import _checkpoint
from ._cached_graph import changed
from ._children import Children, unwrap
from ._devices import DeviceLike
from ._hooks import HookHandle, Hooks
from ._naming import BlockNames
from ._parameter import Parameter, UninitializedParameterError
from ._parameter_dict import ParameterDict
from ._summary import print_summary

if TYPE_CHECKING:
    from mxnp._explain import Explanation


class Block:
    """The base of all networks and layers.

    A subclass makes its parameters and child blocks in `__init__`, as attributes, after `super().__init__()`, and
    computes in `forward`. Parameters and children are registered by assignment, under the attribute's name;
    blocks inside lists and dicts are not.

    Parameters
    ----------
    prefix : 1.x's prefix of names, `dense0_` by default; see `name_scope`.
    params : parameters to share, `other.params` or `other.collect_params()`: a parameter of this block whose
        structural name is in it becomes that one.

    >>> class Net(gluon.Block):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.hidden = nn.Dense(16, activation="relu")
    ...         self.output = nn.Dense(10)
    ...
    ...     def forward(self, x):
    ...         return self.output(self.hidden(x))
    >>> net = Net()
    >>> net.initialize()
    >>> net(np.ones((2, 4))).shape
    (2, 10)
    >>> list(net.collect_params(".*weight"))
    ['hidden.weight', 'output.weight']
    """

    _in_summary: ClassVar[bool] = True  # containers do without a row in the table

    def __init__(
        self, prefix: str | None = None, params: dict[str, Parameter] | None = None, **unknown: Any
    ) -> None:
        """1.x's names and sharing; 2's programs need neither.

        prefix : what the names of the block and its parameters start with; by default one with a number, `dense0_`.
        params : another block's `params`, whose parameters are shared by name.
        """
        if unknown:
            raise TypeError(
                f"{type(self).__name__}() got an unexpected keyword argument '{next(iter(unknown))}'"
            )
        names = BlockNames.create(prefix, self._alias())
        self._block_names = names
        self._reg_params = ParameterDict(names.prefix, params)
        self._children = Children()
        self._forward_pre_hooks: Hooks = {}
        self._forward_hooks: Hooks = {}

    # Attributes -----------------------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        value = unwrap(value)
        if "_children" not in self.__dict__:
            if isinstance(value, (Block, Parameter)):
                raise AttributeError(
                    f"{type(self).__name__}: call super().__init__() before setting '{name}'"
                )
        elif isinstance(value, Parameter):
            self._unregister(name, value)
            value = self._reg_params._adopt(name, value)
        elif isinstance(value, Block):
            self._unregister(name, value)
            self.register_child(value, name)
        elif name in self._reg_params or name in self._children:
            self._unregister(name, value)
        if "_in_graph" in self.__dict__:
            changed(self)
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        changed(self)
        self._reg_params.pop(name, None)
        self._children.pop(name, None)
        super().__delattr__(name)

    def _unregister(self, name: str, value: Any) -> None:
        """Make room for `value` where a parameter or child may stand: a block for a block, and so on, or None."""
        for registry, kind in ((self._reg_params, Parameter), (self._children, Block)):
            if name in registry and not isinstance(value, kind):
                if value is not None:
                    raise TypeError(
                        f"{type(self).__name__}.{name} is a {kind.__name__} and cannot become "
                        f"{type(value).__name__}\nhint: use another name, or delete the attribute first"
                    )
                del registry[name]

    def __repr__(self) -> str:
        children = [f"  ({name}): {_indent(repr(block))}\n" for name, block in self._children.blocks()]
        return f"{type(self).__name__}(\n{''.join(children)})" if children else f"{type(self).__name__}()"

    def register_child(self, block: Block, name: str | None = None) -> None:
        """Make `block` a child, named by its position when there is no `name`.

        Raises ValueError for what is no Block, and for the block itself.
        """
        block = unwrap(block)
        if not isinstance(block, Block):
            raise MXNetValueError(
                f"{type(self).__name__}: a child must be a Block, got {type(block).__name__}"
            )
        if block is self:
            raise MXNetValueError(f"{type(self).__name__}: a block cannot be its own child")
        name = str(len(self._children)) if name is None else name
        changed(self)
        shared = {} if name in self._children else self._reg_params._shared_below(name)
        self._children[name] = block
        if shared:
            block._share(shared, "")

    # 1.x names ------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """1.x's unique name, such as `dense0`."""
        return self._block_names.name

    @name.setter
    def name(self, name: str) -> None:
        self._block_names.name = name

    @property
    def prefix(self) -> str:
        """1.x's prefix, such as `dense0_`."""
        return self._block_names.prefix

    @prefix.setter
    def prefix(self, prefix: str) -> None:
        self._block_names.prefix = prefix

    def _alias(self) -> str:
        """What numbered names start with, `dense` for `dense0`; called before the subclass's own `__init__`."""
        return type(self).__name__.lower()

    def name_scope(self) -> Any:
        """A context in which new blocks get this block's prefix before theirs. Structural names do not need it."""
        return self._block_names.scope()

    # Parameters -----------------------------------------------------------------------------------------------

    @property
    def params(self) -> ParameterDict:
        """The block's own parameters, without its children's. `params.get(name, shape=...)` makes one here."""
        return self._reg_params

    def collect_params(self, select: str | None = None) -> ParameterDict:
        """All parameters of the block and its children by structural name, such as `features.0.weight`.

        `select` is a regular expression that must match from the start of the name (`re.match`); a shared
        parameter is listed under each of its names. Warns about blocks in lists or dicts, which are not found.
        """
        self._warn_about_containers()
        everything = self._collect_params_with_prefix()
        for name, parameter in reversed(everything.items()):
            parameter._structural_name = name
        selected = ParameterDict(self.prefix)
        selected._full_names = partial(_checkpoint.full_names, self)
        dict.update(selected, everything if select is None else _matching(everything, select))
        return selected

    def _collect_params_with_prefix(self, prefix: str = "") -> dict[str, Parameter]:
        found = {prefix + key: parameter for key, parameter in self._reg_params.items()}
        for name, block in self._children.blocks():
            found.update(block._collect_params_with_prefix(f"{prefix}{name}."))
        return found

    def _warn_about_containers(self) -> None:
        children = {id(block) for _, block in self._children.blocks()}
        for name, value in self.__dict__.items():
            if type(value) in (list, tuple, dict) and not name.startswith("__"):
                values = value.values() if type(value) is dict else value
                if any(isinstance(v, Block) and id(v) not in children for v in map(unwrap, values)):
                    warnings.warn(
                        f"{type(self).__name__}.{name} is a {type(value).__name__} with Blocks, whose parameters "
                        "are not collected\nhint: use nn.Sequential, or call register_child for each",
                        stacklevel=3,
                    )
        for _, block in self._children.blocks():
            block._warn_about_containers()

    def share_parameters(self, shared: dict[str, Parameter]) -> Self:
        """Take over, by structural name, the parameters in `shared` (another block's `collect_params()`).

        Names the block lacks give a UserWarning; a shape that does not fit raises AssertionError.
        """
        if not isinstance(shared, dict):
            raise MXNetValueError(
                f"share_parameters: expected a dict of parameters, got {type(shared).__name__}"
            )
        _core.drop_graphs()
        own = self._collect_params_with_prefix()
        for name in shared:
            if name not in own:
                warnings.warn(
                    f"share_parameters: {type(self).__name__} has no parameter '{name}'", stacklevel=2
                )
        self._share(shared, "")
        return self

    def _share(self, shared: dict[str, Parameter], prefix: str) -> None:
        for key, own in list(self._reg_params.items()):
            parameter = shared.get(prefix + key, own)
            parameter.shape = own.shape
            self._reg_params[key] = parameter
            if self.__dict__.get(key) is own:
                super().__setattr__(key, parameter)
        for name, block in self._children.blocks():
            block._share(shared, f"{prefix}{name}.")

    def initialize(
        self,
        init: Any = None,
        device: DeviceLike = None,
        verbose: bool = False,
        force_reinit: bool = False,
        ctx: DeviceLike = None,
    ) -> None:
        """Initialise all parameters on `device` (one, a list for replicas, or the current one).

        `init` (Uniform(0.07)) serves the parameters without an initialiser of their own. Parameters with unknown
        dimensions wait for the first forward. Those already initialised stay, with a warning, unless
        `force_reinit`.
        """
        self.collect_params().initialize(init, device, verbose, force_reinit, ctx)

    def setattr(self, name: str, value: Any) -> None:
        """Set one attribute (`grad_req`, `lr_mult`, ...) on all parameters."""
        self.collect_params().setattr(name, value)

    def zero_grad(self) -> None:
        """Fill all gradients with zeros in place."""
        self.collect_params().zero_grad()

    def reset_device(self, device: DeviceLike = None, ctx: DeviceLike = None) -> None:
        """Move all parameters to `device` (one or a list)."""
        self.collect_params().reset_device(device, ctx)

    def reset_ctx(self, ctx: DeviceLike = None) -> None:
        """1.x's name of `reset_device`."""
        self.reset_device(ctx)

    def cast(self, dtype: Any) -> None:
        """Change the dtype of all parameters; layers may keep theirs (BatchNorm stays float32 below float32)."""
        for _, block in self._children.blocks():
            block.cast(dtype)
        for parameter in self._reg_params.values():
            parameter.cast(dtype)

    # Files ----------------------------------------------------------------------------------------------------

    def save_parameters(self, filename: str | PathLike[str], deduplicate: bool = False) -> None:
        """Write all parameters to `filename`, by structural name; a shared one once when `deduplicate`.

        Replaces the file as a whole or not at all.
        """
        _checkpoint.save(self, filename, deduplicate)

    def load_parameters(
        self,
        filename: str | PathLike[str],
        device: DeviceLike = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
        cast_dtype: bool = False,
        dtype_source: str = "current",
        ctx: DeviceLike = None,
    ) -> None:
        """Read parameters from a file of `save_parameters`, `export`, MXNet 1.x or 2; all of them or none.

        Initialises parameters that are not (on `device`) and writes into the arrays of those that are. With
        `cast_dtype`, `dtype_source` says which dtype stands: the block's ('current') or the file's ('saved').
        Raises AssertionError for missing parameters (unless `allow_missing`) and for shapes, dtypes or devices
        that do not fit, ValueError for arrays that are no parameter (unless `ignore_extra`).
        """
        options = _checkpoint.LoadOptions.create(
            device, ctx, allow_missing, ignore_extra, cast_dtype, dtype_source
        )
        _checkpoint.load_file(self, filename, options)

    def load_dict(
        self,
        param_dict: dict[str, Any],
        device: DeviceLike = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
        cast_dtype: bool = False,
        dtype_source: str = "current",
        ctx: DeviceLike = None,
    ) -> None:
        """As `load_parameters`, from a dict of arrays."""
        options = _checkpoint.LoadOptions.create(
            device, ctx, allow_missing, ignore_extra, cast_dtype, dtype_source
        )
        _checkpoint.load_arrays_into(self, param_dict, "param_dict", options)

    save_params = save_parameters  # 1.x's older names
    load_params = load_parameters

    def save(self, prefix: str | PathLike[str]) -> None:
        """Write the parameters to `<prefix>-model.params`, for `load`."""
        self.save_parameters(f"{prefix}-model.params")

    def load(self, prefix: str | PathLike[str]) -> None:
        """Read what `save(prefix)` wrote into a block of the same structure."""
        self.load_parameters(f"{prefix}-model.params")

    # Running --------------------------------------------------------------------------------------------------

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the outputs; subclasses define it, with any arguments. Call the block, not `forward`."""
        raise MXNetNotImplementedError(f"{type(self).__name__} defines no forward")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the pre-hooks, `forward` and the hooks; gives what `forward` returned.

        Raises RuntimeError, with the parameter's structural name, when a parameter is not initialised.
        """
        if self._forward_pre_hooks or self._forward_hooks:
            _core.end_trace("has a child with forward hooks")
        if self._forward_pre_hooks:
            for hook in tuple(self._forward_pre_hooks.values()):
                hook(self, args)
        try:
            outputs = self._run(args, kwargs)
        except (UninitializedParameterError, DeferredInitializationError) as error:
            self._name_parameter_in(error)
            raise
        if self._forward_hooks:
            for hook in tuple(self._forward_hooks.values()):
                hook(self, args, outputs)
        return outputs

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.forward(*args, **kwargs)

    def _name_parameter_in(self, error: MXNetError) -> None:
        """Rewrite the error with the name as seen from here: the outermost block called comes last and wins."""
        parameter = getattr(error, "parameter", None)
        if parameter is not None:
            for name, own in self._collect_params_with_prefix().items():
                if own is parameter:
                    parameter._structural_name = name
                    error.args = (parameter._no_data_text(),)
                    return

    def register_forward_pre_hook(self, hook: Callable[[Block, tuple[Any, ...]], None]) -> HookHandle:
        """Call `hook(block, inputs)` before every forward; its result is ignored."""
        return _attach(self._forward_pre_hooks, hook)

    def register_forward_hook(self, hook: Callable[[Block, tuple[Any, ...], Any], None]) -> HookHandle:
        """Call `hook(block, inputs, outputs)` after every forward; its result is ignored."""
        return _attach(self._forward_hooks, hook)

    def register_op_hook(self, callback: Callable[..., object], monitor_all: bool = False) -> None:
        """Register the hook with all children; see HybridBlock.register_op_hook."""
        if not callable(callback):
            raise MXNetTypeError(f"a hook must be callable, got {type(callback).__name__}")
        for _, block in self._children.blocks():
            block.register_op_hook(callback, monitor_all)

    def apply(self, fn: Callable[[Block], Any]) -> Self:
        """Call `fn` on every child, depth first, then on the block itself."""
        for _, block in self._children.blocks():
            block.apply(fn)
        fn(self)
        return self

    def hybridize(self, active: bool = True, **kwargs: Any) -> None:
        """Pass `hybridize` on to the children; see HybridBlock.hybridize."""
        for _, block in self._children.blocks():
            block.hybridize(active, **kwargs)

    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """Call the block and show what ran for it: see `mxnp.engine.explain`.

        Of a hybridized block it is what its compiled graph runs: where the call made a graph, a second call is shown.

        >>> net = nn.Dense(4, activation="relu", in_units=8)
        >>> net.initialize()
        >>> net.explain(np.ones((2, 8))).totals["kernels"]
        1
        """
        from mxnp import _explain

        known = self._num_graphs()
        shown = _explain.run(self, args, kwargs)
        return shown if self._num_graphs() == known else _explain.run(self, args, kwargs)

    def _num_graphs(self) -> int:
        return sum(block._num_graphs() for _, block in self._children.blocks())

    def summary(self, *inputs: Any) -> None:
        """Print a table of the blocks, their output shapes and parameter counts for one forward of `inputs`."""
        print_summary(self, inputs)


def _attach(hooks: Hooks, hook: Callable[..., Any]) -> HookHandle:
    if not callable(hook):
        raise MXNetTypeError(f"a hook must be callable, got {type(hook).__name__}")
    handle = HookHandle()
    handle.attach(hooks, hook)
    return handle


def _matching(params: dict[str, Parameter], select: str) -> dict[str, Parameter]:
    pattern = re.compile(select)
    return {name: parameter for name, parameter in params.items() if pattern.match(name)}


def _indent(text: str) -> str:
    return text.replace("\n", "\n  ")
