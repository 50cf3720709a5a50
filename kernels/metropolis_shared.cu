// Replica-packed Metropolis with the lattice of one (sample, block) in shared memory for many sweeps a launch.
#include "replica_site.cuh"

// Shared memory: the lattice, then the block's rows of `always` and `planes` for both parities.
template <int COUNT_BITS, bool FIELD, int SLOTS, int ROUNDS>
__global__ __launch_bounds__(512, 1) void sweep_shared(uint4* state, u32 sites, const Batch* batches,
                                                       const int* colour_start, int colours, Model model, Tables tables,
                                                       u32 first_sample, u32 first_block, u64 half_sweep, u32 sweeps,
                                                       Key key) {
    constexpr int BITS = FIELD ? COUNT_BITS + 1 : COUNT_BITS - 1;
    constexpr u32 ALWAYS = 2 << BITS, PLANES = 2 * FIXED_PLANES << BITS;
    extern __shared__ uint4 lattice[];
    const u32 block = blockIdx.y, sample = blockIdx.z;
    uint4* home = state + ((size_t)sample * gridDim.y + block) * sites;
    for (u32 i = threadIdx.x; i < sites; i += blockDim.x) lattice[i] = home[i];
    for (u32 i = threadIdx.x; i < ALWAYS; i += blockDim.x) lattice[sites + i] = tables.always[block * ALWAYS + i];
    for (u32 i = threadIdx.x; i < PLANES; i += blockDim.x) lattice[sites + ALWAYS + i] = tables.planes[block * PLANES + i];
    const u32 counter = counter_block(first_sample + sample, first_block + block);
    const u32 rows = (u32)__cvta_generic_to_shared(lattice + sites);
    const uint4 used = tables.lanes[block];
    for (u32 sweep = 0; sweep < sweeps; ++sweep)
        for (int colour = 0; colour < colours; ++colour, ++half_sweep) {
            __syncthreads();  // sites of one colour share no bond: their batches need no barrier between them
            const HalfSweep time = counter_half_sweep(half_sweep, STREAM_UPDATE);
            for (int b = colour_start[colour]; b < colour_start[colour + 1]; ++b) {
                const Batch batch = batches[b];
                const SharedRows always = {rows + 16 * (batch.parity << BITS)};
                const SharedRows planes = {rows + 16 * (ALWAYS + (batch.parity * FIXED_PLANES << BITS))};
                const u64* thresholds = tables.thresholds + (((size_t)block * 2 + batch.parity) << BITS << 7);
                for (u32 q = threadIdx.x; q < batch.size; q += blockDim.x)
                    update_site<COUNT_BITS, FIELD, SLOTS, ROUNDS>(lattice, q, batch, model, sample, always, planes,
                                                                  thresholds, used, counter, time, key);
            }
        }
    __syncthreads();
    for (u32 i = threadIdx.x; i < sites; i += blockDim.x) home[i] = lattice[i];
}
