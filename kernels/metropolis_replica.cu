// Replica-packed Metropolis from global memory: one launch a batch, a thread a site, blocks and samples in y and z.
// state[(sample * blocks + block) * sites + site] is a uint4 of 128 lanes.
#include "replica_site.cuh"

template <int COUNT_BITS, bool FIELD, int SLOTS, int ROUNDS>
__global__ __launch_bounds__(128) void sweep_replica(uint4* state, u32 sites, const Batch* batches, u32 batch_index,
                                                     Model model, Tables tables, u32 first_sample, u32 first_block,
                                                     u64 half_sweep, Key key) {
    constexpr int BITS = FIELD ? COUNT_BITS + 1 : COUNT_BITS - 1;
    const Batch batch = batches[batch_index];
    const u32 q = blockIdx.x * blockDim.x + threadIdx.x, block = blockIdx.y, sample = blockIdx.z;
    if (q >= batch.size) return;
    uint4* lattice = state + ((size_t)sample * gridDim.y + block) * sites;
    const size_t table = (size_t)block * 2 + batch.parity;
    const GlobalRows always = {tables.always + (table << BITS)};
    const GlobalRows planes = {tables.planes + ((table * FIXED_PLANES) << BITS)};
    update_site<COUNT_BITS, FIELD, SLOTS, ROUNDS>(lattice, q, batch, model, sample, always, planes,
                                                  tables.thresholds + ((table << BITS) << 7), tables.lanes[block],
                                                  counter_block(first_sample + sample, first_block + block),
                                                  counter_half_sweep(half_sweep, STREAM_UPDATE), key);
}
