"""The profiler's settings, checked as MXNet checks them."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields, replace
from typing import Any

from mxnp.error import MXNetError, MXNetTypeError, MXNetValueError

_WORDS = {"1": True, "true": True, "0": False, "false": False}
# MXNet looks the process up in a table, so a wrong one is a KeyError there and here.
_PROCESSES = {"worker": False, "server": True}


@dataclass(frozen=True)
class Config:
    """See `mxnp.profiler.set_config`. Defaults are MXNet's, but for `continuous_dump`."""

    filename: str = "profile.json"
    profile_all: bool = False
    profile_symbolic: bool = True
    profile_imperative: bool = True
    profile_memory: bool = True
    profile_api: bool = True
    continuous_dump: bool = False
    dump_period: float = 1.0
    aggregate_stats: bool = False

    def changed(self, options: dict[str, Any]) -> Config:
        """These settings with others in place of some; raises MXNetError for one there is not."""
        options = dict(options)
        check_process(options.pop("profile_process", "worker"), "set_config")
        known = {field.name: field for field in fields(self)}
        for name in options:
            if name not in known:
                raise MXNetError(
                    f"set_config: there is no option '{name}'\n"
                    f"hint: the options are {', '.join(known)} and profile_process"
                )
        return replace(self, **{name: _read(name, value) for name, value in options.items()})


def _read(name: str, value: Any) -> Any:
    if name == "filename":
        try:
            return os.fsdecode(value)
        except TypeError:
            raise MXNetTypeError(f"set_config: filename is a path, got {value!r}") from None
    if name == "dump_period":
        try:
            period = float(value)
        except (TypeError, ValueError):
            period = 0.0
        if not 0 < period < float("inf"):
            raise MXNetValueError(f"set_config: dump_period is a number of seconds above 0, got {value!r}")
        return period
    truth = _WORDS.get(str(value).lower())
    if truth is None:
        raise MXNetValueError(f"set_config: {name} is True or False, got {value!r}")
    return truth


def check_process(process: str, name: str) -> None:
    """Raises KeyError for what is neither 'worker' nor 'server', and MXNetError for a server: there is none."""
    if _PROCESSES[process]:
        raise MXNetError(
            f"{name}: there is no server process to profile\n"
            "hint: every process of a program is a worker here, and profiles itself"
        )
