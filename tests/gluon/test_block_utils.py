"""gluon.utils: splitting batches, clipping gradients, fetching files."""

import hashlib

import numpy as onp
import pytest

from mxnp import np
from mxnp.device import cpu
from mxnp.error import MXNetError
from mxnp.gluon import utils


def test_split_data():
    data = np.arange(12).reshape(6, 2)
    parts = utils.split_data(data, 3)
    assert [part.shape for part in parts] == [(2, 2)] * 3
    onp.testing.assert_array_equal(parts[1].asnumpy(), [[4, 5], [6, 7]])
    assert [part.shape for part in utils.split_data(data, 2, batch_axis=1)] == [(6, 1)] * 2
    assert [len(part) for part in utils.split_data(data, 4, even_split=False)] == [1, 2, 1, 2]


@pytest.mark.parametrize(("slices", "even"), [(7, False), (0, False), (4, True)])
def test_split_data_that_cannot(slices, even):
    with pytest.raises(ValueError, match=r"split_data: shape \(6, 2\) cannot be split"):
        utils.split_data(np.zeros((6, 2)), slices, even_split=even)


@pytest.mark.parametrize("data", [np.arange(4), [0, 1, 2, 3], onp.arange(4, dtype="float32")])
def test_split_and_load(data):
    parts = utils.split_and_load(data, ctx_list=[cpu(0), cpu(1)])
    assert [part.device for part in parts] == [cpu(0), cpu(1)]
    onp.testing.assert_array_equal(parts[1].asnumpy(), [2, 3])
    assert len(utils.split_and_load(data, cpu(1))) == 1


@pytest.mark.parametrize("check", [True, False])
def test_clip_global_norm(check):
    arrays = [np.array([3.0, 0.0]), np.array([[4.0]])]
    norm = utils.clip_global_norm(arrays, 1.0, check_isfinite=check)
    assert float(norm) == 5.0
    assert isinstance(norm, float) is check
    onp.testing.assert_allclose(arrays[0].asnumpy(), [0.6, 0], rtol=1e-6)
    onp.testing.assert_allclose(arrays[1].asnumpy(), [[0.8]], rtol=1e-6)
    utils.clip_global_norm(arrays, 10.0, check_isfinite=check)
    onp.testing.assert_allclose(arrays[0].asnumpy(), [0.6, 0], rtol=1e-6)


def test_clip_global_norm_over_devices_and_of_nan():
    arrays = [np.array([3.0]), np.array([4.0]).to_device(cpu(1))]
    assert utils.clip_global_norm(arrays, 2.5) == 5.0
    onp.testing.assert_allclose(arrays[1].asnumpy(), [2.0], rtol=1e-6)
    with pytest.warns(UserWarning, match="nan or inf"):
        utils.clip_global_norm([np.array([onp.nan])], 1.0)
    with pytest.raises(AssertionError, match="at least one"):
        utils.clip_global_norm([], 1.0)


def test_shape_is_known():
    assert utils.shape_is_known((2, 3))
    assert utils.shape_is_known(())
    assert not utils.shape_is_known((2, -1))
    assert not utils.shape_is_known(None)


def test_download_checks_and_keeps(tmp_path):
    source = tmp_path / "data.bin"
    source.write_bytes(b"content")
    sha1 = hashlib.sha1(b"content").hexdigest()
    folder = tmp_path / "into"
    folder.mkdir()
    target = utils.download(source.as_uri(), folder, sha1_hash=sha1)
    assert target == str(folder / "data.bin")
    assert utils.check_sha1(target, sha1)

    source.write_bytes(b"changed")
    assert utils.download(source.as_uri(), target, sha1_hash=sha1) == target
    with pytest.raises(MXNetError, match="does not have the SHA-1"):
        utils.download(source.as_uri(), target, overwrite=True, sha1_hash=sha1)
    assert (folder / "data.bin").read_bytes() == b"content"
    utils.download(source.as_uri(), target, overwrite=True)
    assert (folder / "data.bin").read_bytes() == b"changed"
    with pytest.raises(OSError, match="cannot be fetched"):
        utils.download((tmp_path / "nonesuch").as_uri(), folder, retries=0)
    assert [entry.name for entry in folder.iterdir()] == ["data.bin"]
