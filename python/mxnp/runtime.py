"""What this build of mxnp can do, under MXNet's names."""

from __future__ import annotations

from collections.abc import Iterator

from .device import num_gpus

__all__ = ["Feature", "Features", "feature_list"]


class Feature:
    """One feature: `name`, and whether it is `enabled`.

    >>> mx.runtime.Feature("CPU_SSE", True)
    ✔ CPU_SSE
    """

    def __init__(self, name: str, enabled: bool) -> None:
        self.name, self.enabled = name, enabled

    def __repr__(self) -> str:
        return f"{'✔' if self.enabled else '✖'} {self.name}"


def feature_list() -> list[Feature]:
    """The features MXNet programs ask for; the GPU's are looked up now.

    >>> "CPU_SSE" in [feature.name for feature in mx.runtime.feature_list()]
    True
    """
    gpu = num_gpus() > 0
    known = {"CPU_SSE": True, "F16C": True, "INT64_TENSOR_SIZE": True, "SIGNAL_HANDLER": True}
    absent = (
        "ONEDNN",
        "OPENCV",
        "OPENMP",
        "LAPACK",
        "BLAS_OPEN",
        "DIST_KVSTORE",
        "TVM_OP",
        "TENSORRT",
        "SSE",
        "DEBUG",
    )
    return [
        Feature(name, on)
        for name, on in {**known, **dict.fromkeys(absent, False), "CUDA": gpu, "CUDNN": gpu}.items()
    ]


class Features(dict):
    """The features by name: `Features().is_enabled('CUDA')`.

    >>> mx.runtime.Features().is_enabled('INT64_TENSOR_SIZE')
    True
    """

    def __init__(self) -> None:
        super().__init__((feature.name, feature) for feature in feature_list())

    def is_enabled(self, feature_name: str) -> bool:
        """Whether the feature is there. Raises RuntimeError for a name nobody knows."""
        name = feature_name.upper()
        if name not in self:
            raise RuntimeError(f"Feature '{name}' is unknown, known features are: {list(self)}")
        return self[name].enabled

    def __iter__(self) -> Iterator[str]:
        return super().__iter__()
