"""`gluon.utils`: batches over devices, gradient clipping, files from the network."""

from __future__ import annotations

import hashlib
import math
import os
import shutil
import tempfile
import warnings
from itertools import pairwise
from typing import Any

from mxnp import np
from mxnp._missing import refuse as _refuse
from mxnp.device import Device
from mxnp.error import MXNetError, MXNetValueError

from ._devices import DeviceLike, device_list
from ._hooks import HookHandle

__all__ = [
    "HookHandle",
    "check_sha1",
    "clip_global_norm",
    "download",
    "replace_file",
    "shape_is_known",
    "split_and_load",
    "split_data",
]


def split_data(data: Any, num_slice: int, batch_axis: int = 0, even_split: bool = True) -> list[Any]:
    """`data` in `num_slice` consecutive slices along `batch_axis`.

    Raises ValueError when there are more slices than samples, or when `even_split` and they do not divide.
    Otherwise the last slices are the larger ones.

    >>> [part.shape for part in gluon.utils.split_data(np.ones((4, 2)), 2)]
    [(2, 2), (2, 2)]
    """
    size = data.shape[batch_axis]
    if not 1 <= num_slice <= size:
        raise MXNetValueError(
            f"split_data: shape {data.shape} cannot be split into {num_slice} slices along axis {batch_axis}"
        )
    if even_split and size % num_slice:
        raise MXNetValueError(
            f"split_data: shape {data.shape} cannot be split evenly into {num_slice} slices along axis {batch_axis}\n"
            "hint: use a batch size they divide, or even_split=False"
        )
    bounds = [size * i // num_slice for i in range(num_slice + 1)]
    before = (slice(None),) * (batch_axis % data.ndim)
    return [data[(*before, slice(a, b))] for a, b in pairwise(bounds)]


def split_and_load(
    data: Any,
    ctx_list: DeviceLike = None,
    batch_axis: int = 0,
    even_split: bool = True,
    device_list: DeviceLike = None,
) -> list[Any]:
    """`data` (an array, or what np.array takes) in one slice per device, each on its device.

    >>> [part.device for part in gluon.utils.split_and_load([1, 2], [mx.cpu(0), mx.cpu(1)])]
    [cpu(0), cpu(1)]
    """
    devices = _devices(ctx_list, device_list)
    if not isinstance(data, np.ndarray):
        data = np.array(data, device=devices[0])
    slices = [data] if len(devices) == 1 else split_data(data, len(devices), batch_axis, even_split)
    return [part.to_device(device) for part, device in zip(slices, devices, strict=True)]


def _devices(first: DeviceLike, second: DeviceLike) -> list[Device]:
    devices = device_list(first, second)
    if devices is None:
        raise MXNetValueError("split_and_load: expected a list of devices")
    return devices


def clip_global_norm(arrays: list[Any], max_norm: float, check_isfinite: bool = True) -> Any:
    """Scale the arrays in place so that the 2-norm of all of them together is at most `max_norm`.

    Returns the norm before: a float, or an array, not waited for, without `check_isfinite`; with it a norm that
    is not finite gives a UserWarning.

    >>> gradients = [np.array([3.0]), np.array([4.0])]
    >>> gluon.utils.clip_global_norm(gradients, 1.0)
    5.0
    >>> round(float(gradients[0][0]), 3)
    0.6
    """
    if not arrays:
        raise AssertionError("clip_global_norm: expected at least one array")
    home = arrays[0].device
    squares = [np.square(array.astype("float32")).sum().to_device(home) for array in arrays]
    norm = np.sqrt(sum(squares[1:], squares[0]))
    if check_isfinite:
        norm = float(norm)
        if not math.isfinite(norm):
            warnings.warn("nan or inf in the arrays: clipping gives undefined results", stacklevel=2)
        factor = max_norm / (norm + 1e-8)
        if factor < 1.0:
            for array in arrays:
                array *= factor
        return norm
    scale = np.minimum(max_norm / (norm + 1e-8), 1.0)
    for array in arrays:
        array *= scale.to_device(array.device).astype(array.dtype)
    return norm


def shape_is_known(shape: tuple[int, ...] | None) -> bool:
    """Whether every dimension is known: none is -1.

    >>> gluon.utils.shape_is_known((2, 3)), gluon.utils.shape_is_known((2, -1))
    (True, False)
    """
    return shape is not None and all(size >= 0 for size in shape)


def check_sha1(filename: str | os.PathLike[str], sha1_hash: str) -> bool:
    """Whether the file's SHA-1 is `sha1_hash` (hexadecimal).

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     print(gluon.utils.check_sha1(file.name, "da39a3ee5e6b4b0d3255bfef95601890afd80709"))
    True
    """
    with open(filename, "rb") as file:
        return hashlib.file_digest(file, "sha1").hexdigest() == sha1_hash


def replace_file(src: str | os.PathLike[str], dst: str | os.PathLike[str]) -> None:
    """Move `src` over `dst` in one step; both on one file system."""
    os.replace(src, dst)


def download(
    url: str,
    path: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    sha1_hash: str | None = None,
    retries: int = 5,
    verify_ssl: bool = True,
) -> str:
    """Fetch `url` to `path` (a file or folder; the current folder by default) and return the file's name.

    A file that is there, with the right `sha1_hash` when one is given, is kept unless `overwrite`. The file
    appears only when complete and checked. Raises OSError when all tries fail, MXNetError for a wrong hash.
    """
    name = url.split("?", maxsplit=1)[0].rstrip("/").rsplit("/", 1)[-1]
    if path is None:
        target = name
    else:
        target = os.path.expanduser(path)
        target = os.path.join(target, name) if os.path.isdir(target) else target
    if os.path.exists(target) and not overwrite and (not sha1_hash or check_sha1(target, sha1_hash)):
        return target
    folder = os.path.dirname(os.path.abspath(target))
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".download-") as scratch:
        part = os.path.join(scratch, name)
        _fetch(url, part, retries, verify_ssl)
        if sha1_hash and not check_sha1(part, sha1_hash):
            raise MXNetError(
                f"download: {url} does not have the SHA-1 {sha1_hash}\nhint: the file has changed there"
            )
        replace_file(part, target)
    return target


def _fetch(url: str, path: str, retries: int, verify_ssl: bool) -> None:
    import ssl  # only downloads need the network's modules, which are slow to import
    import urllib.request

    context = None if verify_ssl else ssl._create_unverified_context()
    for left in range(max(retries, 0), -1, -1):
        try:
            with urllib.request.urlopen(url, context=context, timeout=60) as answer, open(path, "wb") as file:
                shutil.copyfileobj(answer, file)
            return
        except OSError as error:
            if not left:
                raise OSError(f"download: {url} cannot be fetched: {error}") from error


__getattr__ = _refuse(__name__)
