"""What every test can rely on: hypothesis profiles, markers, and a clean state of mxnp before and after.

Holds no helper for one topic; those live beside the tests that use them.
"""

from __future__ import annotations

import os
import sys

import pytest
from hypothesis import HealthCheck, settings

# A run is the same on every machine and every day; `thorough` looks for new examples, and takes its time.
COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("ci", derandomize=True, max_examples=100, database=None, **COMMON)
settings.register_profile("thorough", max_examples=5000, print_blob=True, **COMMON)
settings.load_profile(os.environ.get("MXNP_TEST_PROFILE", "ci"))


def pytest_configure(config):
    """Processes that tests start in folders of their own find what this one does, from whatever path it came."""
    os.environ["PYTHONPATH"] = os.pathsep.join(os.path.abspath(path) for path in sys.path if path)


def pytest_addoption(parser):
    """`--slow` adds the tests that only `make check-all` runs; `--part` takes a long run in pieces."""
    asked = os.environ.get("MXNP_TEST_SLOW", "0") not in {"", "0"}
    parser.addoption("--slow", action="store_true", default=asked, help="run the tests marked slow too")
    parser.addoption("--part", default="1/1", metavar="K/N", help="run every N-th test, from the K-th on")


def gpu_is_missing() -> str | None:
    """Why no test on a GPU can run here; None if one can."""
    try:
        import cupy
    except ImportError:
        return "cupy is not installed"
    try:
        return None if cupy.cuda.runtime.getDeviceCount() else "no CUDA device"
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"no CUDA device: {error}"


def pytest_collection_modifyitems(config, items):
    """Keep the part that was asked for; skip by marker, saying why."""
    part, parts = map(int, config.getoption("--part").split("/"))
    others = [item for i, item in enumerate(items) if i % parts != part - 1]
    if others:
        items[:] = items[part - 1 :: parts]
        config.hook.pytest_deselected(items=others)
    no_gpu = gpu_is_missing() if any("gpu" in item.keywords for item in items) else None
    for item in items:
        if no_gpu and item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason=no_gpu))
        if item.get_closest_marker("slow") and not config.getoption("--slow"):
            item.add_marker(pytest.mark.skip(reason="slow: run with --slow"))


@pytest.fixture(autouse=True)
def clean_state():
    """Each test starts from seed 0 in the default mode, and answers for every error of its own pending work.

    Tests that never import mxnp pay nothing.
    """
    if "mxnp" not in sys.modules:
        yield
        return
    import mxnp

    mxnp.np.random.seed(0)
    yield
    try:
        mxnp.npx.waitall()
    finally:
        mxnp.npx.set_np(dtype=False)
