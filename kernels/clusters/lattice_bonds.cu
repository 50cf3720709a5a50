// Open bonds of site-packed lattices: the first step of Fortuin-Kasteleyn moves. A thread has a slot of a group of 128 sites of
// colour 0, or in a field those of a group to the ghost.
#include "clusters/lattice.cuh"

constexpr u32 THREADS = HOST(engine.moves.fortuin_kasteleyn.lattice_cuda.THREADS);
constexpr u32 BITS = HOST(engine.moves.fortuin_kasteleyn.lattice.BITS);

// A bond is closed where a uniform is below the threshold; none is open if `always`.
struct Chance { u64 threshold, always; };

// Returns the bonds of a group of this number that are open, of those that are satisfied: the uniforms' bits are compared from the
// most significant one on until none is undecided, or all further bits of the threshold are 0.
__device__ __forceinline__ uint4 opened_of(uint4 satisfied, const Chance& chance, u32 number, u32 block, const HalfSweep& when,
                                           const Key& key) {
    if (chance.always) return make_uint4(0, 0, 0, 0);
    const Prefix prefix = philox_prefix(number, block, when.word2, key);
    uint4 left = satisfied;
    u64 threshold = chance.threshold;
    for (u32 plane = 0; threshold && (left.x | left.y | left.z | left.w); ++plane, threshold <<= 1) {
        const uint4 x = philox_finish<MOST_ROUNDS>(prefix, when.word3 | plane, key);
        const u32 bit = threshold >> (BITS - 1) ? ~0u : 0;
        const auto decide = [bit](u32 drawn, u32& undecided, u32& open) {
            open &= ~(undecided & ~drawn & bit);
            undecided &= ~(drawn ^ bit);
        };
        decide(x.x, left.x, satisfied.x), decide(x.y, left.y, satisfied.y);
        decide(x.z, left.z, satisfied.z), decide(x.w, left.w, satisfied.w);
    }
    return satisfied;
}

// Fills `opened` and, where `field` is not 0 but +1 or -1, `ghosts`: blocks (part of the groups, lattice, slot). chances[temperature] are those of couplings and of fields;
// holder[sample][copy][temperature] is a replica.
template <int DIMENSION, typename Geometry>
__global__ __launch_bounds__(THREADS) void open_bonds(
    const uint4* state, Geometry geometry, u32 layer, Signs signs, u32 is_signed, Lattices all, const u64* chances, const int* holder,
    u32 temperatures, int field, u64 time, Key key) {
    constexpr u32 SLOTS = 2 * DIMENSION;
    const u32 slot = blockIdx.z;
    __shared__ u32 temperature;
    const u32 sample = all.lattice() / all.replicas, replica = all.lattice() % all.replicas;
    for (u32 i = threadIdx.x; i < all.replicas; i += THREADS)
        if (holder[(size_t)sample * all.replicas + i] == (int)replica) temperature = i % temperatures;
    __syncthreads();
    const u32 g = blockIdx.x * THREADS + threadIdx.x, groups = all.groups;
    if (g >= groups) return;
    const uint4* const mine = state + (size_t)all.lattice() * 2 * groups;
    const uint4* const theirs = mine + groups;
    const uint4* const negative = signs.negative + sample * signs.stride;
    const u32 last = groups - layer;
    const auto other = [&](u32 i) { return theirs[i]; };
    uint4 near[SLOTS];
    neighbours<DIMENSION>(geometry, g, other, [&](u32 i) { return theirs[last + i]; }, other, near);
    const u64* const own = chances + 4 * (size_t)temperature;
    const HalfSweep when = counter_half_sweep(time, STREAM_CLUSTERS);
    const uint4 spins = mine[g];
    uint4 satisfied;
#pragma unroll
    for (u32 k = 0; k < SLOTS; ++k) {
        if (k != slot) continue;
        satisfied = differing(differing(spins, near[k]), ~0u);
        if (is_signed) satisfied = differing(satisfied, negative[(size_t)k * groups + g]);
    }
    if (slot >= SLOTS) satisfied = differing(slot > SLOTS ? theirs[g] : spins, field > 0 ? 0 : ~0u);
    const Chance chance = slot < SLOTS ? Chance{own[0], own[1]} : Chance{own[2], own[3]};
    uint4* const to = slot < SLOTS ? all.opened + ((size_t)blockIdx.y * SLOTS + slot) * groups
                                   : all.ghosts + ((size_t)blockIdx.y * 2 + slot - SLOTS) * groups;
    to[g] = opened_of(both(satisfied, used_lanes(geometry, g)), chance, slot * groups + g, all.block(), when, key);
}
