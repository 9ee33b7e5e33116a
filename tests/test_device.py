"""Devices under MXNet's two sets of names."""

import copy
import pickle

import pytest

import mxnp
from mxnp import context, cpu, np


def test_a_context_is_a_device():
    assert context.Context is mxnp.Context is mxnp.Device
    assert mxnp.Context("cpu", 1) == cpu(1) == mxnp.Device("cpu(1)") == mxnp.Device(cpu(1))
    assert str(cpu(1)) == repr(cpu(1)) == "cpu(1)"
    assert (cpu(1).device_type, cpu(1).device_id, cpu(1).device_typeid) == ("cpu", 1, 1)
    assert len({cpu(0), cpu(0), cpu(1), mxnp.gpu(0)}) == 3


def test_new_arrays_go_to_the_innermost_device():
    with mxnp.Context("cpu", 1):
        assert np.ones(2).ctx == cpu(1)
        with mxnp.Device("cpu", 2):
            assert mxnp.current_context() == mxnp.current_device() == cpu(2)
        assert mxnp.current_context() == cpu(1)
    assert np.ones(2).context == cpu(0)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda d: pickle.loads(pickle.dumps(d))])
def test_copies_are_equal(again):
    assert again(cpu(1)) == cpu(1)


def test_numbers_of_types_are_those_of_files():
    assert mxnp.Context.devtype2str[cpu().device_typeid] == "cpu"
    assert mxnp.Context.devstr2type["gpu"] == mxnp.gpu(1).device_typeid


def test_empty_cache_gives_memory_back():
    x = np.ones((1 << 20,))
    x.wait_to_read()
    del x
    cpu().empty_cache()
    assert mxnp._core.memory_stats()["cached"] == 0


def test_no_gpu_says_so():
    with pytest.raises(mxnp.MXNetError, match=r"gpu\(0\)"):
        np.ones(2, ctx=mxnp.gpu(0))
    assert mxnp.num_gpus() == mxnp.context.num_gpus() == 0
