"""Reading files built byte by byte: the values of good ones, the refusal of every kind of damage."""

import io
import struct
import zipfile

import numpy as np
import pytest

from files.builders import BIAS, FLAG, WEIGHT, legacy_array, legacy_list, npy, safetensors, zipped
from mxnp._files import FormatError, load_arrays
from mxnp.error import MXNetError


def load(data):
    return load_arrays(io.BytesIO(data))


def same(got, want):
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_legacy_versions(version):
    got = load(
        legacy_list([legacy_array(WEIGHT, version), legacy_array(BIAS, version)], ["0.weight", "arg:b"])
    )
    assert list(got) == ["0.weight", "arg:b"]
    same(got["0.weight"], WEIGHT)
    same(got["arg:b"], BIAS)


@pytest.mark.parametrize("name", sorted(FLAG))
def test_legacy_dtypes(name):
    array = np.array([[0, 1], [1, 0]], name)
    (got,) = load(legacy_list([legacy_array(array)]))
    same(got, array)


def test_legacy_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    bits = np.array([0x3F80, 0xC000], "uint16")
    (got,) = load(legacy_list([legacy_array(bits, flag=12)]))
    same(got, np.array([1, -2], ml_dtypes.bfloat16))


def test_legacy_no_dimensions():
    scalar = np.array(3.5, "float64")
    none = struct.pack("<IiI", 0xF993FAC9, 0, 0)
    got = load(legacy_list([legacy_array(scalar, 3), none, legacy_array(np.zeros((0, 4), "int8"), 3)]))
    same(got[0], scalar)
    assert got[1].size == 0
    same(got[2], np.zeros((0, 4), "int8"))


GOOD_LEGACY = legacy_list([legacy_array(WEIGHT), legacy_array(BIAS, 0)], ["w", "b"])


@pytest.mark.parametrize("cut", range(9, len(GOOD_LEGACY)))
def test_legacy_truncated_anywhere(cut):
    with pytest.raises(FormatError, match="at byte"):
        load(GOOD_LEGACY[:cut])


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (legacy_list([legacy_array(WEIGHT)], count=2**40), "claims 1099511627776 arrays"),
        (legacy_list([legacy_array(WEIGHT)], ["w"], name_count=2**62), "claims 4611686018427387904 names"),
        (legacy_list([legacy_array(WEIGHT)], ["w", "x"]), "2 names for 1 arrays"),
        (legacy_list([legacy_array(WEIGHT)] * 2, ["w", "w"]), "the name 'w' appears twice"),
        (legacy_list([legacy_array(WEIGHT)], [b"\xff\xfe"]), "name 0 is not UTF-8"),
        (legacy_list([legacy_array(WEIGHT)], ["w"]) + b"x", "1 bytes follow the end"),
        (legacy_list([legacy_array(WEIGHT, shape=(2**40, 2**40))]), "only"),
        (legacy_list([legacy_array(WEIGHT, shape=(2**31, 2**31, 0, 7))]), "too big"),
        (legacy_list([legacy_array(WEIGHT, shape=(-2, -3))]), r"has shape \(-2, -3\)"),
        (legacy_list([legacy_array(WEIGHT, shape=(1,) * 33)]), "has 33 dimensions"),
        (legacy_list([legacy_array(WEIGHT, flag=99)]), "unknown dtype flag 99"),
        (legacy_list([legacy_array(WEIGHT, flag=-1)]), "unknown dtype flag -1"),
        (legacy_list([legacy_array(WEIGHT, stype=1)]), "row_sparse"),
        (legacy_list([legacy_array(WEIGHT, stype=2)]), "csr; only dense"),
        (legacy_list([legacy_array(WEIGHT, stype=7)]), "storage type 7"),
        (legacy_list([struct.pack("<I", 0xDEADBEEF) + bytes(40)]), "unknown magic 0xdeadbeef"),
    ],
)
def test_legacy_damage(data, text):
    with pytest.raises(FormatError, match=text):
        load(data)


@pytest.mark.parametrize("fortran", [False, True])
@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize(
    "array",
    [
        WEIGHT,
        BIAS,
        np.array(2.5),
        np.zeros((0, 3), "uint8"),
        np.array([1 + 2j], "c8"),
        np.arange(4, dtype=">i2").reshape(2, 2),
        np.array([True, False]),
    ],
)
def test_npy(array, version, fortran):
    got = load(npy(array, version=version, fortran=fortran))
    same(got, array.astype(array.dtype.newbyteorder("=")))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (npy(WEIGHT, shape=(2**40, 2**40)), "only 24 are left"),
        (npy(WEIGHT, shape=(2**63,)), "has shape"),
        (npy(WEIGHT, shape=(-1,)), "has shape"),
        (npy(WEIGHT, shape=(1,) * 65), "has shape"),
        (npy(WEIGHT, shape=[2, 3]), "has shape"),
        (npy(WEIGHT, shape=(0, 2**62, 2**62)), "has shape"),
        (npy(WEIGHT, descr="|O"), "pickles"),
        (npy(WEIGHT, descr="<U3"), "expected numbers"),
        (npy(WEIGHT, descr="bogus"), "expected numbers"),
        (
            npy(WEIGHT, header="{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 3)}"),
            "expected numbers",
        ),
        (npy(WEIGHT, header="{'descr': '<f4', 'fortran_order': 1, 'shape': (2, 3)}"), "fortran_order 1"),
        (npy(WEIGHT, header="__import__('os')"), "not readable"),
        (npy(WEIGHT, header="(" * 5000), "not readable"),
        (npy(WEIGHT, header="-" * 9000 + "1"), "not readable"),
        (npy(WEIGHT, header="[]"), "not readable"),
        (npy(WEIGHT, header=" " * 20000), "at most 10000"),
        (npy(WEIGHT, version=4), "version 4"),
        (b"\x93NUMPY\x01", "needs 2 bytes"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff", "header of 4294967295 bytes"),
    ],
)
def test_npy_damage(data, text):
    with pytest.raises(FormatError, match=text):
        load(data)


def test_npy_truncated_anywhere():
    good = npy(WEIGHT)
    for cut in range(6, len(good)):
        with pytest.raises(FormatError):
            load(good[:cut])


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_npz(method):
    got = load(
        zipped([("arg:0.weight.npy", npy(WEIGHT)), ("a/b.npy", npy(BIAS)), ("é.npy", npy(BIAS))], method)
    )
    assert list(got) == ["arg:0.weight", "a/b", "é"]
    same(got["arg:0.weight"], WEIGHT)
    same(got["a/b"], BIAS)


def test_npz_list_and_empty():
    got = load(zipped([("arr_0.npy", npy(WEIGHT)), ("arr_1.npy", npy(BIAS))], comment=b"mxnp:list"))
    assert isinstance(got, list)
    same(got[1], BIAS)
    assert load(zipped([])) == {}
    with pytest.raises(FormatError, match="a list of arrays has the entries"):
        load(zipped([("w.npy", npy(WEIGHT))], comment=b"mxnp:list"))


@pytest.mark.parametrize(
    ("entries", "options", "text"),
    [
        ([("w.npy", npy(WEIGHT)), ("w.npy", npy(BIAS))], {}, "appears twice"),
        ([("w.txt", npy(WEIGHT))], {}, "not a .npy entry"),
        ([("w.npy", npy(WEIGHT) + b"tail")], {}, "more than its header says"),
        ([("w.npy", npy(WEIGHT)[:-1])], {}, "only 23 are left"),
        ([("w.npy", b"nothing")], {}, "magic"),
        ([("w.npy", npy(WEIGHT, descr="|O"))], {}, "pickles"),
        ([("w.npy", npy(WEIGHT))], {"lie": {"crc": 1}}, "CRC|damaged"),
        ([("w.npy", npy(WEIGHT))], {"lie": {"method": 12}}, "method 12"),
        ([("w.npy", npy(WEIGHT))], {"lie": {"size": 2**31}}, "claims 2147483648 bytes"),
        ([("w.npy", npy(WEIGHT))], {"lie": {"packed": 2**31}}, "claim 2147483648 bytes"),
        ([("w.npy", npy(WEIGHT))], {"lie": {"offset": 10**6}}, "ZIP|damaged|offset"),
        ([("w.npy", npy(WEIGHT)), ("x.npy", npy(WEIGHT))] * 9, {"lie": {"offset": 0}}, "twice|damaged|ZIP"),
        ([("w.npy", npy(WEIGHT))], {"lie": {"method": 8}}, "decompressed|damaged"),
    ],
)
def test_npz_damage(entries, options, text):
    with pytest.raises(FormatError, match=text):
        load(zipped(entries, **options))


@pytest.mark.filterwarnings("error")
def test_npz_truncated_anywhere():
    good = zipped([("w.npy", npy(WEIGHT)), ("b.npy", npy(BIAS))])
    for cut in range(4, len(good)):
        with pytest.raises(FormatError):
            load(good[:cut])


def test_npz_deflate_bomb_is_refused_before_memory_is_taken():
    header = npy(np.zeros(1, "uint8"), shape=(2**36,), data=b"")
    with pytest.raises(FormatError, match="claims"):
        load(zipped([("w.npy", header)], zipfile.ZIP_DEFLATED, lie={"size": 2**31 - 1}))


W_ENTRY = {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}
B_ENTRY = {"dtype": "I32", "shape": [3], "data_offsets": [24, 36]}


def test_safetensors():
    got = load(
        safetensors(
            {"__metadata__": {"format": "pt"}, "b": B_ENTRY, "w": W_ENTRY}, WEIGHT.tobytes() + BIAS.tobytes()
        )
    )
    assert list(got) == ["w", "b"]
    same(got["w"], WEIGHT)
    same(got["b"], BIAS)
    same(
        load(safetensors({"s": {"dtype": "BOOL", "shape": [], "data_offsets": [0, 1]}}, b"\1"))["s"],
        np.array(True),
    )


@pytest.mark.parametrize(
    ("header", "data", "text"),
    [
        ({"w": {**W_ENTRY, "data_offsets": [0, 23]}}, bytes(24), "claims bytes 0 to 23"),
        ({"w": {**W_ENTRY, "data_offsets": [4, 28]}}, bytes(28), "starts at 4"),
        ({"w": {**W_ENTRY, "data_offsets": [-24, 0]}}, bytes(24), "not valid"),
        ({"w": {**W_ENTRY, "shape": [2, -3]}}, bytes(24), "not valid"),
        ({"w": {**W_ENTRY, "shape": [2.0, 3]}}, bytes(24), "not valid"),
        ({"w": {**W_ENTRY, "shape": [True, 6]}}, bytes(24), "not valid"),
        ({"w": {**W_ENTRY, "shape": [2**40, 2**40]}}, bytes(24), "claims"),
        ({"w": {**W_ENTRY, "shape": [1] * 65}}, bytes(24), "not valid"),
        ({"w": {**W_ENTRY, "dtype": "F8_E4M3"}}, bytes(24), "not valid"),
        ({"w": [1, 2]}, bytes(24), "not valid"),
        ({"w": W_ENTRY}, bytes(23), "claims"),
        ({"w": W_ENTRY}, bytes(25), "cover 24 bytes of data, but the file has 25"),
        ({"w": W_ENTRY, "v": W_ENTRY}, bytes(24), "starts at 0 of the data, expected 24"),
        (b'{"w": {}, "w": {}}', b"", "appears twice"),
        (b"{" + b"[" * 50000, b"", "not readable"),
        (b'{"w": \xff}', b"", "not readable"),
    ],
)
def test_safetensors_damage(header, data, text):
    with pytest.raises(FormatError, match=text):
        load(safetensors(header, data))


@pytest.mark.parametrize(
    "data", [b"", b"PK", b"hello world", bytes(64), b"\x12\x01", safetensors({}, length=10**9)]
)
def test_unknown_files(data):
    with pytest.raises(FormatError, match="unknown kind of file"):
        load(data)


def test_error_names_the_file_and_both_families_catch_it(tmp_path):
    path = tmp_path / "broken.params"
    path.write_bytes(GOOD_LEGACY[:-3])
    with pytest.raises(MXNetError, match=r"broken\.params: at byte") as caught:
        load_arrays(path)
    assert isinstance(caught.value, ValueError)
    with pytest.raises(FileNotFoundError):
        load_arrays(tmp_path / "absent")


def test_reading_starts_where_the_stream_stands():
    stream = io.BytesIO(b"prefix" + GOOD_LEGACY)
    stream.seek(6)
    assert list(load_arrays(stream)) == ["w", "b"]
