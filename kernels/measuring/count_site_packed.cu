// Spins +1, unsatisfied bonds and the spins +1 of colour 0, of site-packed lattices; each bond is counted from its site of
// colour 0.
#include "bits/counters.cuh"
#include "packing/any_rows.cuh"

constexpr int THREADS = HOST(engine.moves.metropolis.site_packed.cuda.COUNT_THREADS), WARPS = THREADS / 32;

// Returns the number of set bits of all words: carry-save adders leave few words to count.
template <int ITEMS>
__device__ __forceinline__ u32 ones(const u32 (&item)[ITEMS]) {
    constexpr int PLANES = ITEMS < 8 ? 3 : ITEMS < 16 ? 4 : 5;
    static_assert(ITEMS < 32, "the planes hold counts up to 31");
    Counters<PLANES, 1> counters;
    counters.clear();
    counters.add(item, 0);
    u32 count = 0;
#pragma unroll
    for (int p = 0; p < PLANES; ++p) count += __popc(counters.plane[p][0]) << p;
    return count;
}

// Adds the block's three counts to the totals that are not null; every thread of the block must call it.
__device__ __forceinline__ void add_block(u64 (&counts)[3], u64* const (&totals)[3]) {
    __shared__ u64 of_warp[3][WARPS];
#pragma unroll
    for (int k = 0; k < 3; ++k) {
#pragma unroll
        for (int d = 16; d; d >>= 1) counts[k] += __shfl_down_sync(~0u, counts[k], d);
        if (threadIdx.x % 32 == 0) of_warp[k][threadIdx.x / 32] = counts[k];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 3; ++k) {
        if (threadIdx.x != k || !totals[k]) continue;
        u64 sum = 0;
#pragma unroll
        for (int w = 0; w < WARPS; ++w) sum += of_warp[k][w];
        atomicAdd(totals[k], sum);
    }
}

// Counts replicas and samples in y and z; colour 0 alone is counted where `up_first` is not null.
template <int DIMENSION, bool SIGNED, typename Geometry>
__global__ __launch_bounds__(THREADS) void count_site(const uint4* state, Geometry lattice, Halo halo, Signs signs, u64* up,
                                                         u64* unsatisfied, u64* up_first) {
    constexpr int SLOTS = 2 * DIMENSION;
    const size_t part = (size_t)blockIdx.z * gridDim.y + blockIdx.y;
    const u32 groups = groups_of(lattice);
    const uint4 *const mine = state + 2 * part * groups, *const other = mine + groups;
    const uint4 *const before = halo.before[1] + part * halo.stride, *const after = halo.after[1] + part * halo.stride;
    const uint4* const negative = signs.negative + blockIdx.z * signs.stride;
    u64 first = 0, second = 0, bonds = 0;  // spins +1 of colours 0 and 1
    for (u32 g = blockIdx.x * blockDim.x + threadIdx.x; g < groups; g += gridDim.x * blockDim.x) {
        const uint4 spin = mine[g];
        uint4 near[SLOTS];
        neighbours<DIMENSION>(lattice, g, [=](u32 i) { return other[i]; }, [=](u32 i) { return before[i]; },
                              [=](u32 i) { return after[i]; }, near);
        const uint4 centre = near[2];
        const u32 own[4] = {spin.x, spin.y, spin.z, spin.w}, others[4] = {centre.x, centre.y, centre.z, centre.w};
        first += ones(own), second += ones(others);
        const uint4 used = used_lanes(lattice, g);
        u32 differ[4 * SLOTS];
#pragma unroll
        for (int k = 0; k < SLOTS; ++k) {
            uint4 wanted = near[k];
            if constexpr (SIGNED) wanted = differing(wanted, negative[(size_t)k * groups + g]);
            const uint4 d = both(differing(spin, wanted), used);
            differ[4 * k] = d.x, differ[4 * k + 1] = d.y, differ[4 * k + 2] = d.z, differ[4 * k + 3] = d.w;
        }
        bonds += ones(differ);
    }
    u64 counts[3] = {first + second, bonds, first};
    add_block(counts, {up + part, unsatisfied + part, up_first ? up_first + part : nullptr});
}
