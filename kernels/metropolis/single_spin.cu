// Single-spin flips one after the other, as in spinsim/engine/moves/single_spin.py: a thread for each replica.
//
//   state[sample][block of 128 replicas][place][word]    bit b of word w: replica 32 w + b of the block, 1 for s = +1
//   near[start[i]] ... near[start[i + 1] - 1]            places of the neighbours of site i
//
// Threads of a warp have the 32 replicas of a word. In a fixed order they are at the same site at the same time; where sites are
// drawn, each is at its own. A thread changes its own bit alone, atomically, and reads past the first cache, which is not kept equal.
#include "random/acceptance.cuh"

// The graph and the order of sites; `order` is unused where sites are drawn.
struct Visits {
    const u32 *order, *place, *near;
    const long long* start;
    u32 sites, drawn, heat_bath;
};
CHECK_STRUCT(Visits, engine.moves.single_spin_cuda.VISITS);

__device__ __forceinline__ double acceptance_of(long long half_cost, double double_beta, double zero_acceptance, bool heat_bath) {
    const double cost = __dmul_rn((double)half_cost, double_beta), rare = exp_of(cost > 0 ? -cost : cost);
    if (heat_bath) return __ddiv_rn(cost > 0 ? rare : 1.0, __dadd_rn(1.0, rare));
    return half_cost == 0 ? zero_acceptance : half_cost > 0 ? rare : 1.0;
}

// Does a sweep: a thread block for each block of replicas (grid x) of each sample (grid y).
template <typename Integer, int ROUNDS>
__global__ void sweep_single_spins(
    u32* state, const __grid_constant__ Visits visits, const Integer* couplings, const Integer* fields, size_t coupling_stride,
    size_t field_stride, u32 replicas, double double_beta, double zero_acceptance, u32 first_sample, u64 sweep,
    const __grid_constant__ Key key) {
    const u32 block = blockIdx.x, lane = threadIdx.x, sample = blockIdx.y, sites = visits.sites;
    if (128 * block + lane >= replicas) return;
    u32* const words = state + ((size_t)sample * gridDim.x + block) * sites * 4 + lane / 32;
    const u32 bit = lane % 32, word1 = counter_block(first_sample + sample, block);
    const HalfSweep when = counter_half_sweep(sweep, HOST(rng.Stream.SINGLE_SPIN));
    const auto spin = [&](u32 place) { return (__ldcg(words + (size_t)place * 4) >> bit & 1) != 0; };
    couplings += sample * coupling_stride, fields += sample * field_stride;
    for (u32 attempt = 0; attempt < sites; ++attempt) {
        const uint4 x = philox<ROUNDS>(attempt, word1, when.word2, when.word3 + lane, key);
        const u32 drawn = (u32)(((u64)x.w * sites + ((u64)x.z * sites >> 32)) >> 32);
        const u32 site = visits.drawn ? drawn : visits.order[attempt], place = visits.place[site];
        long long local = fields[site];
        for (long long k = visits.start[site]; k < visits.start[site + 1]; ++k)
            local += spin(visits.near[k]) ? (long long)couplings[k] : -(long long)couplings[k];
        const double p = acceptance_of(spin(place) ? local : -local, double_beta, zero_acceptance, visits.heat_bath != 0);
        const Threshold threshold = threshold_of(p);
        if (threshold.always || ((u64)x.y << 32 | x.x) < threshold.value) atomicXor(words + (size_t)place * 4, 1u << bit);
    }
}
