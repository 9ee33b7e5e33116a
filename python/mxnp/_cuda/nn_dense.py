"""Dense layers on CUDA."""

from __future__ import annotations

import math
from typing import Any

from ._row import Row, cpu_only


def fully_connected(
    xp: Any,
    x: Any,
    weight: Any,
    bias: Any = None,
    *,
    num_hidden: int | None = None,
    no_bias: bool = False,
    flatten: bool = True,
) -> Any:
    """`x weight.T + bias`; with `flatten` all axes of x but the first become one."""
    if flatten:
        x = x.reshape((x.shape[0], math.prod(x.shape[1:])))
    y = xp.matmul(x, weight.T)
    return y if bias is None or no_bias else y + bias


ROWS: dict[str, Row] = {
    "fully_connected": fully_connected,
    "dropout": cpu_only("its draws must equal the CPU's: the Philox kernel for CUDA is not written yet"),
}
