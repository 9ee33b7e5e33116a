"""The bound on what is queued holds during a backward too."""

from __future__ import annotations

import pytest
from tests.test_interop_process import run_python

from mxnp import _core

PROGRAM = """
from mxnp import _core, autograd, np

class Watch(autograd.Function):
    '''Passes its argument on, and looks at the queue when the gradient comes by.'''

    seen = []

    def forward(self, x):
        return x * 1

    def backward(self, g):
        Watch.seen.append(_core.engine_stats()["unfinished"])
        return g * 1

_core.set_queue_limits(8, 1 << 40)
x = np.ones((64, 1024))
x.attach_grad()
with autograd.record():
    y = x
    for _ in range(100):
        y = np.dot(np.ones((64, 64)), Watch()(y))  # heavy: each flushes what came before it
    y = y.sum()
y.backward()
x.grad.wait_to_read()
print(max(Watch.seen))
"""


@pytest.mark.skipif(_core.engine() == "naive", reason="nothing is queued in the naive engine")
def test_a_backward_is_held_back() -> None:
    # One thread: nobody but a thread that waits, or is held back, runs what is queued.
    done = run_python(PROGRAM, MXNP_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr
    most = int(done.stdout)
    assert most <= 24, f"{most} tasks were queued under a limit of 8"
