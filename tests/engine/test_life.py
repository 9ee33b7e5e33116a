"""Threads that end, forks, signals and exit, with work still pending."""

from __future__ import annotations

import os

import pytest
from tests.test_interop_process import run_python


def test_a_thread_that_ends_in_the_naive_engine_leaves_its_work_to_others() -> None:
    done = run_python(
        """
        import os, threading
        from mxnp import _core, np
        x, pending, naive = np.zeros(3), threading.Event(), threading.Event()
        def work():
            assert (np.ones(3) + 1).tolist() == [2, 2, 2]    # the thread has run a kernel
            global x
            x += 1
            pending.set()
            naive.wait()
        # On Linux: join() may return before the thread has given its work over.
        gone = lambda: not os.path.exists(f"/proc/self/task/{thread.native_id}")
        thread = threading.Thread(target=work)
        thread.start()
        pending.wait()
        _core.set_engine("naive")
        naive.set()
        thread.join()
        while not gone():
            pass
        print(x.tolist())
        """,
        MXNP_ENGINE="threaded",
    )
    assert done.stdout == "[1.0, 1.0, 1.0]\n", done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forks_beside_threads_in_backward() -> None:
    done = run_python(
        """
        import os, signal, threading
        from mxnp import autograd, np
        stop = threading.Event()
        def step():
            x = np.ones((8, 8))
            x.attach_grad()
            with autograd.record():
                y = x
                for _ in range(20):
                    y = y * x
            y.backward()
            assert x.grad.tolist()[0][0] == 21
        def train():
            while not stop.is_set():
                step()
        threads = [threading.Thread(target=train) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(30):
            pid = os.fork()
            if pid == 0:
                signal.alarm(60)
                step()
                os._exit(0)
            assert os.waitpid(pid, 0)[1] == 0
        stop.set()
        print("done")
        """
    )
    assert done.stdout == "done\n", done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_while_another_thread_looks_up_numpy() -> None:
    done = run_python(
        """
        import os, signal, sys, threading, types
        import numpy
        from mxnp import np
        entered, leave = threading.Event(), threading.Event()
        class Slow(types.ModuleType):
            def __getattr__(self, name):
                if threading.current_thread() is not threading.main_thread():
                    entered.set()
                    leave.wait()
                return getattr(numpy, name)
        sys.modules["numpy"] = Slow("numpy")
        thread = threading.Thread(target=lambda: np.ones((2, 2)))
        thread.start()
        entered.wait()
        pid = os.fork()
        if pid == 0:
            signal.alarm(60)
            assert np.ones((2, 2)).tolist() == [[1, 1], [1, 1]]
            os._exit(0)
        status = os.waitpid(pid, 0)[1]
        leave.set()
        thread.join()
        assert status == 0
        print("done")
        """
    )
    assert done.stdout == "done\n", done.stderr


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
@pytest.mark.parametrize("wait", ["x.asnumpy()", "x.wait_to_read()", "npx.waitall()", "x.sum().item()"])
def test_a_signal_ends_a_wait_that_has_work_to_help_with(wait: str) -> None:
    done = run_python(
        f"""
        import os, signal
        from mxnp import np, npx
        class Ended(Exception): pass
        def end(signum, frame):
            raise Ended
        signal.signal(signal.SIGALRM, end)
        x = np.ones((400, 400))
        for _ in range(1000):
            x = np.dot(x, x) * 0.001
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        try:
            {wait}
            print("never ended")
        except Ended:
            os._exit(0 if os.write(1, b"ended\\n") else 1)
        """,
        MXNP_ENGINE="threaded",
    )
    assert "ended\n" in done.stdout, done.stderr
    assert "never" not in done.stdout
