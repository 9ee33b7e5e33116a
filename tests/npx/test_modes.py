"""set_np and its relatives, devices, files, waiting: the part of npx that is not about arrays' elements."""

import os
import subprocess
import sys
import threading

import numpy as onp
import pytest

import mxnp as mx
from mxnp import np, npx, util
from mxnp.error import MXNetError


def test_set_np_switches_the_default_dtype():
    assert not npx.is_np_default_dtype()
    npx.set_np(dtype=True)
    assert npx.is_np_default_dtype()
    assert [x.dtype.name for x in (np.ones(1), np.array([1]), np.arange(2), np.random.normal(size=1))] == [
        "float64",
        "int64",
        "int64",
        "float64",
    ]
    assert (np.array([1, 2]) / 2).dtype == "float64"
    npx.set_np()
    assert np.ones(1).dtype == "float32"
    assert (np.array([1, 2], dtype="int32") / 2).dtype == "float32"


def test_reset_np():
    npx.set_np(dtype=True)
    npx.reset_np()
    assert (npx.is_np_shape(), npx.is_np_array(), npx.is_np_default_dtype()) == (False, False, False)
    npx.set_np()
    assert (npx.is_np_shape(), npx.is_np_array(), npx.is_np_default_dtype()) == (True, True, False)
    with pytest.raises(ValueError, match="NumPy Shape semantics"):
        npx.set_np(shape=False, array=True)


def test_blocks_and_decorators():
    with util.np_default_dtype():
        assert np.ones(1).dtype == "float64"
    assert np.ones(1).dtype == "float32"

    @util.use_np_default_dtype
    def made():
        """A docstring."""
        return np.ones(1).dtype

    assert made() == "float64"
    assert (made.__name__, made.__doc__) == ("made", "A docstring.")
    with util.np_array(False), util.np_shape(False):
        assert not npx.is_np_array()
        assert not npx.is_np_shape()

        @npx.use_np
        class Seen:
            def __init__(self):
                self.flags = (npx.is_np_array(), npx.is_np_shape())

            def forward(self, x):
                return npx.is_np_array()

        assert Seen().flags == (True, True)
        assert Seen().forward(1)
    assert npx.is_np_array()
    with pytest.raises(ValueError, match="decorate functions and classes"):
        util.use_np(3)


def test_flags_are_per_thread():
    seen = []
    with util.np_array(False):
        thread = threading.Thread(target=lambda: seen.append(npx.is_np_array()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_devices():
    assert mx.cpu() == mx.cpu(0) != mx.cpu(1)
    assert mx.Context is mx.Device
    assert mx.context.current_context() == mx.cpu(0)
    with mx.Device("cpu", 1):
        assert np.ones(1).device == mx.cpu(1)
        assert npx.current_device() == mx.cpu(1)
    assert np.ones(1).ctx == mx.cpu(0)
    assert npx.num_gpus() == 0
    with pytest.raises(MXNetError, match="only 0 usable GPUs"):
        npx.gpu_memory_info()
    with pytest.raises(MXNetError):
        np.ones(1, device=mx.gpu(0))
    with pytest.raises(MXNetError, match=r"device|cpu"):
        np.ones(1) + np.ones(1, device=mx.cpu(1))


@pytest.mark.parametrize(
    "value", [lambda: np.arange(3), lambda: [np.ones(2), np.zeros((1, 2))], lambda: {"a": np.ones(1)}]
)
def test_save_and_load(value, tmp_path):
    file, data = str(tmp_path / "x"), value()
    npx.save(file, data)
    back = npx.load(file)
    assert type(back) is type(data)
    pairs = zip(data, back, strict=True) if isinstance(data, list) else [(data, back)]
    if isinstance(data, dict):
        pairs = [(data["a"], back["a"])]
    for a, b in pairs:
        assert np.array_equal(a, b)
        assert a.dtype == b.dtype


def test_numpys_files(tmp_path):
    np.save(str(tmp_path / "a"), np.arange(3))
    assert onp.load(tmp_path / "a.npy").tolist() == [0, 1, 2]
    np.savez(str(tmp_path / "b"), np.ones(1), x=np.zeros(2))
    assert sorted(onp.load(tmp_path / "b.npz").files) == ["arr_0", "x"]
    assert np.load(str(tmp_path / "b.npz"))["x"].tolist() == [0, 0]


def test_waiting():
    x = np.ones(1000) + 1
    npx.waitall()
    assert x.is_ready()
    mx.waitall()


def test_bulk_sizes():
    before = mx.engine.set_bulk_size(5)
    assert mx.engine.set_bulk_size(before) == 5
    with mx.engine.bulk(1):
        assert (np.ones(3) + 1).tolist() == [2, 2, 2]
    assert mx.engine.set_bulk_size(before) == before
    with pytest.raises(ValueError, match="at least 0"):
        mx.engine.set_bulk_size(-1)


@pytest.mark.parametrize(
    ("name", "value", "bulk"),
    [
        ("MXNET_USE_FUSION", "0", False),
        ("MXNET_USE_FUSION", "1", True),
        ("MXNET_EXEC_BULK_EXEC_TRAIN", "0", False),
        ("MXNET_EXEC_BULK_EXEC_TRAIN", "1", True),
        ("MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN", "1", False),
        ("MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN", "15", True),
        ("MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN", "many", True),
    ],
)
def test_variables_that_turn_fusion_off(name, value, bulk):
    program = "import mxnp; from mxnp import _core; print(_core.set_fusion(True))"
    command = [sys.executable, "-c", program]
    run = subprocess.run(command, env={**os.environ, name: value}, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == str(bulk)


def test_features():
    features = mx.runtime.Features()
    assert not features.is_enabled("CUDA")
    assert features.is_enabled("int64_tensor_size")
    with pytest.raises(RuntimeError, match="unknown"):
        features.is_enabled("TELEPATHY")
    assert "CPU_SSE" in features


def test_environment_helpers():
    util.setenv("MXNP_A_TEST", "1")
    assert util.getenv("MXNP_A_TEST") == "1"
    util.setenv("MXNP_A_TEST", None)
    assert util.getenv("MXNP_A_TEST") is None


def test_from_numpy_shares():
    x = onp.zeros(3, "float32")
    y = npx.from_numpy(x)
    y[0] = 5
    assert x[0] == 5
    z = npx.from_numpy(x, zero_copy=False)
    z[1] = 7
    assert x[1] == 0


NAMES = """
np npx gluon autograd init initializer optimizer lr_scheduler metric kv kvstore context device cpu gpu random rnd
engine test_utils util use_np MXNetError Context Device runtime waitall num_gpus compat
"""


@pytest.mark.parametrize("name", NAMES.split())
def test_the_packages_names(name):
    assert getattr(mx, name) is not None
    assert name in dir(mx)


def test_parts_that_have_not_arrived_import_and_say_so_on_use():
    from mxnp.base import MXNetError as Base
    from mxnp.gluon import rnn

    assert Base is MXNetError
    with pytest.raises(NotImplementedError, match="has not arrived"):
        rnn.LSTM(3)
    assert not hasattr(mx.gluon, "no_such_part")
