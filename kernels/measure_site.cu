// Spins up and unsatisfied bonds of site-packed lattices; each bond is counted from its site of colour 0.
#include "slab.cuh"

__device__ __forceinline__ u32 ones(const uint4& v) { return __popc(v.x) + __popc(v.y) + __popc(v.z) + __popc(v.w); }

// Adds a thread's counts to totals[part]; every thread of the block must call it.
__device__ __forceinline__ void add_to(u64* total, u64 count) {
    for (int d = 16; d; d >>= 1) count += __shfl_down_sync(~0u, count, d);
    if ((threadIdx.x & 31) == 0) atomicAdd(total, count);
}

// Replicas and samples in y and z, as in metropolis_site.cu.
template <int DIMENSION, bool SIGNED>
__global__ __launch_bounds__(256) void count_site(const uint4* state, Slab slab, Halo halo, Signs signs, u64* up,
                                                  u64* unsatisfied) {
    const size_t part = (size_t)blockIdx.z * gridDim.y + blockIdx.y, plane = (size_t)slab.width * slab.height;
    const size_t groups = plane * slab.depth;
    const uint4 *const mine = state + 2 * part * groups, *const other = mine + groups;
    const uint4 *const before = halo.before[1] + part * halo.stride, *const after = halo.after[1] + part * halo.stride;
    const uint4* const negative = signs.negative + blockIdx.z * signs.stride;
    u64 spins = 0, bonds = 0;
    for (size_t g = (size_t)blockIdx.x * blockDim.x + threadIdx.x; g < groups; g += (size_t)gridDim.x * blockDim.x) {
        const u32 q = g % slab.width, row = g / slab.width, y = row % slab.height, z = row / slab.height;
        const bool bottom = y == 0, top = y + 1 == slab.height, odd = (y + z + slab.parity) & 1;
        const uint4 spin = mine[g], centre = other[g];
        uint4 near[2 * DIMENSION];
        if constexpr (DIMENSION == 2) {
            near[0] = bottom ? before[q] : other[g - slab.width];
            near[1] = top ? after[q] : other[g + slab.width];
        } else {
            near[0] = other[bottom ? g + plane - slab.width : g - slab.width];
            near[1] = other[top ? g + slab.width - plane : g + slab.width];
            near[4] = z == 0 ? before[g] : other[g - plane];
            near[5] = z + 1 == slab.depth ? after[g - z * plane] : other[g + plane];
        }
        near[2] = centre;
        near[3] = odd ? shifted<true>(centre, other[q + 1 < slab.width ? g + 1 : g + 1 - slab.width].x)
                      : shifted<false>(centre, other[q > 0 ? g - 1 : g + slab.width - 1].w);
        spins += ones(spin) + ones(centre);
#pragma unroll
        for (int k = 0; k < 2 * DIMENSION; ++k) {
            uint4 wanted = near[k];
            if constexpr (SIGNED) {
                wanted = differing(wanted, negative[k * groups + g]);
            }
            bonds += ones(differing(spin, wanted));
        }
    }
    add_to(up + part, spins);
    add_to(unsatisfied + part, bonds);
}
