"""Damaged files of every format: the reader answers with arrays or FormatError, and nothing else."""

import io
import tracemalloc
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from files.builders import BIAS, WEIGHT, legacy_array, legacy_list, npy, safetensors, zipped
from mxnp._files import FormatError, load_arrays
from specs.drive import examples

GOOD = {
    "legacy": legacy_list(
        [legacy_array(WEIGHT), legacy_array(BIAS, 0), legacy_array(WEIGHT, 3)], ["w", "b", "v"]
    ),
    "npy": npy(WEIGHT),
    "npz": zipped([("w.npy", npy(WEIGHT)), ("b.npy", npy(BIAS, fortran=True))]),
    "deflated": zipped([("w.npy", npy(WEIGHT)), ("b.npy", npy(BIAS))], zipfile.ZIP_DEFLATED),
    "safetensors": safetensors(
        {"w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}, WEIGHT.tobytes()
    ),
}
MEMORY = 16 << 20


def outcome(data):
    tracemalloc.start()
    try:
        load_arrays(io.BytesIO(data))
    except FormatError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < MEMORY, f"reading {len(data)} bytes took {peak} bytes of memory"


@pytest.mark.parametrize("kind", GOOD)
@examples(300)
@given(data=st.data())
def test_mutated(kind, data):
    blob = bytearray(GOOD[kind])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(blob) - 1))
        how = data.draw(st.sampled_from(["flip", "set", "cut", "insert", "big"]))
        if how == "flip":
            blob[at] ^= 1 << data.draw(st.integers(0, 7))
        elif how == "set":
            blob[at] = data.draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF, 0x4E]))
        elif how == "cut":
            del blob[at : at + data.draw(st.integers(1, 16))]
        elif how == "insert":
            blob[at:at] = data.draw(st.binary(min_size=1, max_size=8))
        else:
            blob[at : at + 8] = data.draw(st.integers(0, 2**64 - 1)).to_bytes(8, "little")
        if not blob:
            break
    outcome(bytes(blob))


@pytest.mark.parametrize("kind", GOOD)
def test_each_byte_set_to_each_extreme(kind):
    good = GOOD[kind]
    for at in range(len(good)):
        for value in (0x00, 0xFF, good[at] ^ 1, good[at] ^ 0x80):
            try:
                load_arrays(io.BytesIO(good[:at] + bytes([value]) + good[at + 1 :]))
            except FormatError:
                continue


@examples(200)
@given(
    head=st.sampled_from([good[:n] for good in GOOD.values() for n in (8, 24)]), tail=st.binary(max_size=200)
)
def test_random_tail(head, tail):
    outcome(head + tail)
