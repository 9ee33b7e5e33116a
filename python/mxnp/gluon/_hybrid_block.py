"""HybridBlock: a block that can be a compiled graph, with deferred shapes and 1.x's `hybrid_forward`."""

from __future__ import annotations

import threading
from typing import Any

from mxnp import _core
from mxnp._core import is_tracing as _is_tracing
from mxnp._symbol_types import SYMBOLS
from mxnp.error import MXNetError, MXNetNotImplementedError, MXNetValueError

from ._block import Block
from ._cached_graph import traced, untraced
from ._legacy import F, device_of_first
from ._op_hooks import Callback, observed
from ._parameter import Parameter

_one_at_a_time = threading.RLock()


class HybridBlock(Block):
    """A block that can become a compiled graph: `hybridize()` asks for it.

    Its own parameters with unknown dimensions get them from `infer_shape`, called before the first forward.
    `hybrid_forward(self, F, x, ..., **params)` of 1.x may stand in `forward`'s place.

    >>> class Scale(gluon.HybridBlock):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.gain = gluon.Parameter("gain", shape=(-1,), init="ones", allow_deferred_init=True)
    ...
    ...     def infer_shape(self, x):
    ...         self.gain.shape = (x.shape[-1],)
    ...
    ...     def forward(self, x):
    ...         return x * self.gain.data(x.device)
    >>> net = Scale()
    >>> net.initialize()
    >>> net.hybridize()
    >>> net(np.ones((2, 3))).shape
    (2, 3)
    >>> net.gain.shape
    (3,)
    """

    def __init__(
        self, prefix: str | None = None, params: dict[str, Parameter] | None = None, **unknown: Any
    ) -> None:
        super().__init__(prefix, params, **unknown)
        self._active = False
        self._flags: dict[str, Any] = {}
        self._op_hook: tuple[Callback, bool] | None = None
        self._compiled = _core.Compiled(folds=True)

    def hybridize(  # type: ignore[override]  # the options have names here
        self,
        active: bool = True,
        partition_if_dynamic: bool = True,
        static_alloc: bool = False,
        static_shape: bool = False,
        inline_limit: int = 2,
        forward_bulk_size: int | None = None,
        backward_bulk_size: int | None = None,
        *,
        backend: str | None = None,
        clear: bool = True,
    ) -> None:
        """Compile the block, with all its children (`active=False`: no longer).

        Results equal eager ones, bit for bit; in prediction, up to the last places where a batch normalisation is
        folded into the weights before it (`mx.engine.set_folding`).

        The first call with arguments of a kind is traced while it runs, and later ones replay its graph without
        Python. Each shape, dtype and device, which arrays want a gradient, which share memory, the other arguments
        by type and value, and recording and training mode make a graph of their own; 64 are kept. Parameters and
        arrays that `forward` refers to are read anew at each call; other state of Python is that of the first call,
        so set attributes from outside (which drops the graphs) and not in `forward`.

        In the trace, an array that depends on the inputs prints as a placeholder, and code that looks at its data
        (`if x.sum() > 0`, `asnumpy`) raises MXNetError with a hint. A call that cannot be a graph (sizes that depend
        on data, gradients taken inside, a child with hooks) runs in Python, and its compiled children replay.

        The options are MXNet's, 2's and 1.x's. They are kept as `_flags` and ask for nothing that would change a
        result; `clear` drops the graphs there are. `backend` names one of MXNet's accelerators, of which there is
        none here: ValueError.
        """
        if backend is not None:
            raise MXNetValueError(f"{type(self).__name__}.hybridize: there is no backend {backend!r}")
        self._active = active
        self._flags = {
            "partition_if_dynamic": partition_if_dynamic,
            "static_alloc": static_alloc,
            "static_shape": static_shape,
            "inline_limit": inline_limit,
            "forward_bulk_size": forward_bulk_size,
            "backward_bulk_size": backward_bulk_size,
            "clear": clear,
        }
        if clear or not active:
            self._compiled.clear()
        super().hybridize(active, **self._flags)

    def register_op_hook(self, callback: Callback, monitor_all: bool = False) -> None:
        """Call `callback(node_name, operator_name, array)` for every output of every operator in a call of the block.

        With `monitor_all` for its inputs too. Names are `node_<i>_output` (numbered where there are several) and
        `node_<i>_input<j>`, counted within the call; operators have mxnp's names. The operators are computed a second
        time to be shown, from the same random numbers: results, gradients and running statistics stay what they are.
        A later registration takes the place of an earlier one. Raises MXNetError in a call that cannot be traced.

        >>> layer = nn.Dense(2, activation="relu", in_units=3)
        >>> layer.initialize()
        >>> layer.register_op_hook(lambda node, operator, array: print(node, operator, array.shape))
        >>> _ = layer(np.ones((1, 3)))
        node_0_output fully_connected (1, 2)
        node_1_output relu (1, 2)
        """
        super().register_op_hook(callback, monitor_all)
        self._op_hook = (callback, monitor_all)

    def _num_graphs(self) -> int:
        return super()._num_graphs() + len(self._compiled.graphs())

    def infer_shape(self, *args: Any) -> None:
        """Set the unknown dimensions of the block's own parameters from the inputs; subclasses with any define it."""
        unknown = {key: p.shape for key, p in self._reg_params.items() if not p._shape_is_known()}
        if unknown:
            raise MXNetError(
                f"{type(self).__name__} has parameters of unknown shape: {unknown}\n"
                f"hint: give their shapes in __init__, or define {type(self).__name__}.infer_shape(self, *args)"
            )

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._op_hook is not None and not _is_tracing():
            return observed(self, args, kwargs)
        if args and type(args[0]) in SYMBOLS:
            from . import _export

            return _export.composed(self, args, kwargs)
        if self._active and not _is_tracing():
            found = self._compiled.run(args, kwargs)
            if found is NotImplemented:
                return traced(self, self._run_here, args, kwargs)
            if found is not ...:
                return found
        return self._run_here(args, kwargs)

    def _run_here(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The forward, with the initialisation that waited for it."""
        for parameter in self._reg_params.values():
            if parameter._deferred is not None:
                self._finish_deferred(args, kwargs)
                break
        return self.forward(*args, **kwargs)

    def _finish_deferred(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        with (
            _one_at_a_time,
            untraced(),
        ):  # threads that make the first forward together share one initialisation
            self.infer_shape(*args, *kwargs.values())
            HybridBlock.infer_shape(self)  # complains about what is still unknown
            for parameter in self._reg_params.values():
                parameter._finish_deferred_init()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the outputs; this one calls 1.x's `hybrid_forward` with `F` and the block's own parameters."""
        device = device_of_first((*args, *kwargs.values()))
        params = {key: p.data(device) for key, p in self._reg_params.items() if self.__dict__.get(key) is p}
        return self.hybrid_forward(F, *args, **kwargs, **params)

    def hybrid_forward(self, F: Any, *args: Any, **kwargs: Any) -> Any:
        """1.x's forward: `F` is the namespace of operators, parameters come as keyword arguments."""
        raise MXNetNotImplementedError(f"{type(self).__name__} defines neither forward nor hybrid_forward")

    # What needs graphs ----------------------------------------------------------------------------------------

    def export(self, path: Any, epoch: int = 0, remove_amp_cast: bool = True) -> tuple[str, str]:
        """Write the network and its parameters for `SymbolBlock.imports`, here and in MXNet 2; gives the file names.

        The files are `path-symbol.json` and `path-0000.params` (`epoch` is the number). The network must have been
        hybridized and called; its graph in prediction mode is written, for any batch size where the network allows
        it. Raises MXNetError for an operation that MXNet's files have no operator for.

        >>> import tempfile, os
        >>> net = nn.Dense(2, in_units=3)
        >>> net.initialize()
        >>> net.hybridize()
        >>> x = np.ones((1, 3))
        >>> y = net(x)
        >>> files = net.export(os.path.join(tempfile.mkdtemp(), "net"))
        >>> (gluon.SymbolBlock.imports(files[0], "data", files[1])(x) == y).all()
        array(True)
        """
        from . import _export

        return _export.export(self, path, epoch, remove_amp_cast)

    def optimize_for(self, x: Any, *args: Any, **options: Any) -> None:
        """Hybridize and call the block once, so that its graph is there; nothing is returned, as in MXNet.

        `options` are those of `hybridize` and a backend's own, which change nothing. A `backend` is refused as there.
        """
        known = {
            *("backend", "clear", "partition_if_dynamic", "static_alloc", "static_shape", "inline_limit"),
            *("forward_bulk_size", "backward_bulk_size"),
        }
        self.hybridize(True, **{"clear": False, **{k: v for k, v in options.items() if k in known}})
        self(x, *args)

    def infer_type(self, *args: Any) -> None:
        """Give the parameters the dtypes that go with these inputs' (`cast` where they differ), by the block's graph.

        Raises MXNetError where there is none, or where parameters were not initialised.

        >>> net = nn.Dense(2, in_units=3)
        >>> net.initialize()
        >>> net.infer_type(np.ones((1, 3), dtype="float64"))
        >>> net.weight.dtype
        dtype('float64')
        """
        from . import _export

        _export.infer_type(self, args)
