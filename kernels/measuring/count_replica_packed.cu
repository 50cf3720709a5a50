// Exact counts of every lane of replica-packed lattices: spins +1, unsatisfied bonds, and the spins +1 of the first sublattice.
#include "bits/lane_counts.cuh"

constexpr int THREADS = HOST(engine.layouts.replica_packed_cuda.COUNT_THREADS);
constexpr int COUNT_PLANES = 5;
static_assert(HOST(engine.layouts.replica_packed_cuda.ITEMS_A_THREAD) < 1 << COUNT_PLANES, "the planes hold a thread's items");

// Adds items of 128 lanes to totals[lane]; every block takes consecutive ones. `block_totals` is shared memory.
template <typename Item>
__device__ __forceinline__ void count_items(Item item, u32 items, u32* block_totals, u64* totals) {
    for (u32 lane = threadIdx.x; lane < 128; lane += blockDim.x) block_totals[lane] = 0;
    __syncthreads();
    const u32 share = (items + gridDim.x - 1) / gridDim.x, first = blockIdx.x * share, stop = min(items, first + share);
    add_warp(count_strided<COUNT_PLANES>(item, first + threadIdx.x, stop), block_totals);
    __syncthreads();
    for (u32 lane = threadIdx.x; lane < 128; lane += blockDim.x)
        if (block_totals[lane]) atomicAdd(totals + lane, (u64)block_totals[lane]);
    __syncthreads();
}

// Adds the unsatisfied bonds of one lattice. `edges` are pairs of places; `signs` are 1 where equal spins leave a bond
// unsatisfied.
__device__ __forceinline__ void count_bonds(const uint4* lattice, const int2* edges, const u8* signs, u32 bonds,
                                            u32* block_totals, u64* totals) {
    count_items(
        [=](u32 b) {
            const int2 ends = edges[b];
            const uint4 one = lattice[ends.x], other = lattice[ends.y];
            const u32 sign = 0u - signs[b];
            return make_uint4(parity(one.x, other.x, sign), parity(one.y, other.y, sign), parity(one.z, other.z, sign),
                              parity(one.w, other.w, sign));
        },
        bonds, block_totals, totals);
}

// Counts replica-packed lattices into totals[(sample * blocks + block) * 128 + lane], of each sum. The first sublattice has the
// first places; it is counted alone where `up_first` is not null.
__global__ __launch_bounds__(THREADS, 4) void count_replica(const uint4* state, u32 sites, const int2* edges,
                                                        const u8* negative, size_t sign_stride, u32 bonds, u32 first_sites,
                                                        u64* up, u64* unsatisfied, u64* up_first) {
    __shared__ u32 block_totals[128];
    const size_t part = (size_t)blockIdx.z * gridDim.y + blockIdx.y;
    const uint4* const lattice = state + part * sites;
    const u8* const signs = negative + blockIdx.z * sign_stride;
    const auto spins = [=](u32 i) { return lattice[i]; };
    count_items(spins, sites, block_totals, up + part * 128);
    if (up_first) count_items(spins, first_sites, block_totals, up_first + part * 128);
    count_bonds(lattice, edges, signs, bonds, block_totals, unsatisfied + part * 128);
}

// Adds unsatisfied bonds to a spin that is always +1 of the same lattices: `lone` are twice a place, plus 1 where J > 0.
__global__ __launch_bounds__(THREADS, 4) void count_lone(const uint4* state, u32 sites, const u32* lone, size_t stride, u32 bonds,
                                                     u64* unsatisfied) {
    __shared__ u32 block_totals[128];
    const size_t part = (size_t)blockIdx.z * gridDim.y + blockIdx.y;
    const uint4* const lattice = state + part * sites;
    const u32* const mine = lone + blockIdx.z * stride;
    count_items(
        [=](u32 b) {
            const uint4 spin = lattice[mine[b] >> 1];
            const u32 up = 0u - (mine[b] & 1);
            return make_uint4(spin.x ^ up, spin.y ^ up, spin.z ^ up, spin.w ^ up);
        },
        bonds, block_totals, unsatisfied + part * 128);
}

// Counts further bonds of the same lattices, likewise.
__global__ __launch_bounds__(THREADS, 4) void count_more_bonds(const uint4* state, u32 sites, const int2* edges,
                                                               const u8* negative, size_t sign_stride, u32 bonds,
                                                               u64* unsatisfied) {
    __shared__ u32 block_totals[128];
    const size_t part = (size_t)blockIdx.z * gridDim.y + blockIdx.y;
    count_bonds(state + part * sites, edges, negative + blockIdx.z * sign_stride, bonds, block_totals,
                unsatisfied + part * 128);
}
