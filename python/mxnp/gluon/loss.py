"""Losses: blocks that compare predictions with labels and give one value for each sample."""

from mxnp._missing import refuse as _refuse

from ._losses.base import Loss
from ._losses.base import apply_weighting as _apply_weighting
from ._losses.base import batch_mean as _batch_mean
from ._losses.base import reshape_like as _reshape_like
from ._losses.classes import (
    HingeLoss,
    KLDivLoss,
    LogisticLoss,
    SigmoidBCELoss,
    SigmoidBinaryCrossEntropyLoss,
    SoftmaxCELoss,
    SoftmaxCrossEntropyLoss,
    SquaredHingeLoss,
)
from ._losses.distances import CosineEmbeddingLoss, SDMLLoss, TripletLoss
from ._losses.numbers import HuberLoss, L1Loss, L2Loss, PoissonNLLLoss
from ._losses.sequences import CTCLoss

__all__ = [
    "CTCLoss",
    "CosineEmbeddingLoss",
    "HingeLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "L2Loss",
    "LogisticLoss",
    "Loss",
    "PoissonNLLLoss",
    "SDMLLoss",
    "SigmoidBCELoss",
    "SigmoidBinaryCrossEntropyLoss",
    "SoftmaxCELoss",
    "SoftmaxCrossEntropyLoss",
    "SquaredHingeLoss",
    "TripletLoss",
]

# MXNet's names for what losses that programs write are made with.
_LEGACY = (_apply_weighting, _batch_mean, _reshape_like)

__getattr__ = _refuse(__name__)
