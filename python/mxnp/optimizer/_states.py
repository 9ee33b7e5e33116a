"""Optimizer states as bytes and back: an npz of arrays beside a JSON manifest, never a pickle.

Knows states only as trees of None, arrays and tuples, and an optimizer only as its class name and the plain
values among its attributes.
"""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np

from mxnp._files.arrays import load_arrays, save_arrays
from mxnp._files.convert import is_bfloat16
from mxnp.error import MXNetValueError

FORMAT = "mxnp-optimizer-states"
VERSION = 1
_MANIFEST = "manifest"
_PLAIN = (bool, int, float, str, type(None))
# The Trainer's to set again, not the file's to bring back.
_NOT_SAVED = ("rescale_grad", "begin_num_update", "aggregate_num", "use_fused_step")


def dump(states: dict[int | str, Any], optimizer: Any = None) -> bytes:
    """The states by index and, where one is given, the optimizer's hyperparameters and update counts."""
    arrays: list[np.ndarray] = []
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "states": [[index, _flatten(state, arrays)] for index, state in states.items()],
    }
    if optimizer is not None:
        manifest["optimizer"] = describe(optimizer)
    text = json.dumps(manifest, sort_keys=True).encode()
    named = {str(i): array for i, array in enumerate(arrays)}
    stream = io.BytesIO()
    save_arrays(stream, {_MANIFEST: np.frombuffer(text, np.uint8), **named})
    return stream.getvalue()


def load(data: bytes, name: str) -> tuple[dict[int | str, Any], dict[str, Any] | None]:
    """The states (trees of NumPy arrays) and the optimizer's description; `name` is for errors."""
    stream = io.BytesIO(data)
    stream.name = name
    arrays = load_arrays(stream)
    if not isinstance(arrays, dict) or _MANIFEST not in arrays:
        raise MXNetValueError(f"{name}: it holds arrays, but no optimizer states")
    try:
        manifest = json.loads(arrays[_MANIFEST].tobytes())
        if manifest["format"] != FORMAT:
            raise ValueError(f"format {manifest['format']!r:.60}")
        if manifest["version"] != VERSION:
            raise ValueError(f"version {manifest['version']!r:.60}, while this mxnp reads {VERSION}")
        states = {_index(index): _unflatten(tree, arrays) for index, tree in manifest["states"]}
        return states, manifest.get("optimizer")
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise MXNetValueError(f"{name}: damaged optimizer states: {error}") from error


def _index(value: Any) -> int | str:
    if isinstance(value, (int, str)):
        return value
    raise ValueError(f"index {value!r:.60}")


def _flatten(state: Any, arrays: list[np.ndarray]) -> Any:
    if state is None:
        return None
    if isinstance(state, (tuple, list)):
        return [_flatten(each, arrays) for each in state]
    if hasattr(state, "asnumpy"):
        arrays.append(state.asnumpy())
        return {"array": len(arrays) - 1}
    raise MXNetValueError(f"optimizer states hold None, arrays and tuples, got {type(state).__name__}")


def _unflatten(tree: Any, arrays: dict[str, np.ndarray]) -> Any:
    if tree is None:
        return None
    if isinstance(tree, list):
        return tuple(_unflatten(each, arrays) for each in tree)
    return arrays[str(tree["array"])]


def describe(optimizer: Any) -> dict[str, Any]:
    """Class name, plain attributes, update counts and the plain attributes of the learning-rate schedule."""
    scheduler = optimizer.lr_scheduler
    return {
        "class": type(optimizer).__name__,
        "values": {k: v for k, v in _plain(optimizer).items() if k not in _NOT_SAVED},
        "counts": [[d, list(c.items())] for d, c in optimizer._all_index_update_counts.items()],
        "scheduler": None if scheduler is None else [type(scheduler).__name__, _plain(scheduler)],
    }


def _plain(obj: Any) -> dict[str, Any]:
    values = {k: v for k, v in getattr(obj, "__dict__", {}).items() if not k.startswith("_")}
    plain = {k: v.item() if isinstance(v, np.generic) else v for k, v in values.items()}
    return {k: v for k, v in plain.items() if isinstance(v, _PLAIN)}


def restore(optimizer: Any, described: Any, name: str) -> None:
    """Give `optimizer` the values and counts of `described`, which must be of its class."""
    if described.get("class") != type(optimizer).__name__:
        raise MXNetValueError(
            f"{name}: these are states of {described.get('class')!r:.60}, but the optimizer is "
            f"{type(optimizer).__name__}\nhint: make the trainer with the optimizer that was saved"
        )
    try:
        counts = {int(d): {_index(i): int(n) for i, n in rows} for d, rows in described["counts"]}
        values = _checked(optimizer, described["values"])
        scheduler, saved = optimizer.lr_scheduler, described.get("scheduler")
        same = bool(saved) and saved[0] == type(scheduler).__name__
        schedule = _checked(scheduler, saved[1]) if same else {}
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise MXNetValueError(f"{name}: damaged optimizer states: {error}") from error
    for obj, attributes in ((optimizer, values), (scheduler, schedule)):
        for key, value in attributes.items():
            setattr(obj, key, value)
    optimizer._all_index_update_counts = counts or {0: {}}
    optimizer._set_current_device(0)


def _checked(obj: Any, values: dict[str, Any]) -> dict[str, Any]:
    """Those of `values` that `obj` has as plain attributes; a file may not make others, nor turn kinds."""
    known = _plain(obj)
    accepted = {key: value for key, value in values.items() if key in known}
    for key, value in accepted.items():
        if not isinstance(value, _PLAIN) or isinstance(value, str) != isinstance(known[key], str):
            raise ValueError(f"{key!r} of {type(obj).__name__} is {value!r:.60}")
    return accepted


def to_device(state: Any, weight: Any, as_array: Any) -> Any:
    """A tree of NumPy arrays as arrays on the weight's device."""
    if state is None:
        return None
    if isinstance(state, tuple):
        return tuple(to_device(each, weight, as_array) for each in state)
    dtype = "bfloat16" if is_bfloat16(state.dtype) else state.dtype
    return as_array(state, dtype=dtype, device=weight.device)
