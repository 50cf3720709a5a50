// The lowest energy that each replica has had at a measurement, and the state of each sample when its lowest was met.
//
//   read:  numbers  of `count` measurements, `size` words apart: at words `energy` and `holder` the energy and the replica of
//                   [sample][copy][place]
//          state    [measurement][sample][word]: spins of all replicas as the engine holds them
//   kept:  energy [sample][replica], replica [sample], changed [sample], states [sample][word]
//          before [sample] -> after [sample]: the lowest energy so far; two arrays take turns, so that no thread block of a
//          sample reads what another one has written
//
//   thread blocks in y: each sample, in x: shares of its words; all find the lowest energy, the first one writes it
#include "bits/types.cuh"

constexpr u32 THREADS = HOST(engine.measuring.cuda_reduction.THREADS), WARPS = THREADS / 32;
static_assert(WARPS <= 32, "a warp has an entry of each");

struct Lowest {
    double* energy;
    int* replica;
    u32 *changed, *states;
    size_t samples, replicas, words;
};
CHECK_STRUCT(Lowest, engine.measuring.cuda_reduction.LOWEST);

// An energy and its turn, which counts measurements and within each of them replicas; among equals the first turn counts.
struct Candidate {
    double energy;
    u32 order;

    __device__ __forceinline__ void meet(double other, u32 other_order) {
        if (other < energy || (other == energy && other_order < order)) energy = other, order = other_order;
    }

    // All lanes of a warp get the first of them.
    __device__ __forceinline__ void meet_lanes() {
#pragma unroll
        for (u32 mask = 16; mask; mask /= 2) {
            const double other = __shfl_xor_sync(~0u, energy, mask);
            const u32 other_order = __shfl_xor_sync(~0u, order, mask);
            meet(other, other_order);
        }
    }
};

__global__ __launch_bounds__(THREADS) void keep_lowest(const u64* numbers, size_t size, u32 count, u64 energy, u64 holder,
                                                       const u32* state, Lowest to, const double* before, double* after) {
    __shared__ double energies[WARPS];
    __shared__ u32 turns[WARPS];
    const size_t sample = blockIdx.y, first = sample * to.replicas;
    const bool writes = !blockIdx.x;
    const Candidate none = {__longlong_as_double(0x7ff0000000000000ll), ~0u};  // infinity
    Candidate lowest = none;
    for (u32 k = 0; k < count; ++k) {
        const double* const energy_of = (const double*)(numbers + k * size + energy) + first;
        const int* const replica_of = (const int*)(numbers + k * size + holder) + first;
        for (size_t i = threadIdx.x; i < to.replicas; i += THREADS) {
            const u32 replica = replica_of[i];
            const double e = energy_of[i];
            lowest.meet(e, k * (u32)to.replicas + replica);
            if (writes && e < to.energy[first + replica]) to.energy[first + replica] = e;
        }
        if (writes) __syncthreads();  // replicas are other threads' at the next measurement
    }
    lowest.meet_lanes();
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (!lane) energies[warp] = lowest.energy, turns[warp] = lowest.order;
    __syncthreads();
    lowest = none;
    if (lane < WARPS) lowest = {energies[lane], turns[lane]};
    lowest.meet_lanes();
    const double so_far = before[sample];
    const bool is_lower = lowest.energy < so_far;
    if (writes && !threadIdx.x) {
        after[sample] = is_lower ? lowest.energy : so_far;
        if (is_lower) to.replica[sample] = lowest.order % (u32)to.replicas, to.changed[sample] = 1;
    }
    if (!is_lower) return;
    const u32* const from = state + (lowest.order / (u32)to.replicas * to.samples + sample) * to.words;
    u32* const into = to.states + sample * to.words;
    for (size_t i = blockIdx.x * (size_t)THREADS + threadIdx.x; i < to.words; i += (size_t)gridDim.x * THREADS) into[i] = from[i];
}
