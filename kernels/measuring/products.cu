// Products of the spins at both ends of bonds, which lie as the spins do: bonds stand in the place of sites.
#include "bits/types.cuh"

constexpr u32 THREADS = HOST(engine.measuring.cuda_comparison.PRODUCTS_THREADS);

// Writes to links[sample][pair] the number of bonds, from which comparing takes those that differ.
__device__ __forceinline__ void set_links(u64* links, u32 pairs, u32 bonds) {
    if (blockIdx.y) return;
    for (u32 q = blockIdx.x * THREADS + threadIdx.x; q < pairs; q += gridDim.x * THREADS)
        links[(size_t)blockIdx.z * pairs + q] = bonds;
}

// Writes to[sample][block][bond] of replica-packed spins state[sample][block][site], a bit set where both spins differ; `words`
// is 4. Bonds in x, blocks of replicas in y, samples in z.
__global__ __launch_bounds__(THREADS) void products_of_replicas(const uint4* state, u32 sites, u32 words, const int2* ends,
                                                                u32 bonds, uint4* to, u64* links, u32 pairs) {
    const size_t part = (size_t)blockIdx.z * gridDim.y + blockIdx.y;
    const u32 b = blockIdx.x * THREADS + threadIdx.x;
    set_links(links, pairs, bonds);
    if (b >= bonds) return;
    const uint4 *const lattice = state + part * sites, one = lattice[ends[b].x], other = lattice[ends[b].y];
    to[part * bonds + b] = make_uint4(one.x ^ other.x, one.y ^ other.y, one.z ^ other.z, one.w ^ other.w);
}
