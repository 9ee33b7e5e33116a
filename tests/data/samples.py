"""Data sets whose samples go wrong or take note, importable by spawned workers too."""

import os
import random
import signal
import threading

import numpy as onp

from mxnp.gluon.data import Dataset


class Squares(Dataset):
    """Sample i is (a float32 vector that holds i, the int i * i)."""

    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, idx):
        return onp.full(3, idx, "float32"), idx * idx


class Odd(Exception):
    """An exception whose constructor does not take its own arguments."""

    def __init__(self, index, reason):
        super().__init__(f"sample {index}: {reason}")
        self.index = index


class Failing(Squares):
    """Raises at one index."""

    def __init__(self, length, bad, kind=ValueError):
        super().__init__(length)
        self.bad, self.kind = bad, kind

    def __getitem__(self, idx):
        if idx == self.bad:
            raise Odd(idx, "broken") if self.kind is Odd else self.kind(f"sample {idx} is broken")
        return super().__getitem__(idx)


class Local(Squares):
    """Raises an exception of a class that cannot be sent."""

    def __getitem__(self, idx):
        class Hidden(Exception):
            pass

        raise Hidden("out of reach")


class Dying(Squares):
    """The worker that reads index `bad` is killed."""

    def __init__(self, length, bad):
        super().__init__(length)
        self.bad = bad

    def __getitem__(self, idx):
        if idx == self.bad:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__getitem__(idx)


class Stuck(Squares):
    """Index `bad` never comes."""

    def __init__(self, length, bad):
        super().__init__(length)
        self.bad = bad

    def __getitem__(self, idx):
        if idx == self.bad:
            threading.Event().wait()
        return super().__getitem__(idx)


class Pids(Squares):
    """A sample is the process that made it."""

    def __getitem__(self, idx):
        return os.getpid()


class Noisy(Squares):
    """A sample holds draws of Python's and NumPy's global generators."""

    def __getitem__(self, idx):
        return onp.array([random.random(), onp.random.rand(), idx])


def with_noise(x, y):
    """A transform that draws from mxnp."""
    from mxnp import np

    return x + np.random.uniform(size=(3,)).asnumpy(), y


def identity(x):
    return x
