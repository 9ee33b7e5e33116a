"""`bind`, `simple_bind` and `eval`: a symbol's variables matched with arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mxnp import np
from mxnp.device import Device, current_device
from mxnp.error import MXNetTypeError, MXNetValueError

from . import _infer, _values

_REQUESTS = ("write", "add", "null")


def _named(given: Any, names: list[str], what: str, optional: bool) -> dict[str, Any]:
    """Arrays by name from a list or dict. Raises ValueError for one that is missing, unless `optional`."""
    if given is None:
        given = {}
    if isinstance(given, Mapping):
        missing = [name for name in names if name not in given]
        if missing and not optional:
            raise MXNetValueError(f"key `{missing[0]}` is missing in `{what}`")
        return {name: given[name] for name in names if given.get(name) is not None}
    if not isinstance(given, (list, tuple)):
        raise MXNetTypeError(f"{what} must be a list or dict of arrays, got {type(given).__name__}")
    if len(given) != len(names):
        raise MXNetValueError(
            f"Length of {what} does not match the number of arguments: {len(given)}, {len(names)}"
        )
    return {name: array for name, array in zip(names, given, strict=True) if array is not None}


def _requests(grad_req: Any, names: list[str]) -> dict[str, str]:
    if isinstance(grad_req, str):
        wanted = dict.fromkeys(names, grad_req)
    elif isinstance(grad_req, (list, tuple)):
        if len(grad_req) != len(names):
            raise MXNetValueError(f"grad_req: there are {len(names)} arguments, got {len(grad_req)} requests")
        wanted = dict(zip(names, grad_req, strict=True))
    elif isinstance(grad_req, Mapping):
        wanted = {name: grad_req.get(name, "null") for name in names}
    else:
        raise MXNetTypeError(f"grad_req must be a text, list or dict, got {type(grad_req).__name__}")
    for name, request in wanted.items():
        if request not in _REQUESTS:
            raise MXNetValueError(
                f"grad_req of '{name}' must be one of {', '.join(_REQUESTS)}, got {request!r}"
            )
    return wanted


def bind(
    symbol: Any, ctx: Any, args: Any, args_grad: Any, grad_req: Any, aux_states: Any, what: str = "args"
) -> Any:
    """See `Symbol.bind`."""
    from mxnp.executor import Executor

    device = current_device() if ctx is None else Device(ctx)
    names, states = symbol.list_arguments(), symbol.list_auxiliary_states()
    arrays = _named(args, names, "args", False)
    if what == "eval":
        for name in args:
            if name not in names and name not in states:
                raise MXNetValueError(f"eval: there is no argument '{name}'; there are {', '.join(names)}")
    aux = _named(aux_states, states, "aux_states", False)
    for name, array in (*arrays.items(), *aux.items()):
        if not isinstance(array, np.ndarray):
            raise MXNetTypeError(f"bind: '{name}' must be an array, got {type(array).__name__}")
    grads = _named(args_grad, names, "args_grad", True)
    return Executor(symbol, device, arrays, grads, _requests(grad_req, names), aux)


def simple_bind(
    symbol: Any, ctx: Any, grad_req: Any, type_dict: Mapping[str, Any] | None, kwargs: Mapping[str, Any]
) -> Any:
    """See `Symbol.simple_bind`."""
    from mxnp.executor import Executor

    device = current_device() if ctx is None else Device(ctx)
    shapes = {k: v for k, v in kwargs.items() if isinstance(v, (tuple, list))}
    arg_shapes, _, aux_shapes = symbol.infer_shape(**shapes)
    if arg_shapes is None:
        raise MXNetValueError("simple_bind: the shapes given do not decide all arguments")
    found = _infer.Found()
    given = {name: _values.dtype_name(dtype) for name, dtype in (type_dict or {}).items()}
    _infer.infer_types(symbol._entries, given, found)
    dtypes = _dtypes(symbol, found)

    def zeros(name: str, shape: Any) -> Any:
        return np.zeros(shape, dtype=dtypes.get(name) or "float32", device=device)

    names, states = symbol.list_arguments(), symbol.list_auxiliary_states()
    requests = _requests(grad_req, names)
    args = {name: zeros(name, shape) for name, shape in zip(names, arg_shapes, strict=True)}
    grads = {name: zeros(name, args[name].shape) for name in names if requests[name] != "null"}
    aux = {name: zeros(name, shape) for name, shape in zip(states, aux_shapes, strict=True)}
    return Executor(symbol, device, args, grads, requests, aux)


def _dtypes(symbol: Any, found: Any) -> dict[str, str | None]:
    inputs = symbol.get_inputs()
    return {node.name: found.types.get((id(node), 0)) for node, _ in inputs._entries}
