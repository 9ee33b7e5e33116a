// Indexing that cupy does not check: take (gather along one axis) with indices verified on the device.
// Compiled at run time; must not include a header, choose a launch shape, or know an array's dtype beyond its width.

// The first fault of a launch. The host clears it, reads it when it waits, and words the error. `raised` is 0 or 1.
struct MxnpFault {
    unsigned int raised;
    unsigned int axis;
    long long index;
    long long size;
};

// What an index outside [-size, size) means: NumPy's `mode` of take. For MXNP_STRICT negative ones are outside too.
enum MxnpMode { MXNP_RAISE = 0, MXNP_CLIP = 1, MXNP_WRAP = 2, MXNP_STRICT = 3 };

// Values move as words of their own width, so that one kernel serves every dtype of that width.
struct alignas(16) MxnpWord16 {
    unsigned long long low, high;
};

// Keeps the first fault only: whoever wins the exchange writes the rest.
__device__ void mxnp_fault(MxnpFault *fault, unsigned int axis, long long index, long long size) {
    if (atomicCAS(&fault->raised, 0u, 1u) == 0u) {
        fault->axis = axis;
        fault->index = index;
        fault->size = size;
    }
}

// The position that `index` names on an axis of `size`, or -1 after recording a fault.
__device__ long long mxnp_resolve(long long index, long long size, int mode, unsigned int axis, MxnpFault *fault) {
    if (size > 0 && mode == MXNP_CLIP) return index < 0 ? 0 : (index < size ? index : size - 1);
    if (size > 0 && mode == MXNP_WRAP) return ((index % size) + size) % size;
    if (index >= (mode == MXNP_STRICT ? 0 : -size) && index < size) return index < 0 ? index + size : index;
    mxnp_fault(fault, axis, index, size);
    return -1;
}

// out[o, i, n] = source[o, indices[i], n] for C-contiguous arrays of shapes (outer, count, inner), (outer, size,
// inner) and (count,). An element whose index is at fault is left as it was. Any grid and block shape of one
// dimension is right: threads stride over the elements.
template <typename Word, typename Index>
__device__ void mxnp_take(const Word *source, const Index *indices, Word *out, long long outer, long long size,
                          long long inner, long long count, int mode, unsigned int axis, MxnpFault *fault) {
    const long long total = outer * count * inner;
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x; at < total; at += step) {
        const long long row = at / inner;
        const long long found = mxnp_resolve((long long)indices[row % count], size, mode, axis, fault);
        if (found >= 0) out[at] = source[((row / count) * size + found) * inner + at % inner];
    }
}

// The entry points: mxnp_take_<bytes of a value>_<index dtype>. Wider and unsigned indices are cast by the caller.
#define MXNP_TAKE(NAME, WORD, INDEX)                                                                           \
    extern "C" __global__ void NAME(const WORD *source, const INDEX *indices, WORD *out, long long outer,      \
                                    long long size, long long inner, long long count, int mode,                \
                                    unsigned int axis, MxnpFault *fault) {                                     \
        mxnp_take<WORD, INDEX>(source, indices, out, outer, size, inner, count, mode, axis, fault);            \
    }

MXNP_TAKE(mxnp_take_1_int32, unsigned char, int)
MXNP_TAKE(mxnp_take_1_int64, unsigned char, long long)
MXNP_TAKE(mxnp_take_2_int32, unsigned short, int)
MXNP_TAKE(mxnp_take_2_int64, unsigned short, long long)
MXNP_TAKE(mxnp_take_4_int32, unsigned int, int)
MXNP_TAKE(mxnp_take_4_int64, unsigned int, long long)
MXNP_TAKE(mxnp_take_8_int32, unsigned long long, int)
MXNP_TAKE(mxnp_take_8_int64, unsigned long long, long long)
MXNP_TAKE(mxnp_take_16_int32, MxnpWord16, int)
MXNP_TAKE(mxnp_take_16_int64, MxnpWord16, long long)
