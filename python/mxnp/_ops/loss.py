"""Connectionist temporal classification: the loss of sequences whose alignment with their labels is not known."""

from __future__ import annotations

from typing import Any

from mxnp._core import ndarray
from mxnp.error import MXNetValueError

from ._table import as_array, op
from .create import full
from .nn_act import log_softmax

_CTC = op("ctc")


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
    gradient. Gradients are of first order. Raises ValueError for shapes that do not fit, IndexError for a label that is
    no class and for a length that is none.

    >>> scores = np.zeros((3, 1, 2))  # 5 of the 8 paths of 3 steps read as one 1
    >>> npx.ctc_loss(scores, np.array([[1]])).round(4)
    array([0.2877])
    """
    x, wanted = as_array(data), as_array(label)
    if blank_label not in ("first", "last"):
        raise MXNetValueError(f"ctc_loss: blank_label must be 'first' or 'last', got {blank_label!r}")
    blank, padding = (0, 0) if blank_label == "first" else (x.shape[-1] - 1 if x.ndim else 0, -1)
    samples = x.shape[1:2]
    steps = full(samples, x.shape[0] if x.ndim else 0, "int64", device=x.device)
    lengths = full(samples, wanted.shape[-1] if wanted.ndim else 0, "int64", device=x.device)
    logs = log_softmax(x.astype("float32") if x.dtype.itemsize == 2 else x, axis=-1) if x.size else x
    loss = _CTC(
        logs,
        wanted.astype("int64"),
        steps if data_lengths is None else as_array(data_lengths).astype("int64"),
        lengths if label_lengths is None else as_array(label_lengths).astype("int64"),
        blank=blank,
        padding=padding if label_lengths is None else None,
    )
    return loss.astype(x.dtype)
