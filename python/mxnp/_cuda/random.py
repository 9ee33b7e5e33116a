"""Random draws on CUDA: none yet. Element i of the n-th draw must be the CPU's, which takes a Philox kernel."""

from __future__ import annotations

from ._row import Row, cpu_only

WHY = "its draws must equal the CPU's: the Philox kernel for CUDA is not written yet"

ROWS: dict[str, Row] = {
    name: cpu_only(WHY)
    for name in ("uniform", "normal", "exponential", "bernoulli", "randint", "permutation")
}
