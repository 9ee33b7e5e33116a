// Enough of CUDA's language to compile a file of cuda/ as C++ and run its kernels one thread after another.
// Says nothing about races: it is for what a kernel computes, not for how its threads meet.
#define __device__ static inline
#define __global__

struct HostDim {
    unsigned int x = 0, y = 0, z = 0;
};
// Set from outside before each call of a kernel, which then runs as that one thread.
extern "C" {
HostDim gridDim, blockDim, blockIdx, threadIdx;
}

static inline unsigned int atomicCAS(unsigned int *at, unsigned int expected, unsigned int value) {
    const unsigned int old = *at;
    if (old == expected) *at = value;
    return old;
}
