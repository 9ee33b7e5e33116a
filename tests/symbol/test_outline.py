"""The outline mode by which shapes are inferred: calls are checked, nothing is computed, reading says why."""

import threading

import pytest

from mxnp import _core, np, npx
from mxnp.error import MXNetError


@pytest.fixture
def outline():
    before = _core.set_outline(True)
    yield
    _core.set_outline(before)


def test_results_have_shape_and_dtype(outline):
    x = np.empty((1 << 20, 1 << 20))  # no memory holds it
    y = np.matmul(x, x).astype("int8")[:, ::2]
    assert (y.shape, y.dtype.name) == ((1 << 20, 1 << 19), "int8")


def test_errors_are_raised_as_ever(outline):
    with pytest.raises(ValueError, match="broadcast"):
        np.empty((2, 3)) + np.empty((4,))


def test_reading_says_that_there_is_nothing(outline):
    x = np.ones((2, 3)) * 2
    for read in (
        x.asnumpy,
        x.wait_to_read,
        lambda: x[0, 0].item(),
        lambda: bool(x.any()),
        lambda: np.nonzero(x),
    ):
        with pytest.raises(MXNetError, match="no contents: only shapes are inferred here"):
            read()


def test_what_leaves_the_mode_stays_without_contents():
    before = _core.set_outline(True)
    x = np.ones((2, 3))
    _core.set_outline(before)
    npx.waitall()  # it is nobody's mistake
    assert x.shape == (2, 3)
    for read in (x.asnumpy, lambda: (x + 1).asnumpy()):
        with pytest.raises(MXNetError, match="no contents"):
            read()


def test_existing_arrays_keep_their_contents(outline):
    x = np.array([1.0, 2.0])
    x[...] = np.ones(2)
    x += 5
    _core.set_outline(False)
    assert x.tolist() == [1, 2]


def test_the_mode_is_one_threads(outline):
    found = []
    thread = threading.Thread(target=lambda: found.append((np.ones(2) * 3).tolist()))
    thread.start()
    thread.join()
    assert found == [[3, 3]]
