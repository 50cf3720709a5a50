// Replicas that take the configurations of others in their sample: spinsim/engine/moves/resample.py on the GPU.
#include "bits/types.cuh"

// Gives each lane target[i] the bits of lane source[i], in words state[(sample * blocks + block) * sites + site] of 64 lanes twice.
// The moves to block b of sample s are those from first[s * blocks + b] to before first[s * blocks + b + 1]. A thread writes the two
// words of one site and block. Sources are no targets: while others write the words in which they stand, their bits do not
// change, and words of 64 bits are read and written whole.
__global__ void copy_lanes(volatile u64* state, u32 sites, const long long* first, const u32* source, const u32* target) {
    const u32 site = blockIdx.x * blockDim.x + threadIdx.x;
    const size_t sample = blockIdx.z, part = sample * gridDim.y + blockIdx.y;
    const long long begin = first[part], end = first[part + 1];
    if (site >= sites || begin == end) return;
    volatile u64* const own = state + 2 * (part * sites + site);
    u64 low = own[0], high = own[1];
    for (long long i = begin; i < end; i++) {
        const u32 from = source[i], to = target[i];
        const size_t block = sample * gridDim.y + from / 128;
        const u64 bit = state[2 * (block * sites + site) + from / 64 % 2] >> from % 64 & 1;
        const u64 kept = ~(1ull << to % 64), set = bit << to % 64;
        if (to / 64 % 2) high = (high & kept) | set;
        else low = (low & kept) | set;
    }
    own[0] = low;
    own[1] = high;
}
