"""Writing: what NumPy and our own readers get back, and that a failed write leaves the old file alone."""

import io
import os
import stat
import struct
import zipfile

import numpy as np
import pytest

from files.builders import BIAS, WEIGHT, legacy_array, legacy_list
from mxnp._files import api, atomic_write, load_arrays, save_arrays, save_legacy, save_safetensors

DTYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
]
SHAPES = [(), (0,), (3, 0, 2), (5,), (2, 3, 4)]


def example(dtype, shape):
    return (np.arange(int(np.prod(shape))) % 5).reshape(shape).astype(dtype)


@pytest.mark.parametrize("save", [save_arrays, save_legacy, save_safetensors])
@pytest.mark.parametrize("dtype", DTYPES)
def test_round_trip(save, dtype, tmp_path):
    arrays = {f"arg:{i}.weight": example(dtype, shape) for i, shape in enumerate(SHAPES)}
    arrays["strided"] = example(dtype, (4, 6))[::-2, ::3].T
    save(tmp_path / "a.params", arrays)
    got = load_arrays(tmp_path / "a.params")
    assert set(got) == set(arrays)
    for name, want in arrays.items():
        assert got[name].dtype == want.dtype
        assert got[name].shape == want.shape
        np.testing.assert_array_equal(got[name], want)
        assert got[name].flags.writeable


@pytest.mark.parametrize("save", [save_arrays, save_legacy, save_safetensors])
def test_bfloat16(save, tmp_path):
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    want = np.array([[1.5, -2], [0, 3]], bfloat16)
    save(tmp_path / "a", {"w": want})
    got = load_arrays(tmp_path / "a")["w"]
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got.view("u2"), want.view("u2"))


@pytest.mark.parametrize("dtype", ["complex64", "complex128", ">f4"])
def test_npz_only_dtypes(dtype, tmp_path):
    want = np.array([1, 2], dtype)
    save_arrays(tmp_path / "a", {"w": want})
    got = load_arrays(tmp_path / "a")["w"]
    assert got.dtype.isnative
    np.testing.assert_array_equal(got, want)


def test_numpy_reads_ours(tmp_path):
    save_arrays(tmp_path / "a.npz", {"0.weight": WEIGHT, "b": BIAS})
    with np.load(tmp_path / "a.npz") as got:
        assert list(got) == ["0.weight", "b"]
        np.testing.assert_array_equal(got["0.weight"], WEIGHT)
    save_arrays(tmp_path / "a.npy", WEIGHT)
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), WEIGHT)


def test_ours_reads_numpy(tmp_path):
    for write in (np.savez, np.savez_compressed):
        write(tmp_path / "a.npz", w=WEIGHT, b=np.asfortranarray(WEIGHT))
        got = load_arrays(tmp_path / "a.npz")
        np.testing.assert_array_equal(got["w"], WEIGHT)
        np.testing.assert_array_equal(got["b"], WEIGHT)


def test_kinds(tmp_path):
    for value, kind in (
        (WEIGHT, np.ndarray),
        ([WEIGHT, BIAS], list),
        ({"arr_0": WEIGHT}, dict),
        ([], list),
        ({}, dict),
    ):
        save_arrays(tmp_path / "a", value)
        assert type(load_arrays(tmp_path / "a")) is kind
    save_legacy(tmp_path / "a", [WEIGHT])
    assert type(load_arrays(tmp_path / "a")) is list


def test_legacy_bytes(tmp_path):
    scalar = np.array(2, "int64")
    save_legacy(tmp_path / "a", {"w": WEIGHT, "b": BIAS})
    assert (tmp_path / "a").read_bytes() == legacy_list(
        [legacy_array(WEIGHT), legacy_array(BIAS)], ["w", "b"]
    )
    save_legacy(tmp_path / "a", [WEIGHT, scalar])
    assert (tmp_path / "a").read_bytes() == legacy_list([legacy_array(WEIGHT, 3), legacy_array(scalar, 3)])


def test_npz_is_stored_and_reproducible(tmp_path):
    first, second = io.BytesIO(), io.BytesIO()
    save_arrays(first, {"w": WEIGHT})
    save_arrays(second, {"w": WEIGHT})
    assert first.getvalue() == second.getvalue()
    (info,) = zipfile.ZipFile(first).infolist()
    assert info.compress_type == zipfile.ZIP_STORED
    assert info.filename == "w.npy"


@pytest.mark.parametrize("bad", [np.array(["x"]), np.array([object()]), {"w": np.array(["x"])}, {3: WEIGHT}])
def test_refused_values_keep_the_old_file(bad, tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with pytest.raises(TypeError, match="save"):
        save_arrays(path, bad)
    with pytest.raises(TypeError, match="save"):
        save_legacy(path, {"w": np.array([1j])})
    with pytest.raises(TypeError, match="save"):
        save_safetensors(path, {"w": np.array([1j])})
    with pytest.raises(ValueError, match="cannot name an array"):
        save_arrays(path, {"": WEIGHT})
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_atomic_write(tmp_path):
    path, link = tmp_path / "real", tmp_path / "link"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to(path)
    with pytest.raises(KeyboardInterrupt), atomic_write(link) as stream:
        stream.write(b"half")
        assert path.read_bytes() == b"old"
        raise KeyboardInterrupt
    assert path.read_bytes() == b"old"
    with atomic_write(link) as stream:
        stream.write(b"new")
    assert link.is_symlink()
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert sorted(os.listdir(tmp_path)) == ["link", "real"]
    with pytest.raises(FileNotFoundError, match="no folder"), atomic_write(tmp_path / "no" / "x"):
        pass
    with atomic_write(os.devnull) as stream:
        stream.write(b"gone")
    assert not stat.S_ISREG(os.stat(os.devnull).st_mode)


def test_namespace_functions(tmp_path):
    from mxnp import np as mnp

    a, b = mnp.array([[1.5, 2], [3, 4]], dtype="float32"), mnp.array([1, 2], dtype="int32")

    def values(x):
        return x.asnumpy() if hasattr(x, "asnumpy") else np.asarray(x)

    api.save(tmp_path / "one", a)
    assert (tmp_path / "one.npy").exists()
    got = api.load(str(tmp_path / "one.npy"))
    assert type(got) is type(a)
    assert got.dtype == a.dtype
    np.testing.assert_array_equal(values(got), values(a))
    api.savez(str(tmp_path / "z.npz"), a, b=b)
    got = api.load(tmp_path / "z.npz")
    assert set(got) == {"arr_0", "b"}
    assert got["b"].dtype == b.dtype
    assert type(got["b"]) is type(b)
    with pytest.raises(ValueError, match="arr_0"):
        api.savez(tmp_path / "z", a, arr_0=b)
    for value in (a, [a, b], {"x": a, "y": b}):
        api.npx_save(tmp_path / "exact", value)
        got = api.load(tmp_path / "exact")
        assert type(got) is type(value)
    assert list(got) == ["x", "y"]
    api.npx_savez(str(tmp_path / "exactz"), a)
    assert list(api.load(tmp_path / "exactz")) == ["arr_0"]


def test_header_is_aligned(tmp_path):
    save_safetensors(tmp_path / "a", {"w": WEIGHT, "b": BIAS})
    data = (tmp_path / "a").read_bytes()
    assert struct.unpack("<Q", data[:8])[0] % 8 == 0
