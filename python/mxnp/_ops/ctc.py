"""Connectionist temporal classification: the loss of sequences whose alignment with their labels is not known."""

from __future__ import annotations

from typing import Any

from mxnp import _core
from mxnp._core import ndarray
from mxnp.error import MXNetValueError

from ._table import as_array, op
from .create import full
from .exp_log import logaddexp
from .index import take_along_axis, where
from .nn_act import log_softmax

_CONCATENATE = op("concatenate")
# The logarithm of what cannot be: finite, so that differences and gradients of it are numbers too.
_NEVER = -1e30


def ctc_loss(
    data: Any = None,
    label: Any = None,
    data_lengths: Any = None,
    label_lengths: Any = None,
    use_data_lengths: bool = False,
    use_label_lengths: bool = False,
    blank_label: str = "first",
    **kwargs: Any,
) -> ndarray:
    """-log of the probability that `data` reads as `label` with blanks and repeats left out (Graves et al. 2006).

    `data` (T, N, C) holds scores of which the softmax is taken; `label` (N, L) class numbers. With
    `blank_label='first'` class 0 is the blank and pads labels, with 'last' class C - 1 is the blank and -1 pads. The
    lengths, (N,) each, are used where they are given; without label lengths a label ends at its first padding.
    Gives (N,) in the dtype of `data`. A label that cannot fit, with its repeats, into its T steps gives 0 and no
    gradient. Raises ValueError for shapes that do not fit, IndexError for a label that is no class.

    >>> scores = np.zeros((3, 1, 2))  # 5 of the 8 paths of 3 steps read as one 1
    >>> npx.ctc_loss(scores, np.array([[1]])).round(4)
    array([0.2877])
    """
    x, wanted = as_array(data), as_array(label)
    _check(x, wanted, blank_label)
    steps, samples, classes = x.shape
    blank, padding = (0, 0) if blank_label == "first" else (classes - 1, -1)
    lengths = _lengths(wanted, padding) if label_lengths is None else as_array(label_lengths).astype("int64")
    wanted = wanted.astype("int64")
    if wanted.shape[1] == 0:
        wanted = full((samples, 1), blank, "int64", device=x.device)
    inside = _core.array(range(wanted.shape[1]), "int64", x.device) < lengths.reshape(-1, 1)
    # What is no class is out of range, also where a negative index would count from the end.
    wanted = where((wanted < 0) + (wanted == blank), classes, wanted)
    symbols = _with_blanks(where(inside, wanted, blank), blank)
    logs = log_softmax(x.astype("float32") if x.dtype.itemsize == 2 else x, axis=-1)
    logs = take_along_axis(
        logs, symbols.reshape((1, *symbols.shape)).broadcast_to((steps, *symbols.shape)), 2
    )
    ends = None if data_lengths is None else as_array(data_lengths).reshape(-1, 1)
    final = _forward(logs, symbols, blank, ends)
    last = take_along_axis(final, (2 * lengths).reshape(-1, 1), 1)
    before = take_along_axis(final, (2 * lengths - 1).reshape(-1, 1).clip(0), 1)
    total = logaddexp(last, where(lengths.reshape(-1, 1) > 0, before, _NEVER)).reshape(-1)
    return where(total < _NEVER / 2, 0, -total).astype(x.dtype)


def _check(x: ndarray, label: ndarray, blank_label: str) -> None:
    if blank_label not in ("first", "last"):
        raise MXNetValueError(f"ctc_loss: blank_label must be 'first' or 'last', got {blank_label!r}")
    if x.ndim != 3 or label.ndim != 2 or label.shape[0] != x.shape[1]:
        raise MXNetValueError(
            f"ctc_loss: expected data (T, N, C) and labels (N, L), got shapes {x.shape} and {label.shape}"
        )
    if x.shape[0] == 0 or x.shape[2] < 2:
        raise MXNetValueError(f"ctc_loss: data needs a step, a class and the blank, got shape {x.shape}")
    if label.shape[1] > x.shape[0]:
        raise MXNetValueError(
            f"ctc_loss: labels of length {label.shape[1]} cannot fit into {x.shape[0]} steps"
        )


def _lengths(label: ndarray, padding: int) -> ndarray:
    """How many entries come before the first padding; int64."""
    return (label != padding).astype("int64").cumprod(1).sum(1)


def _with_blanks(label: ndarray, blank: int) -> ndarray:
    """Blanks before, between and after the classes: (N, L) to (N, 2 L + 1)."""
    samples, length = label.shape
    blanks = full((samples, length, 1), blank, "int64", device=label.device)
    pairs = _CONCATENATE(blanks, label.reshape((samples, length, 1)), axis=2).reshape((samples, 2 * length))
    return _CONCATENATE(pairs, blanks[:, 0], axis=1)


def _forward(logs: ndarray, symbols: ndarray, blank: int, ends: ndarray | None) -> ndarray:
    """The logarithm of the probability to stand at each symbol at the end: the forward variables."""
    steps, samples, width = logs.shape
    never = full((samples, 2), _NEVER, logs.dtype, device=logs.device)
    # A class may be reached from the one before the blank between them, unless both are the same.
    differs = (symbols[:, 2:] != symbols[:, :-2]) * (symbols[:, 2:] != blank)
    jump = _CONCATENATE(never, where(differs, 0, _NEVER).astype(logs.dtype), axis=1)
    rest = full((samples, width - 2), _NEVER, logs.dtype, device=logs.device)
    state = _CONCATENATE(logs[0, :, :2], rest, axis=1)
    for step in range(1, steps):
        padded = _CONCATENATE(never, state, axis=1)  # so that the one and the two before are views
        moved = logaddexp(logaddexp(state, padded[:, 1:-1]), padded[:, :-2] + jump) + logs[step]
        state = moved if ends is None else where(step < ends, moved, state)
    return state
