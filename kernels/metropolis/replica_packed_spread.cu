// Replica-packed Metropolis of few lattices, each spread over the GPU, many sweeps a launch: blocks of replicas and samples in y and z.
#include "metropolis/spread_lattice.cuh"

template <int SLOTS, int COUNT_BITS, bool FIELD, int KIND, int ROUNDS>
__global__ __launch_bounds__(SPREAD_THREADS, SPREAD_BLOCKS) void sweep_spread_replica(uint4* state, u64* dated, u32 sites, const Batch* batches,
                                                                            Model model, Tables tables, u32 first_sample,
                                                                            u32 first_block, u64 half_sweep, u32 sweeps, u32 date,
                                                                            Key key) {
    using R = Rule<SLOTS, COUNT_BITS, FIELD, KIND, ROUNDS>;
    __shared__ SharedTables<R> in_shared;
    const u32 block = blockIdx.y, sample = blockIdx.z;
    const size_t part = (size_t)sample * gridDim.y + block, rules = tables.part(sample, block);
    in_shared.load(tables, rules);
    __syncthreads();
    SpreadLattice<R> lattice(state + part * sites, dated + 4 * part * sites, batches, model, tables.lanes[block], sample,
                             counter_block(first_sample + sample, first_block + block), date);
    const LaneThresholds thresholds = {tables.thresholds + ((rules * 2 + SharedTables<R>::PARITY) << R::BITS << 7)};
    u32 wanted[SLOTS];
    lattice.sweep(sweeps, lattice.template draw<0>(half_sweep, key), in_shared, thresholds, half_sweep, date, key, wanted);
    lattice.store(state + part * sites);
}
