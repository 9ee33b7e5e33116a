"""The file functions of the namespaces: np.save, np.savez, np.load and npx.save, npx.savez, npx.load."""

from __future__ import annotations

import os
from typing import IO, Any

from .arrays import load_arrays, save_arrays


def save(file: str | os.PathLike | IO[bytes], arr: Any) -> None:
    """np.save: write one array as .npy; `.npy` is added to a file name without it, as NumPy does.

    >>> import io
    >>> file = io.BytesIO()
    >>> np.save(file, np.ones(2))
    >>> _ = file.seek(0)
    >>> np.load(file)
    array([1., 1.])
    """
    if isinstance(arr, (dict, list, tuple)):
        from mxnp import np

        arr = np.array(arr)
    save_arrays(_with_suffix(file, ".npy"), arr)


def savez(file: str | os.PathLike | IO[bytes], *args: Any, **kwds: Any) -> None:
    """np.savez: write arrays as .npz under their keywords, or arr_0, ...; `.npz` is added where missing.

    >>> import io
    >>> file = io.BytesIO()
    >>> np.savez(file, x=np.ones(2))
    >>> _ = file.seek(0)
    >>> np.load(file)
    {'x': array([1., 1.])}
    """
    save_arrays(_with_suffix(file, ".npz"), _named(args, kwds))


def load(file: str | os.PathLike | IO[bytes]) -> Any:
    """np.load and npx.load: the array, list or dict of arrays in `file`, each with its stored dtype.

    Reads what `save` and `savez` write, NumPy's files, MXNet 1.x and 2 parameter files and safetensors. A
    damaged file raises an error that is both an MXNetError and a ValueError.

    >>> import io
    >>> file = io.BytesIO()
    >>> np.savez(file, np.ones(1), b=np.zeros(1))
    >>> _ = file.seek(0)
    >>> np.load(file)
    {'b': array([0.]), 'arr_0': array([1.])}
    """
    data = load_arrays(file)
    if isinstance(data, dict):
        return {name: _to_mxnp(array) for name, array in data.items()}
    return [_to_mxnp(array) for array in data] if isinstance(data, list) else _to_mxnp(data)


def npx_save(file: str | os.PathLike | IO[bytes], arr: Any) -> None:
    """npx.save: write an array, a list or a dict of arrays to exactly `file`; `load` gives the same kind.

    >>> import io
    >>> file = io.BytesIO()
    >>> npx.save(file, [np.ones(2)])
    >>> _ = file.seek(0)
    >>> npx.load(file)
    [array([1., 1.])]
    """
    save_arrays(file, arr)


def npx_savez(file: str | os.PathLike | IO[bytes], *args: Any, **kwds: Any) -> None:
    """npx.savez: write arrays to exactly `file`, under their keywords or arr_0, arr_1, ...

    >>> import io
    >>> file = io.BytesIO()
    >>> npx.savez(file, np.ones(2))
    >>> _ = file.seek(0)
    >>> npx.load(file)
    {'arr_0': array([1., 1.])}
    """
    save_arrays(file, _named(args, kwds))


def _named(args: tuple, kwds: dict) -> dict:
    named = dict(kwds)
    for i, value in enumerate(args):
        if f"arr_{i}" in named:
            raise ValueError(f"Cannot use un-named variables and keyword arr_{i}")
        named[f"arr_{i}"] = value
    return named


def _with_suffix(file: str | os.PathLike | IO[bytes], suffix: str) -> str | os.PathLike | IO[bytes]:
    if hasattr(file, "write"):
        return file
    path = os.fspath(file)
    return path if path.endswith(suffix) else path + suffix


def _to_mxnp(array: Any) -> Any:
    from mxnp import np

    return np.array(array, dtype=array.dtype)
