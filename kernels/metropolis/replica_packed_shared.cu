// Replica-packed Metropolis with the lattice of one (sample, block) in shared memory for many sweeps a launch.
#include "metropolis/shared_lattice.cuh"

template <int SLOTS, int COUNT_BITS, bool FIELD, int KIND, int ROUNDS>
__global__ __launch_bounds__(MOST_SHARED_THREADS, 1) void sweep_shared(uint4* state, u32 sites, const Batch* batches,
                                                       const int* colour_start, int colours, Model model, Tables tables,
                                                       u32 first_sample, u32 first_block, u64 half_sweep, u32 sweeps,
                                                       Key key) {
    using R = Rule<SLOTS, COUNT_BITS, FIELD, KIND, ROUNDS>;
    using Lattice = SharedLattice<R>;
    extern __shared__ uint4 shared[];
    Lattice lattice(shared, sites);
    const u32 block = blockIdx.y, sample = blockIdx.z;
    uint4* const home = state + ((size_t)sample * gridDim.y + block) * sites;
    const size_t rules = tables.part(sample, block);
    lattice.load(home, tables.lanes[block]);
    for (u32 i = threadIdx.x; i < Lattice::ALWAYS_ROWS; i += blockDim.x)
        lattice.always_rows()[i] = tables.always[rules * Lattice::ALWAYS_ROWS + i];
    for (u32 i = threadIdx.x; i < Lattice::PLANE_ROWS; i += blockDim.x)
        lattice.plane_rows()[i] = tables.planes[rules * Lattice::PLANE_ROWS + i];
    wait_for_copies();
    const auto thresholds = [&](u32 parity) {
        return LaneThresholds{tables.thresholds + ((rules * 2 + parity) << R::BITS << 7)};
    };
    lattice.sweep(sweeps, half_sweep, batches, colour_start, colours, model, thresholds, sample,
                  counter_block(first_sample + sample, first_block + block), key);
    lattice.store(home);
}
