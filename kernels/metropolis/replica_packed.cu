// Replica-packed Metropolis from global memory: blocks of replicas and samples in y and z, many half-sweeps a launch. Thread
// blocks that share a lattice are resident and wait for each other after each half-sweep.
// state[(sample * blocks + block) * sites + place] is a uint4 of 128 lanes; places are in batch order.
#include "metropolis/replica_site.cuh"
#include "synchronisation/lattice_barrier.cuh"
#include "synchronisation/tickets.cuh"

constexpr u32 THREADS = HOST(engine.moves.metropolis.replica_packed.cuda_lattices.GLOBAL_THREADS);

// Updates batches of SLOTS slots; SLOTS = 0 takes all.
template <int SLOTS, int COUNT_BITS, bool FIELD, int KIND, int ROUNDS>
__global__ __launch_bounds__(THREADS, 4) void sweep_replica(uint4* state, u32 sites, const Batch* batches,
                                                            const int* colour_start, int colours, Model model, Tables tables,
                                                            u32 first_sample, u32 first_block, u64 half_sweep,
                                                            u32 half_sweeps, Tickets all_tickets, LatticeBarrier barriers,
                                                            Key key) {
    using R = Rule<SLOTS, COUNT_BITS, FIELD, KIND, ROUNDS>;
    constexpr u32 CLASSES = 1 << R::BITS, ROWS = PLANES * CLASSES;
    constexpr bool IN_SHARED = R::BITS <= 3;  // rows of planes are
    __shared__ TailEntries<R::BITS> entries[THREADS / 32];
    __shared__ uint4 rows[1 + (IN_SHARED ? 2 * ROWS : 0)];  // lanes in use, then rows of `planes` of both parities
    __shared__ uint4 kept[THREADS];
    const u32 block = blockIdx.y, sample = blockIdx.z;
    const size_t part = (size_t)sample * gridDim.y + block;
    uint4* const lattice = state + part * sites;
    const size_t rules = tables.part(sample, block);
    const uint4* const planes = tables.planes + rules * 2 * ROWS;
    const u32 counter = counter_block(first_sample + sample, first_block + block);
    Tail<R::BITS> tail(entries[threadIdx.x / 32]);
    if (threadIdx.x == 0) rows[0] = tables.lanes[block];
    if constexpr (IN_SHARED)
        for (u32 i = threadIdx.x; i < 2 * ROWS; i += THREADS) rows[1 + i] = planes[i];
    __syncthreads();
    const SharedRows lanes = {(u32)__cvta_generic_to_shared(rows)};
    const LatticeBarrier barrier = barriers.of(part);
    const u32 warp = blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
    Tickets tickets = all_tickets.of(part);
    u32 colour = half_sweep % colours;
    for (u32 done = 0; done < half_sweeps; ++done, ++half_sweep) {
        const auto wait = [&] {
            if (done > 0) barrier.wait(done);
        };
        if (SLOTS == 0) wait();
        const HalfSweep time = counter_half_sweep(half_sweep, STREAM_UPDATE);
        for (int b = colour_start[colour]; b < colour_start[colour + 1]; ++b) {
            const Batch batch = batches[b];
            if (SLOTS > 0 && batch.slots != SLOTS) continue;
            const size_t table = (rules * 2 + batch.parity) * CLASSES;
            const auto order = [&] {
                if constexpr (SLOTS > 0) {
                    return InTurn{tickets, batch.first};
                } else {  // where batches follow without a barrier, a warp ahead would draw tickets of the batch before
                    return Stride{gridDim.x * THREADS};
                }
            }();
            const auto update = [&](const auto& rows_of_planes) {
                update_sites<R, true>({batch, model, sample, kept + threadIdx.x}, lattice, batch.first + 32 * warp,
                                      batch.first + batch.size, order, GlobalRows{tables.always + table}, rows_of_planes,
                                      LaneThresholds{tables.thresholds + table * 128}, lanes, counter, time, key, tail, [&] {
                                          if (SLOTS > 0) wait();  // only now, as batch and record come from far
                                      });
            };
            if constexpr (IN_SHARED) {
                update(lanes.from(1 + batch.parity * ROWS));
            } else {
                update(GlobalRows{planes + batch.parity * ROWS});
            }
            tickets.pass((batch.size + 31) / 32);
        }
        if (done + 1 < half_sweeps) barrier.arrive();
        colour = colour + 1 < colours ? colour + 1 : 0;
    }
}
