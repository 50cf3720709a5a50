// Number of sites at which copies at equal temperatures differ.
#include "philox.cuh"

constexpr u32 THREADS = 256;

// Pair q * temperatures + t: the replicas of copies[q].x and copies[q].y at temperature t.
struct Pairs {
    const int* holder;   // [sample][copy][temperature]
    const int2* copies;  // [q]
    size_t replicas, temperatures, count;

    __device__ __forceinline__ int2 of(u32 sample, u32 pair) const {
        const u32 q = pair / (u32)temperatures, t = pair - q * (u32)temperatures;
        const int* const held = holder + sample * replicas + t;
        return make_int2(held[copies[q].x * temperatures], held[copies[q].y * temperatures]);
    }
};

// Bit b of lane r's word goes to bit r of lane b's (Warren, Hacker's Delight, 7-3), a step for each power of two.
__device__ __forceinline__ u32 transposed(u32 word) {
    u32 mask = 0xffff;  // the lower of two halves that are WIDTH bits apart
#pragma unroll
    for (u32 width = 16; width; width >>= 1, mask ^= mask << width) {
        const bool upper = threadIdx.x & width;
        const u32 other = __shfl_xor_sync(~0u, word, width);
        word = upper ? (word & ~mask) | (other >> width & mask) : (word & mask) | (other & mask) << width;
    }
    return word;
}

// Replica-packed: chunks of 4 * THREADS pairs in y, samples in z; in x, blocks take `tiles` tiles of 32 sites at a time, turn
// them into a word for each replica, in shared memory, and compare.
__global__ __launch_bounds__(THREADS) void differing_replicas(const uint4* state, u32 sites, u32 blocks, u32 tiles, Pairs pairs,
                                                              u64* differing) {
    constexpr int EACH = 4;
    extern __shared__ u32 words[];  // [tile][replica]
    const u32 sample = blockIdx.z, warp = threadIdx.x / 32, thread = threadIdx.x & 31, replicas = 128 * blocks;
    const uint4* const lattice = state + (size_t)sample * blocks * sites;
    int2 pair[EACH];
    u32 count[EACH] = {};
    const auto number = [&](int k) { return (blockIdx.y * EACH + k) * THREADS + threadIdx.x; };
#pragma unroll
    for (int k = 0; k < EACH; ++k) pair[k] = number(k) < pairs.count ? pairs.of(sample, number(k)) : make_int2(0, 0);
    for (u32 first = blockIdx.x * tiles * 32; first < sites; first += gridDim.x * tiles * 32) {
        for (u32 i = warp; i < tiles * blocks; i += THREADS / 32) {
            const u32 tile = i / blocks, block = i - tile * blocks, place = first + tile * 32 + thread;
            const uint4 lanes = place < sites ? lattice[(size_t)block * sites + place] : make_uint4(0, 0, 0, 0);
            u32* const row = words + tile * replicas + block * 128 + thread;
            row[0] = transposed(lanes.x), row[32] = transposed(lanes.y);
            row[64] = transposed(lanes.z), row[96] = transposed(lanes.w);
        }
        __syncthreads();
        for (u32 tile = 0; tile < tiles; ++tile)
#pragma unroll
            for (int k = 0; k < EACH; ++k)
                count[k] += __popc(words[tile * replicas + pair[k].x] ^ words[tile * replicas + pair[k].y]);
        __syncthreads();
    }
#pragma unroll
    for (int k = 0; k < EACH; ++k)
        if (number(k) < pairs.count) atomicAdd(differing + sample * pairs.count + number(k), (u64)count[k]);
}

// Site-packed: a pair in x, shares of its `words` of 128 sites in y, samples in z.
__global__ __launch_bounds__(THREADS) void differing_lattices(const uint4* state, u32 words, Pairs pairs, u64* differing) {
    const u32 sample = blockIdx.z;
    const int2 pair = pairs.of(sample, blockIdx.x);
    const uint4* const lattices = state + sample * pairs.replicas * words;
    const uint4 *const one = lattices + (size_t)pair.x * words, *const other = lattices + (size_t)pair.y * words;
    u32 count = 0;
    for (u32 i = blockIdx.y * THREADS + threadIdx.x; i < words; i += gridDim.y * THREADS) {
        const uint4 a = one[i], b = other[i];
        count += __popc(a.x ^ b.x) + __popc(a.y ^ b.y) + __popc(a.z ^ b.z) + __popc(a.w ^ b.w);
    }
    count = __reduce_add_sync(~0u, count);
    if (threadIdx.x % 32 == 0) atomicAdd(differing + sample * pairs.count + blockIdx.x, (u64)count);
}

// Unpacked: a thread a pair in x, shares of the sites in y, samples in z.
__global__ __launch_bounds__(THREADS) void differing_spins(const signed char* spins, u32 sites, u32 width, Pairs pairs,
                                                           u64* differing) {
    const u32 sample = blockIdx.z, number = blockIdx.x * THREADS + threadIdx.x;
    if (number >= pairs.count) return;
    const int2 pair = pairs.of(sample, number);
    const signed char* const lattice = spins + (size_t)sample * sites * width;
    u32 count = 0;
    for (u32 site = blockIdx.y; site < sites; site += gridDim.y) {
        const signed char* const row = lattice + (size_t)site * width;
        count += row[pair.x] != row[pair.y];
    }
    atomicAdd(differing + sample * pairs.count + number, (u64)count);
}
