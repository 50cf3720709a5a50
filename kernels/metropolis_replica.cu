// Replica-packed Metropolis from global memory: one launch a batch, blocks of replicas and samples in y and z.
// state[(sample * blocks + block) * sites + place] is a uint4 of 128 lanes; places are in batch order (replica_site.cuh).
#include "replica_site.cuh"

constexpr u32 THREADS = 128;

template <int SLOTS, int COUNT_BITS, bool FIELD, bool PLAIN, int ROUNDS>
__global__ __launch_bounds__(THREADS, 4) void sweep_replica(uint4* state, u32 sites, const Batch* batches, u32 batch_index,
                                                        u32 sites_a_thread, Model model, Tables tables, u32 first_sample,
                                                        u32 first_block, u64 half_sweep, Key key) {
    using R = Rule<SLOTS, COUNT_BITS, FIELD, PLAIN, ROUNDS>;
    __shared__ TailEntries<R::BITS> entries[THREADS / 32];
    __shared__ uint4 rows[1 + (R::BITS == 2 ? PLANES << 2 : 0)];  // lanes in use, then rows of `planes`
    const Batch batch = batches[batch_index];
    const u32 block = blockIdx.y, sample = blockIdx.z;
    uint4* lattice = state + ((size_t)sample * gridDim.y + block) * sites;
    const size_t table = (size_t)block * 2 + batch.parity;
    const GlobalRows always = {tables.always + (table << R::BITS)};
    const uint4* planes = tables.planes + ((table * PLANES) << R::BITS);
    const u64* thresholds = tables.thresholds + ((table << R::BITS) << 7);
    const HalfSweep time = counter_half_sweep(half_sweep, STREAM_UPDATE);
    const u32 counter = counter_block(first_sample + sample, first_block + block);
    Tail<R::BITS> tail(entries[threadIdx.x / 32]);
    if (threadIdx.x == 0) rows[0] = tables.lanes[block];
    if constexpr (R::BITS == 2)
        for (u32 i = threadIdx.x; i < PLANES << 2; i += blockDim.x) rows[1 + i] = planes[i];
    __syncthreads();
    const SharedRows lanes = {(u32)__cvta_generic_to_shared(rows)};
    const u32 chunk = THREADS * sites_a_thread, last = batch.first + batch.size;
    const u32 first = batch.first + blockIdx.x * chunk, end = min(first + chunk, last);
    __shared__ uint4 kept[THREADS];
    const auto update = [&](const auto& rows_of_planes) {
        update_sites<R>({batch, model, sample, kept + threadIdx.x}, lattice, first + (threadIdx.x & ~31u), THREADS, end, always,
                        rows_of_planes, thresholds, lanes, counter, time, key, tail);
    };
    if constexpr (R::BITS == 2) {
        update(lanes.from(1));
    } else {
        update(GlobalRows{planes});
    }
}
