"""The import hook by which the name `mxnet` and all below it mean the modules of mxnp, the same objects."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import sys
import types
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from mxnp import libinfo

from .missing import NotArrivedError, missing_module

NAME, TARGET = "mxnet", "mxnp"
# Modules of MXNet whose contents mxnp has elsewhere.
_ELSEWHERE = {"numpy.multiarray": "np"}


class _Loader(importlib.abc.Loader):
    """Gives a module that is already loaded, and leaves its own idea of itself as it was."""

    def __init__(self, module: types.ModuleType):
        self._module = module
        self._own_spec = getattr(module, "__spec__", None)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return self._module

    def exec_module(self, module: types.ModuleType) -> None:
        # The import system has just written the spec of the alias into the module.
        module.__spec__ = self._own_spec


class _Distribution(importlib.metadata.Distribution):
    """What `importlib.metadata` finds as the installed package mxnet: a name and a version, no files."""

    def read_text(self, filename: str) -> str | None:
        if filename != "METADATA":
            return None
        return f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {libinfo.MXNET_VERSION}\n"

    def locate_file(self, path: Any) -> Path:
        return Path(__file__).parents[2] / path


class _Finder(importlib.abc.MetaPathFinder):
    def find_distributions(self, context: Any = None) -> Iterable[_Distribution]:
        wanted = getattr(context, "name", None)
        return [_Distribution()] if wanted == NAME else []

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != NAME and not fullname.startswith(NAME + "."):
            return None
        module = _resolve(fullname.removeprefix(NAME).removeprefix("."))
        return (
            None
            if module is None
            else importlib.machinery.ModuleSpec(fullname, _Loader(module), is_package=True)
        )


_finder = _Finder()


def _resolve(path: str) -> types.ModuleType | None:
    """mxnp's module at `path`, a module that mxnp has under another name, or a stand-in for what is missing."""
    path = _ELSEWHERE.get(path, path)
    name = f"{TARGET}.{path}" if path else TARGET
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # Only the absence of this path, or of a package above it, leads on; a broken import inside it does not.
        if error.name is None or not (name == error.name or name.startswith(error.name + ".")):
            raise
    owner: Any = sys.modules[TARGET]
    for part in path.split("."):
        try:
            owner = getattr(owner, part)
        except (AttributeError, NotArrivedError):
            return missing_module(path)
    return owner if isinstance(owner, types.ModuleType) else missing_module(path)


def install_as_mxnet() -> None:
    """Make `import mxnet`, and every path below it, mean mxnp from now on, also where MXNet is installed.

    The modules are the same objects: `mxnet.np is mxnp.np`. What mxnp lacks imports, and raises NotArrivedError when
    used. `__version__` becomes that of the MXNet that mxnp stands for, and the package mxnet counts as installed;
    `libinfo.__version__` stays mxnp's own. Raises RuntimeError when MXNet itself has been imported already.

    >>> install_as_mxnet()
    >>> import mxnet
    >>> mxnet.__name__, mxnet.__version__
    ('mxnp', '2.0.0')
    >>> uninstall()
    """
    present = sys.modules.get(NAME)
    if present is not None and present is not sys.modules.get(TARGET):
        raise RuntimeError(
            "install_as_mxnet: MXNet itself has been imported already\nhint: call it before the first `import mxnet`"
        )
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
        _set_version(libinfo.MXNET_VERSION)


def _set_version(version: str) -> None:
    owner: Any = sys.modules[TARGET]
    owner.__version__ = version


def uninstall() -> None:
    """Undo install_as_mxnet; modules that were imported under MXNet's names stay valid where they are held."""
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
        _set_version(libinfo.__version__)
        for name in [name for name in sys.modules if name == NAME or name.startswith(NAME + ".")]:
            del sys.modules[name]
