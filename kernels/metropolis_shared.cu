// Replica-packed Metropolis with the lattice of one (sample, block) in shared memory for many sweeps a launch.
#include "replica_site.cuh"

// Shared memory: the lattice, lanes in use, rows of `always` and `planes` for both parities, a tail for each warp.
template <int SLOTS, int COUNT_BITS, bool FIELD, int KIND, int ROUNDS>
__global__ __launch_bounds__(512, 1) void sweep_shared(uint4* state, u32 sites, const Batch* batches,
                                                       const int* colour_start, int colours, Model model, Tables tables,
                                                       u32 first_sample, u32 first_block, u64 half_sweep, u32 sweeps,
                                                       Key key) {
    using R = Rule<SLOTS, COUNT_BITS, FIELD, KIND, ROUNDS>;
    constexpr u32 ALWAYS_ROWS = 2 << R::BITS, PLANE_ROWS = 2 * PLANES << R::BITS;
    extern __shared__ uint4 lattice[];
    Tail<R::BITS> tail(((TailEntries<R::BITS>*)(lattice + sites + 1 + ALWAYS_ROWS + PLANE_ROWS))[threadIdx.x / 32]);
    const u32 block = blockIdx.y, sample = blockIdx.z;
    uint4* home = state + ((size_t)sample * gridDim.y + block) * sites;
    for (u32 i = threadIdx.x; i < sites; i += blockDim.x) lattice[i] = home[i];
    if (threadIdx.x == 0) lattice[sites] = tables.lanes[block];
    uint4* const always_rows = lattice + sites + 1;
    uint4* const plane_rows = always_rows + ALWAYS_ROWS;
    for (u32 i = threadIdx.x; i < ALWAYS_ROWS; i += blockDim.x) always_rows[i] = tables.always[block * ALWAYS_ROWS + i];
    for (u32 i = threadIdx.x; i < PLANE_ROWS; i += blockDim.x) plane_rows[i] = tables.planes[block * PLANE_ROWS + i];
    const u32 counter = counter_block(first_sample + sample, first_block + block);
    const SharedRows lanes = {(u32)__cvta_generic_to_shared(lattice + sites)};
    for (u32 sweep = 0; sweep < sweeps; ++sweep)
        for (int colour = 0; colour < colours; ++colour, ++half_sweep) {
            __syncthreads();  // sites of one colour share no bond: their batches need no barrier between them
            const HalfSweep time = counter_half_sweep(half_sweep, STREAM_UPDATE);
            for (int b = colour_start[colour]; b < colour_start[colour + 1]; ++b) {
                const Batch batch = batches[b];
                const SharedRows always = lanes.from(1 + (batch.parity << R::BITS));
                const SharedRows planes = lanes.from(1 + ALWAYS_ROWS + (batch.parity * PLANES << R::BITS));
                const u64* thresholds = tables.thresholds + (((size_t)block * 2 + batch.parity) << R::BITS << 7);
                update_sites<R, false>({batch, model, sample, nullptr}, lattice, batch.first + (threadIdx.x & ~31u),
                                       batch.first + batch.size, Stride{blockDim.x}, always, planes, thresholds, lanes, counter,
                                       time, key, tail, [] {});
            }
        }
    __syncthreads();
    for (u32 i = threadIdx.x; i < sites; i += blockDim.x) home[i] = lattice[i];
}
