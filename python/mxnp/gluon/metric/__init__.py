"""Metrics: running figures over batches. Labels come first, then predictions; `get` gives (name, value)."""

from mxnp._missing import refuse as _refuse

from .base import (
    CompositeEvalMetric,
    CustomMetric,
    EvalMetric,
    alias,
    check_label_shapes,
    create,
    np,
    register,
)
from .classification import MCC, PCC, Accuracy, BinaryAccuracy, TopKAccuracy
from .fscore import F1, Fbeta
from .probability import CrossEntropy, Loss, NegativeLogLikelihood, Perplexity, Torch
from .regression import (
    MAE,
    MSE,
    RMSE,
    MeanCosineSimilarity,
    MeanPairwiseDistance,
    PearsonCorrelation,
)

__all__ = [
    "F1",
    "MAE",
    "MCC",
    "MSE",
    "PCC",
    "RMSE",
    "Accuracy",
    "BinaryAccuracy",
    "CompositeEvalMetric",
    "CrossEntropy",
    "CustomMetric",
    "EvalMetric",
    "Fbeta",
    "Loss",
    "MeanCosineSimilarity",
    "MeanPairwiseDistance",
    "PearsonCorrelation",
    "NegativeLogLikelihood",
    "Perplexity",
    "TopKAccuracy",
    "Torch",
    "alias",
    "check_label_shapes",
    "create",
    "np",
    "register",
]

__getattr__ = _refuse(__name__)
