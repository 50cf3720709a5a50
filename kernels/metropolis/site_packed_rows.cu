// Site-packed Metropolis where rows begin anywhere in words: 128 sites of one colour a group and a thread; replicas and samples in y
// and z. Many half-sweeps a launch: blocks that share a lattice are resident and wait for each other after each.
// state[((sample * replicas + replica) * 2 + colour) * groups + g] is a uint4 of 128 lanes, those past the last site 0.
#include "metropolis/uniform.cuh"
#include "packing/any_rows.cuh"
#include "synchronisation/lattice_barrier.cuh"

template <int DIMENSION, bool SIGNED, bool FIELD, int KIND, int ROUNDS>
__global__ __launch_bounds__(THREADS, 4) void sweep_rows(uint4* state, AnyRows rows, Signs signs, UniformTables tables, u32 first_sample,
                                                      u32 first_replica, u64 half_sweep, u32 half_sweeps, LatticeBarrier barriers,
                                                      Key key) {
    using R = Rule<2 * DIMENSION, 3, FIELD, KIND, ROUNDS>;
    __shared__ TailEntries<R::BITS> entries[THREADS / 32];
    __shared__ uint4 kept[THREADS];
    __shared__ UniformRules<R> rules;
    const u32 replica = blockIdx.y, sample = blockIdx.z;
    const size_t part = (size_t)sample * gridDim.y + replica;
    const u32 block = counter_block(first_sample + sample, first_replica + replica);
    const size_t rules_of = tables.part(sample, replica);
    const UniformThresholds thresholds = {tables.thresholds + (rules_of << R::BITS)};
    rules.load(tables, rules_of, threadIdx.x, THREADS);
    Tail<R::BITS> tail(entries[threadIdx.x / 32]);
    __syncthreads();
    const LatticeBarrier barrier = barriers.of(part);
    uint4* const lattice = state + 2 * part * rows.groups;

    for (u32 done = 0; done < half_sweeps; ++done, ++half_sweep) {
        const u32 colour = half_sweep & 1;
        const HalfSweep time = counter_half_sweep(half_sweep, STREAM_UPDATE);
        uint4* const mine = lattice + colour * rows.groups;
        const uint4* const other = lattice + (1 - colour) * rows.groups;
        const uint4* const negative = signs.negative + sample * signs.stride + colour * R::SLOTS * rows.groups;
        const auto pop = [&] { tail.template pop<ROUNDS, false>((u32*)mine, thresholds, block, time, key); };
        for (u32 first = blockIdx.x * THREADS; first < rows.groups; first += gridDim.x * THREADS) {
            const u32 place = first + threadIdx.x, g = min(place, rows.groups - 1);
            const bool there = place < rows.groups;
            uint4 near[R::SLOTS];  // past the first-level cache, as other blocks have changed them
            neighbours<DIMENSION>(rows, colour, g, [other](u32 i) { return __ldcg(other + i); }, near);
            if constexpr (SIGNED) {
#pragma unroll
                for (int k = 0; k < R::SLOTS; ++k) near[k] = differing(near[k], __ldg(negative + (size_t)k * rows.groups + g));
            }
            uint4* const own = kept + threadIdx.x;
            const Chances<R> c = weigh_bonds<R>(near, __ldcg(mine + g), own, rules.always(), rows.used(g), there);
            leave_to_chance(c, own, mine + g, there, g, g, rules.planes(), Calls<ROUNDS>(g, block, time, key), tail, [] {});
            if (tail.full()) pop();
        }
        while (!tail.empty()) pop();
        if (done + 1 == half_sweeps) break;
        if (gridDim.x > 1)
            barrier.arrive(), barrier.wait(done + 1);
        else
            __syncthreads();
    }
}
