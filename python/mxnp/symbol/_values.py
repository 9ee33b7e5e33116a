"""Attributes of operators: from the strings of MXNet's files, in the spellings of 1.x and 2, and back.

Knows no operator. Texts come from files that may be hostile: every value is bounded.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as onp

# No attribute of MXNet is longer; a longer text is not looked at.
MAX_TEXT = 1 << 16
_INT64 = 1 << 63
_TRUE, _FALSE = frozenset({"True", "true", "1"}), frozenset({"False", "false", "0"})
_NUMBER = re.compile(r"[+-]?\d{1,20}L?\Z")
# The numbers by which MXNet's files name dtypes.
_DTYPE_FLAGS = {
    "-1": None,
    "0": "float32",
    "1": "float64",
    "2": "float16",
    "3": "uint8",
    "4": "int32",
    "5": "int8",
    "6": "int64",
    "7": "bool",
    "8": "int16",
    "9": "uint16",
    "10": "uint32",
    "11": "uint64",
    "12": "bfloat16",
}
_DTYPES = frozenset(_DTYPE_FLAGS.values()) - {None}
_FLAG_OF = {name: flag for flag, name in _DTYPE_FLAGS.items()}


class ValueTextError(ValueError):
    """A text is not the value that was expected; the message says in words what was."""


def _fail(expected: str) -> ValueTextError:
    return ValueTextError(f"expected {expected}")


def _int(text: str) -> int:
    text = text.strip()
    if not _NUMBER.match(text):
        raise _fail("an integer")
    number = int(text.rstrip("L"))
    if not -_INT64 <= number < _INT64:
        raise _fail("an integer of 64 bits")
    return number


def _float(text: str) -> float:
    text = text[:400].strip()
    suffixed = text[:-1] if text[-1:] in ("f", "F") else text
    for each in (text, suffixed):  # "inf" ends with an f of its own
        try:
            return float(each)
        except ValueError:
            continue
    raise _fail("a number")


def _bool(text: str) -> bool:
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise _fail("True or False")


def _items(text: str) -> list[str]:
    """The texts between brackets, or the one text without."""
    inner = text.strip()
    if inner[:1] in ("(", "["):
        if inner[-1:] != {"(": ")", "[": "]"}[inner[0]]:
            raise _fail("a closed bracket")
        inner = inner[1:-1]
    parts = [part.strip() for part in inner.split(",")]
    if parts[-1] == "":  # `(3,)`, and nothing at all
        parts.pop()
    return parts


def _shape(text: str) -> tuple[int, ...]:
    return tuple(_int(part) for part in _items(text))


def _floats(text: str) -> tuple[float, ...]:
    return tuple(_float(part) for part in _items(text))


def _bounds(text: str) -> tuple[int | None, ...]:
    return tuple(None if part == "None" else _int(part) for part in _items(text))


def _pairs(text: str) -> tuple[tuple[int, ...], ...]:
    """`((1, 1), (0, 0))` in pairs."""
    numbers = _shape("(" + re.sub(r"[()\[\]]", "", text) + ")")
    if len(numbers) % 2:
        raise _fail("pairs of integers")
    return tuple(zip(numbers[::2], numbers[1::2], strict=True))


def _dtype(text: str) -> str | None:
    name = _DTYPE_FLAGS.get(text, text)
    if name is not None and name not in _DTYPES:
        raise _fail("the name of a dtype")
    return name


_READERS: dict[str, Callable[[str], Any]] = {
    "bool": _bool,
    "bounds": _bounds,
    "dtype": _dtype,
    "float": _float,
    "floats": _floats,
    "int": _int,
    "pairs": _pairs,
    "shape": _shape,
    "str": str,
}


@dataclass(frozen=True)
class Attribute:
    """One attribute of an operator: its name, the kind of its value, and the default, if it has one.

    Kinds: int, float, bool, str, dtype, shape (integers), bounds (integers or None), floats, pairs; with `?` behind
    it, None is a value too.
    """

    name: str
    kind: str
    required: bool
    default: Any

    @classmethod
    def parse(cls, text: str) -> Attribute:
        """From `name:kind` or `name:kind=default`, with the default as files write it."""
        name, _, rest = text.partition(":")
        kind, given, default = rest.partition("=")
        attribute = cls(name, kind, not given, None)
        return cls(name, kind, False, attribute.read(default)) if given else attribute

    def read(self, text: str) -> Any:
        """The value a file's `text` stands for. Raises ValueTextError."""
        if len(text) > MAX_TEXT:
            raise _fail(f"at most {MAX_TEXT} characters")
        if text == "None" and self.kind.endswith("?"):
            return None
        return _READERS[self.kind.rstrip("?")](text)


def write(value: Any) -> str:
    """A Python value as MXNet's Python writes it into a node.

    >>> write((3, 3)), write(True), write(None), write("relu")
    ('(3, 3)', 'True', 'None', 'relu')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)):
        inner = [write(v) for v in value]
        return f"({inner[0]},)" if len(inner) == 1 else f"({', '.join(inner)})"
    if value is None or isinstance(value, (bool, onp.bool_)):
        return str(value if value is None else bool(value))
    if isinstance(value, (int, onp.integer)):
        return str(int(value))
    if isinstance(value, (float, onp.floating)):
        number = float(value)
        return repr(number) if math.isfinite(number) else str(number)
    return dtype_name(value)


def dtype_name(value: Any) -> str:
    """The name of a dtype that is given as a name, a class or a NumPy dtype.

    >>> dtype_name(onp.float32)
    'float32'
    """
    if isinstance(value, str) and value in _DTYPES:
        return value
    return onp.dtype(value).name


def dtype_flag(name: str) -> str:
    """The number by which files name a dtype, as in `__dtype__`."""
    return _FLAG_OF[name]


def known_shape(text: str) -> tuple[int, ...]:
    """The shape in `__shape__`; unknown dimensions stay what they are (0 or -1)."""
    return _shape(text)


def read_dtype(text: str) -> str | None:
    """The dtype in `__dtype__`."""
    return _dtype(text)
