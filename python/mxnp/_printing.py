"""How arrays print: as NumPy prints them, with the dtype shown where it is not the one a list would get."""

from __future__ import annotations

import re

import numpy as onp

from mxnp import _core
from mxnp._core import ndarray

_DTYPE = re.compile(r",\s+dtype=[^,()]+\)$")


def _plain(dtype: onp.dtype) -> bool:
    """Whether `dtype` goes without saying: the default float and bool; in NumPy mode all that NumPy leaves out."""
    if dtype.kind == "b":
        return True
    if _core.is_numpy_dtype():
        return dtype.name in ("float64", "int64", "complex128")
    return dtype.name == "float32"


def array_repr(x: ndarray) -> str:
    """`array([1., 2.])`, with `dtype=` and `device=` where they are not the default; waits for the array."""
    values = x.asnumpy()
    text = _DTYPE.sub(")", onp.array_repr(values))
    notes = [] if _plain(values.dtype) else [f"dtype={_name(values.dtype)}"]
    if x.device.device_type != "cpu":
        notes.append(f"device={x.device}")
    for note in notes:
        last = text[text.rfind("\n") + 1 :]
        wide = len(last) + len(note) + 2 > onp.get_printoptions()["linewidth"]
        text = f"{text[:-1]},{chr(10) + ' ' * 6 if wide else ' '}{note})"
    return text


def _name(dtype: onp.dtype) -> str:
    return dtype.name if dtype.isnative else dtype.str


def array_str(x: ndarray) -> str:
    """`[1. 2.]`; waits for the array."""
    return str(x.asnumpy())


_core.set_repr(array_repr, array_str)
