// The lowest energy that each replica has had at a measurement, and the state of each sample when its lowest was met.
//
//   read:  energy [sample][copy][place], holder [sample][copy][place], which replica has it: of the measurement
//          state  [sample][word]: spins of all replicas as the engine holds them
//   kept:  energy [sample][replica], replica [sample], changed [sample], states [sample][word]
//          before [sample] -> after [sample]: the lowest energy so far; two arrays take turns, so that no thread block of a
//          sample reads what another one has written
//
//   thread blocks in y: each sample, in x: shares of its words; all find the lowest energy, the first one writes it
#include "bits/types.cuh"

constexpr u32 THREADS = HOST(engine.measuring.cuda_lowest.THREADS), WARPS = THREADS / 32;
static_assert(WARPS <= 32, "a warp has an entry of each");

struct Lowest {
    double* energy;
    int* replica;
    u32 *changed, *states;
    size_t replicas, words;
};
CHECK_STRUCT(Lowest, engine.measuring.cuda_lowest.LOWEST);

// The energy of a replica; the lower one goes first, among equals the replica of the lower number.
struct Candidate {
    double energy;
    int replica;

    __device__ __forceinline__ void meet(double other, int its_replica) {
        if (other < energy || (other == energy && its_replica < replica)) energy = other, replica = its_replica;
    }

    // All lanes of a warp get the first of them.
    __device__ __forceinline__ void meet_lanes() {
#pragma unroll
        for (u32 mask = 16; mask; mask /= 2) {
            const double other = __shfl_xor_sync(~0u, energy, mask);
            const int its_replica = __shfl_xor_sync(~0u, replica, mask);
            meet(other, its_replica);
        }
    }
};

__global__ __launch_bounds__(THREADS) void keep_lowest(const double* energy, const int* holder, const u32* state, Lowest to,
                                                       const double* before, double* after) {
    __shared__ double energies[WARPS];
    __shared__ int replicas[WARPS];
    const size_t sample = blockIdx.y, first = sample * to.replicas;
    const bool writes = !blockIdx.x;
    const Candidate none = {__longlong_as_double(0x7ff0000000000000ll), 0x7fffffff};  // infinity
    Candidate lowest = none;
    for (size_t i = threadIdx.x; i < to.replicas; i += THREADS) {
        const int replica = holder[first + i];
        const double e = energy[first + i];
        lowest.meet(e, replica);
        if (writes && e < to.energy[first + replica]) to.energy[first + replica] = e;
    }
    lowest.meet_lanes();
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (!lane) energies[warp] = lowest.energy, replicas[warp] = lowest.replica;
    __syncthreads();
    lowest = none;
    if (lane < WARPS) lowest = {energies[lane], replicas[lane]};
    lowest.meet_lanes();
    const double so_far = before[sample];
    const bool is_lower = lowest.energy < so_far;
    if (writes && !threadIdx.x) {
        after[sample] = is_lower ? lowest.energy : so_far;
        if (is_lower) to.replica[sample] = lowest.replica, to.changed[sample] = 1;
    }
    if (!is_lower) return;
    const u32* const from = state + sample * to.words;
    u32* const into = to.states + sample * to.words;
    for (size_t i = blockIdx.x * (size_t)THREADS + threadIdx.x; i < to.words; i += (size_t)gridDim.x * THREADS) into[i] = from[i];
}
