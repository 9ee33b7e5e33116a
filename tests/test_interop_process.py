"""Arrays among other libraries and in a process: NumPy's functions, plotting, threads, fork, Ctrl-C and exit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from typing import Any

import numpy as onp
import pytest

from mxnp import _core


def run_python(code: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **env},
    )


# ---- NumPy's functions on our arrays


def test_numpy_operands_mix() -> None:
    a, x = _core.array([1.0, 2.0]), onp.array([10.0, 20.0])
    _core._ufunc("add", "add")  # made by `mxnp.np` at import; here it may not be loaded
    _core._ufunc("multiply", "multiply")
    for result in (a + x, x + a, onp.add(a, x), onp.add(x, a)):
        assert type(result) is _core.ndarray
        assert result.tolist() == [11, 22]
        assert result.dtype == "float64"
    assert (onp.float64(2) * a).tolist() == [2, 4]
    assert ([1, 2] + a).tolist() == [2, 4]
    y = x.copy()
    y += a
    assert type(y) is onp.ndarray
    assert y.tolist() == [11, 22]
    a += x
    assert a.dtype == "float32"
    assert a.tolist() == [11, 22]


def test_unknown_functions_get_numpy_arrays() -> None:
    a = _core.array([[3, 1], [2, 4]])
    assert onp.median(a) == 2.5
    assert onp.linalg.det(a) == pytest.approx(10)
    onp.testing.assert_array_equal(onp.spacing(a), onp.spacing(a.asnumpy()))
    assert onp.logaddexp.reduce(a, axis=None) == pytest.approx(onp.logaddexp.reduce(a.asnumpy(), axis=None))
    onp.testing.assert_array_equal(onp.block([[a, a]]), onp.block([[a.asnumpy()] * 2]))
    out = _core.array([0, 0])
    assert onp.cumsum(_core.array([1, 2]), out=out) is out
    assert out.tolist() == [1, 3]


def test_registered_functions_are_ours() -> None:
    _core.register_array_functions({onp.trapezoid: lambda y, x=None: ("ours", y.shape)})
    a = _core.array([1, 2, 3])
    assert onp.trapezoid(a) == ("ours", (3,))
    assert onp.trapezoid(a, dx=2.0) == 8, "a parameter we lack goes to NumPy"


class Other:
    __array_ufunc__ = None

    def __radd__(self, other: Any) -> str:
        return "theirs"


def test_unknown_operands_answer_for_themselves() -> None:
    a = _core.array([1])
    assert a + Other() == "theirs"
    for bad in ("x", None, object(), {}):
        with pytest.raises(TypeError, match="unsupported operand"):
            a + bad
        with pytest.raises(TypeError):
            a += bad
    assert (a == None) is False  # noqa: E711
    assert (a != "x") is True


def test_matplotlib_draws_arrays() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    a = _core.array([[1, 2], [3, 4], [5, 7]])
    figure, axes = pyplot.subplots()
    axes.plot(a[:, 0], a[:, 1])
    axes.bar(a[:, 0], a[:, 1])
    axes.scatter(a[:, 0], a[:, 1], c=a[:, 0])
    axes.hist(a[:, 0])
    axes.imshow(a)
    assert axes.lines[0].get_ydata().tolist() == [2, 4, 7]
    pyplot.close(figure)


def test_pandas_and_scikit_learn_take_arrays() -> None:
    a = _core.array([[1, 2], [3, 4], [5, 7]])
    pandas = pytest.importorskip("pandas")
    assert pandas.DataFrame(a).to_numpy().tolist() == a.tolist()
    series = pandas.Series([1.0, 2.0, 3.0])
    for result in (series + a[:, 0], a[:, 0] + series, onp.add(a[:, 0], series)):
        assert type(result) is pandas.Series
        assert result.tolist() == [2, 5, 8]
    linear = pytest.importorskip("sklearn.linear_model")
    assert linear.LinearRegression().fit(a, a[:, 1]).predict(a) == pytest.approx([2, 4, 7], rel=1e-3)


# ---- Threads, fork, exit, interrupts


def test_threads_share_arrays_and_have_their_own_modes() -> None:
    a = _core.array(onp.arange(1000.0))
    results: list[Any] = []

    def work(i: int) -> None:
        modes = (_core.is_recording(), _core.is_training())
        b = a
        for _ in range(50):
            b = b + i
        results.append((i, modes, float(b[0])))

    _core.set_recording(True)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    _core.set_recording(False)
    assert sorted(results) == [(i, (False, False), 50.0 * i) for i in range(8)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_computes() -> None:
    done = run_python(
        """
        import os
        from mxnp import _core
        _core.set_num_threads(4)
        a = _core.array([1.0] * 100000)
        b = a + 1            # pending over the fork
        pid = os.fork()
        value = float((b * 2)[7])
        assert value == 4.0, value
        _core.waitall()
        if pid == 0:
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        assert status == 0, status
        print("fine")
        """
    )
    assert done.stdout == "fine\n", done.stderr


def test_exit_with_pending_work_is_clean() -> None:
    done = run_python(
        """
        import threading
        from mxnp import _core
        a = _core.array([1.0] * 1000)
        keep = [a + i for i in range(100)]
        shared = __import__("numpy").ones(1000)
        b = _core.array(shared, copy=False) * 2
        threading.Thread(target=lambda: [a + i for i in range(1000)], daemon=True).start()
        """
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_a_signal_during_work_raises_keyboard_interrupt() -> None:
    done = run_python(
        f"""
        import os, signal
        from mxnp import _core
        signal.signal({int(signal.SIGINT)}, signal.default_int_handler)  # a background job starts with it ignored
        try:
            os.kill(os.getpid(), {int(signal.SIGINT)})
            while True:
                (_core.array([1.0]) + 1).wait_to_read()
        except KeyboardInterrupt:
            print("interrupted", float(_core.array([1.0]) + 1))
        """
    )
    assert done.stdout == "interrupted 2.0\n", done.stderr


def test_naive_engine_raises_at_the_line() -> None:
    a = _core.array([1.0, 2.0])
    bad = _core.array(onp.array([5]))
    before = _core.set_engine("threaded")
    try:
        later = a[bad]
        with pytest.raises(IndexError, match="MXNP_ENGINE=naive"):
            later.wait_to_read()
        assert _core.set_engine("naive") == "threaded"
        with pytest.raises(IndexError, match=r"with size 2$"):
            a[bad]
    finally:
        _core.set_engine(before)
    assert _core.engine() == before
