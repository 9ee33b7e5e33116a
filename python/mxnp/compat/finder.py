"""The import hook by which the name `mxnet` and all below it mean the modules of mxnp, the same objects."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Sequence
from typing import Any

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


class _Finder(importlib.abc.MetaPathFinder):
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
    used. Raises RuntimeError when MXNet itself has been imported already.

    >>> install_as_mxnet()
    >>> import mxnet
    >>> mxnet.__name__
    'mxnp'
    >>> uninstall()
    """
    present = sys.modules.get(NAME)
    if present is not None and present is not sys.modules.get(TARGET):
        raise RuntimeError(
            "install_as_mxnet: MXNet itself has been imported already\nhint: call it before the first `import mxnet`"
        )
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def uninstall() -> None:
    """Undo install_as_mxnet; modules that were imported under MXNet's names stay valid where they are held."""
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
        for name in [name for name in sys.modules if name == NAME or name.startswith(NAME + ".")]:
            del sys.modules[name]
