"""Pooling on CUDA: none yet."""

from __future__ import annotations

from ._row import Row, cpu_only

WHY = "cupy pools no batches with channels and strides; the kernel for CUDA is not written yet"

ROWS: dict[str, Row] = {"pooling": cpu_only(WHY), "pool_spread": cpu_only(WHY)}
