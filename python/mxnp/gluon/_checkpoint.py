"""A block's parameters to and from files, under structural names; reads 1.x's full names too."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike, fspath
from typing import Any

from mxnp._files import load_arrays, save_arrays

from ._loading import LoadOptions

__all__ = ["LoadOptions", "full_names", "load_arrays_into", "load_file", "save"]


def save(block: Any, filename: str | PathLike[str], deduplicate: bool) -> None:
    """Write the block's parameters; a shared one under its first name only when `deduplicate`."""
    params = block.collect_params()
    if deduplicate:
        first_names = {id(parameter): name for name, parameter in reversed(params.items())}
        params = {name: parameter for name, parameter in params.items() if first_names[id(parameter)] == name}
    save_arrays(filename, {name: parameter._reduce() for name, parameter in params.items()})


def load_file(block: Any, filename: str | PathLike[str], options: LoadOptions) -> None:
    """Read a parameter file into the block."""
    load_arrays_into(block, load_arrays(filename), f"file '{fspath(filename)}'", options)


def load_arrays_into(block: Any, loaded: Any, source: str, options: LoadOptions) -> None:
    """Write named arrays into the block. See `ParameterDict.load`."""
    block.collect_params()._load(loaded, source, options)


def full_names(block: Any) -> dict[str, str]:
    """1.x's names (`net0_dense0_weight`) to structural ones (`0.weight`)."""
    return dict(_walk(block, ""))


def _walk(block: Any, path: str) -> Iterator[tuple[str, str]]:
    for key, parameter in block.params.items():
        yield block.prefix + parameter.name, path + key
    for name, child in block._children.blocks():
        yield from _walk(child, f"{path}{name}.")
