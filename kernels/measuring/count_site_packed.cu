// Spins up and unsatisfied bonds of site-packed lattices; each bond is counted from its site of colour 0.
#include "bits/counters.cuh"
#include "packing/slab.cuh"

constexpr int THREADS = HOST(engine.metropolis.site_packed.cuda_lattices.COUNT_THREADS), WARPS = THREADS / 32;

// Set bits of all words: carry-save adders leave few words to count.
template <int ITEMS>
__device__ __forceinline__ u32 ones(const u32 (&item)[ITEMS]) {
    constexpr int PLANES = ITEMS < 16 ? 4 : 5;
    static_assert(ITEMS < 32, "the planes hold counts up to 31");
    Counters<PLANES, 1> counters;
    counters.clear();
    counters.add(item, 0);
    u32 count = 0;
#pragma unroll
    for (int p = 0; p < PLANES; ++p) count += __popc(counters.plane[p][0]) << p;
    return count;
}

// Adds the block's counts to totals; every thread of the block must call it.
__device__ __forceinline__ void add_block(u64 spins, u64 bonds, u64* up, u64* unsatisfied) {
    __shared__ u64 warp_spins[WARPS], warp_bonds[WARPS];
#pragma unroll
    for (int d = 16; d; d >>= 1) {
        spins += __shfl_down_sync(~0u, spins, d);
        bonds += __shfl_down_sync(~0u, bonds, d);
    }
    if (threadIdx.x % 32 == 0) warp_spins[threadIdx.x / 32] = spins, warp_bonds[threadIdx.x / 32] = bonds;
    __syncthreads();
    if (threadIdx.x > 1) return;
    const u64* const sums = threadIdx.x ? warp_bonds : warp_spins;
    u64 sum = 0;
#pragma unroll
    for (int w = 0; w < WARPS; ++w) sum += sums[w];
    atomicAdd(threadIdx.x ? unsatisfied : up, sum);
}

// Replicas and samples in y and z.
template <int DIMENSION, bool SIGNED>
__global__ __launch_bounds__(THREADS) void count_site(const uint4* state, Slab slab, Halo halo, Signs signs, u64* up,
                                                         u64* unsatisfied) {
    constexpr int SLOTS = 2 * DIMENSION;
    const size_t part = (size_t)blockIdx.z * gridDim.y + blockIdx.y;
    const u32 plane = slab.width * slab.height, groups = plane * slab.depth;
    const uint4 *const mine = state + 2 * part * groups, *const other = mine + groups;
    const uint4 *const before = halo.before[1] + part * halo.stride, *const after = halo.after[1] + part * halo.stride;
    const uint4* const negative = signs.negative + blockIdx.z * signs.stride;
    u64 spins = 0, bonds = 0;
    for (u32 g = blockIdx.x * blockDim.x + threadIdx.x; g < groups; g += gridDim.x * blockDim.x) {
        const uint4 spin = mine[g];
        uint4 near[SLOTS];
        neighbours<DIMENSION>(slab, g, [=](u32 i) { return other[i]; }, [=](u32 i) { return before[i]; },
                              [=](u32 i) { return after[i]; }, near);
        const uint4 centre = near[2];
        const u32 own[8] = {spin.x, spin.y, spin.z, spin.w, centre.x, centre.y, centre.z, centre.w};
        spins += ones(own);
        u32 differ[4 * SLOTS];
#pragma unroll
        for (int k = 0; k < SLOTS; ++k) {
            uint4 wanted = near[k];
            if constexpr (SIGNED) wanted = differing(wanted, negative[(size_t)k * groups + g]);
            const uint4 d = differing(spin, wanted);
            differ[4 * k] = d.x, differ[4 * k + 1] = d.y, differ[4 * k + 2] = d.z, differ[4 * k + 3] = d.w;
        }
        bonds += ones(differ);
    }
    add_block(spins, bonds, up + part, unsatisfied + part);
}
