// The start vector of Lanczos from the LANCZOS stream: spinsim/transfer_matrix/vectors.py on the GPU.
#include "random/philox.cuh"

// A random number from (-1, 1) on a grid of 2^-52: exact, so that all devices begin alike.
__device__ __forceinline__ double centred(u32 high, u32 low) {
    return (double)((u64)high << 32 | low & ~0xFFFu) * 0x1p-63 - (1.0 - 0x1p-52);
}

// Pairs of them from number `first` on.
__global__ void start_vector(double2* out, u64 first, u64 pairs, u32 block, u32 plane, Key key) {
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < pairs; i += (u64)gridDim.x * blockDim.x) {
        const u64 pair = first + i;
        const u32 word3 = counter_half_sweep(0, STREAM_LANCZOS).word3 | plane;
        const uint4 r = philox<MOST_ROUNDS>((u32)pair, block, (u32)(pair >> 32), word3, key);
        out[i] = {centred(r.x, r.y), centred(r.z, r.w)};
    }
}
