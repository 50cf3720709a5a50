// Tempering between sweeps where an energy has two terms: exchanges of all samples from sums that counting kernels have left.
#include "tempering/exchange.cuh"

// Energies of replicas, up to constants, are per_up * up + per_first * first and per_second * second; sums are cleared once
// they are read.
struct TermSums {
    u64 *up, *first, *second;  // [sample][stride]
    long long per_up, per_first, per_second;
    size_t stride;
};
CHECK_STRUCT(TermSums, engine.moves.exchange_cuda.TERM_SUMS);

constexpr int THREADS = HOST(engine.moves.exchange_cuda.THREADS);

// Tries pairs of every copy as exchange_pair does, a block a sample; Exchange::steps are [pair][term].
template <int ROUNDS>
__global__ __launch_bounds__(THREADS) void exchange_terms(Exchange exchange, TermSums sums, u32 first_sample, u64 round, Key key) {
    const u32 sample = blockIdx.x;
    u64 *const up = sums.up + sample * sums.stride, *const ones = sums.first + sample * sums.stride;
    u64* const others = sums.second + sample * sums.stride;
    const Exchange mine = exchange.of(sample);
    const u32 first = round % 2, tried = (exchange.temperatures - first) / 2;  // of each copy
    const HalfSweep time = counter_half_sweep(round, STREAM_SWAP);
    const auto one = [&](int r) { return sums.per_up * (long long)up[r] + sums.per_first * (long long)ones[r]; };
    const auto other = [&](int r) { return sums.per_second * (long long)others[r]; };
    for (u32 i = threadIdx.x; i < exchange.copies * tried; i += blockDim.x) {
        const u32 copy = i / tried, t = first + 2 * (i % tried), pair = copy * (exchange.temperatures - 1) + t;
        int* const at = mine.holder + copy * exchange.temperatures + t;
        const int cold = at[0], hot = at[1];
        if (copy == 0) atomicAdd(mine.attempts + t, (u64)exchange.copies);
        const double cost = __dadd_rn(__dmul_rn(mine.steps[2 * t], (double)(one(hot) - one(cold))),
                                      __dmul_rn(mine.steps[2 * t + 1], (double)(other(hot) - other(cold))));
        if (cost > 0) {
            const Threshold limit = exp_threshold(-cost);
            const uint4 random = philox<ROUNDS>(pair, counter_block(first_sample + sample, 0), time.word2, time.word3, key);
            if (!limit.always && ((u64)random.x << 32 | random.y) >= limit.value) continue;
        }
        atomicAdd(mine.accepts + t, 1ull);
        at[0] = hot, at[1] = cold;
        mine.place[cold] = t + 1, mine.place[hot] = t;
    }
    __syncthreads();
    for (u32 copy = threadIdx.x; copy < exchange.copies; copy += blockDim.x) follow_ends(mine, copy);
    for (u32 i = threadIdx.x; i < sums.stride; i += blockDim.x) up[i] = ones[i] = others[i] = 0;
}
