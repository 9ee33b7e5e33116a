"""Convolutions on CUDA: none yet."""

from __future__ import annotations

from ._row import Row, cpu_only

WHY = "cupy has no convolution of batches and channels; calling cuDNN is not written yet"

ROWS: dict[str, Row] = {
    name: cpu_only(WHY) for name in ("convolution", "conv_data_grad", "conv_weight_grad", "deconvolution")
}
