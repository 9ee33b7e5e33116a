"""What the kernels of cuda/ compute, run on the host: the same source compiled as C++, against NumPy.

That they compile for real devices is tools/check_cuda.py's to show.
"""

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent
CUDA = HERE.parent.parent / "cuda"
MODES = {"raise": 0, "clip": 1, "wrap": 2, "strict": 3}
WORDS = {1: np.uint8, 2: np.float16, 4: np.float32, 8: np.int64, 16: np.complex128}


class Fault(ctypes.Structure):
    """MxnpFault of cuda/index.cu."""

    _fields_ = [
        ("raised", ctypes.c_uint),
        ("axis", ctypes.c_uint),
        ("index", ctypes.c_longlong),
        ("size", ctypes.c_longlong),
    ]


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    """cuda/index.cu as a library of the host."""
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    library = tmp_path_factory.mktemp("cuda") / "index.so"
    flags = ["-std=c++17", "-O1", "-shared", "-fPIC", "-Wall", "-Werror", "-Wno-unused-function"]
    command = [compiler, *flags, "-include", str(HERE / "host_cuda.h"), "-x", "c++", str(CUDA / "index.cu")]
    subprocess.run([*command, "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


def launch_on_host(kernels, name, grid, block, *args):
    """Call the kernel once for each thread of a launch of `grid` x `block`."""
    dims = {d: ctypes.c_uint.in_dll(kernels, d) for d in ("gridDim", "blockDim", "blockIdx", "threadIdx")}
    dims["gridDim"].value, dims["blockDim"].value = grid, block
    for dims["blockIdx"].value in range(grid):
        for dims["threadIdx"].value in range(block):
            getattr(kernels, name)(*args)


def take(kernels, source, indices, axis, mode="raise", launch=(2, 3)):
    """What the kernel leaves in an output full of 77s, and the fault it records."""
    outer, inner = int(np.prod(source.shape[:axis])), int(np.prod(source.shape[axis + 1 :]))
    out = np.full((*source.shape[:axis], indices.size, *source.shape[axis + 1 :]), 77).astype(source.dtype)
    fault = Fault()
    launch_on_host(
        kernels,
        f"mxnp_take_{source.dtype.itemsize}_{indices.dtype}",
        *launch,
        *(ctypes.c_void_p(a.ctypes.data) for a in (source, indices, out)),
        *map(ctypes.c_longlong, (outer, source.shape[axis], inner, indices.size)),
        ctypes.c_int(MODES[mode]),
        ctypes.c_uint(axis),
        ctypes.byref(fault),
    )
    return out, fault


@pytest.mark.parametrize("index_dtype", ["int32", "int64"])
@pytest.mark.parametrize("width", WORDS)
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("launch", [(1, 1), (2, 3), (5, 64)])
def test_take_is_numpys(kernels, width, index_dtype, axis, launch):
    source = (np.arange(60).reshape(3, 4, 5) * (1 + 2j if width == 16 else 1)).astype(WORDS[width])
    indices = np.array([2, -1, 0, 0, -3], index_dtype)
    out, fault = take(kernels, source, indices, axis, launch=launch)
    np.testing.assert_array_equal(out, np.take(source, indices, axis))
    assert fault.raised == 0


@pytest.mark.parametrize("mode", ["clip", "wrap"])
def test_modes_are_numpys(kernels, mode):
    source, indices = np.arange(12, dtype="float32").reshape(4, 3), np.arange(-11, 11)
    out, fault = take(kernels, source, indices, 0, mode)
    np.testing.assert_array_equal(out, np.take(source, indices, 0, mode=mode))
    assert fault.raised == 0


@pytest.mark.parametrize("bad", [4, -5, 2**31 + 1, -(2**40)])
def test_an_index_out_of_range_is_recorded_and_stores_nothing(kernels, bad):
    source, indices = np.arange(12, dtype="float32").reshape(4, 3), np.array([1, bad, 2])
    out, fault = take(kernels, source, indices, 0)
    np.testing.assert_array_equal(out, np.stack([source[1], np.full(3, 77, "float32"), source[2]]))
    assert (fault.raised, fault.axis, fault.index, fault.size) == (1, 0, bad, 4)


def test_negative_labels_are_a_fault(kernels):
    _, fault = take(kernels, np.zeros((4, 2), "float32"), np.array([3, -1]), 0, "strict")
    assert (fault.raised, fault.axis, fault.index, fault.size) == (1, 0, -1, 4)


@pytest.mark.parametrize("mode", MODES)
def test_an_empty_axis_is_a_fault_in_every_mode(kernels, mode):
    _, fault = take(kernels, np.zeros((2, 0), "float32"), np.array([0]), 1, mode)
    assert (fault.raised, fault.axis, fault.index, fault.size) == (1, 1, 0, 0)


@pytest.mark.parametrize(("shape", "count"), [((3, 0), 1), ((3, 2), 0), ((0, 3), 0)])
def test_nothing_to_move_is_no_fault(kernels, shape, count):
    out, fault = take(kernels, np.zeros(shape, "float32"), np.full(count, 9), 0)
    assert out.size == 0
    assert fault.raised == 0
