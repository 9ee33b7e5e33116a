"""The loss of sequences: connectionist temporal classification."""

from __future__ import annotations

from typing import Any

from mxnp import npx
from mxnp.error import MXNetValueError

from .base import Loss, apply_weighting


class CTCLoss(Loss):
    """-log of the probability that predictions read as the label, with blanks and repeats left out.

    Graves et al. (2006). The last class is the blank; labels are class numbers, padded with -1.

    layout : 'NTC' for predictions of shape (N, T, C), or 'TNC'; they are scores, of which the softmax is taken.
    label_layout : 'NT' for labels of shape (N, L), or 'TN'.
    weight : a number that multiplies the loss, or None.

    Called with `pred_lengths` and `label_lengths`, (N,) each, it looks at that many steps and labels only; without
    them at all steps, and at labels up to the first -1. Gives (N,). A label that cannot fit into its steps gives 0
    and no gradient; one that is no class raises IndexError.

    >>> loss = gluon.loss.CTCLoss()
    >>> loss(np.zeros((1, 4, 3)), np.array([[0, 1, -1]])).round(4)
    array([1.6864])
    """

    def __init__(
        self, layout: str = "NTC", label_layout: str = "NT", weight: float | None = None, **kwargs: Any
    ) -> None:
        if layout not in ("NTC", "TNC"):
            raise MXNetValueError(f"CTCLoss: layout must be 'NTC' or 'TNC', got {layout!r}")
        if label_layout not in ("NT", "TN"):
            raise MXNetValueError(f"CTCLoss: label_layout must be 'NT' or 'TN', got {label_layout!r}")
        super().__init__(weight, label_layout.find("N"), **kwargs)
        self._layout = layout
        self._label_layout = label_layout

    def forward(
        self,
        pred: Any,
        label: Any,
        pred_lengths: Any = None,
        label_lengths: Any = None,
        sample_weight: Any = None,
    ) -> Any:
        """One value for each sample."""
        loss = npx.ctc_loss(
            pred.swapaxes(0, 1) if self._layout == "NTC" else pred,
            label if self._label_layout == "NT" else label.T,
            pred_lengths,
            label_lengths,
            use_data_lengths=pred_lengths is not None,
            use_label_lengths=label_lengths is not None,
            blank_label="last",
        )
        return apply_weighting(loss, self._weight, sample_weight)
