// Exchange of neighbouring temperatures within each copy of a sample: spinsim/engine/moves/exchange.py on the GPU.
// A round tries pairs (t, t + 1) of even t or of odd t; a round trip ends when a replica that has been at the hottest
// temperature and then at the coldest is at the hottest again.
#pragma once
#include "random/acceptance.cuh"

constexpr signed char FROM_HOT = HOST(engine.moves.exchange.FROM_HOT), FROM_COLD = HOST(engine.moves.exchange.FROM_COLD);

// Holds the arrays of Exchange in spinsim/engine/moves/exchange.py, and the replica at each temperature, so that nothing is
// ever searched for.
struct Exchange {
    int *place, *holder;      // [sample][replica], [sample][copy][temperature]
    u64 *attempts, *accepts;  // [sample][pair]
    u64* trips;               // [sample][replica]
    signed char* last_end;    // likewise
    const double* steps;      // [pair]
    size_t copies, temperatures;

    __device__ __forceinline__ Exchange of(u32 sample) const {
        const size_t replica = sample * copies * temperatures, pair = sample * (temperatures - 1);
        return {place + replica, holder + replica, attempts + pair, accepts + pair, trips + replica, last_end + replica,
                steps, copies, temperatures};
    }
};
CHECK_STRUCT(Exchange, engine.moves.exchange_cuda.EXCHANGE);

// Says whether a pair is exchanged; `gap` is the energy of the hotter replica less that of the colder. Single precision decides where that
// is sure, as the other threads of a sample wait.
template <int ROUNDS>
__device__ __forceinline__ bool is_exchanged(long long gap, double step, u32 pair, u32 block, HalfSweep time, const Key& key) {
    const uint4 random = philox<ROUNDS>(pair, block, time.word2, time.word3, key);
    if (gap <= 0) return true;
    const double cost = __dmul_rn(step, (double)gap);
    const Screen screen = screened((float)cost, random.x);
    if (!screen.undecided) return screen.accept;
    const Threshold t = exp_threshold(-cost);
    return t.always || ((u64)random.x << 32 | random.y) < t.value;
}

// Tries one pair of neighbouring temperatures. `energy(replica)` may leave out what all replicas have in common. Where several
// thread blocks follow one sample, one of them alone `counts` attempts, acceptances and round trips.
template <int ROUNDS, typename Energy>
__device__ __forceinline__ void exchange_pair(const Exchange& e, const Energy& energy, u32 copy, u32 t, u32 sample,
                                              HalfSweep time, const Key& key, bool counts = true) {
    int* const at = e.holder + copy * e.temperatures + t;
    const int cold = at[0], hot = at[1];
    if (counts && copy == 0) atomicAdd(e.attempts + t, (u64)e.copies);  // nothing waits for it
    const long long gap = energy(hot) - energy(cold);
    const u32 pair = copy * (e.temperatures - 1) + t;
    if (!is_exchanged<ROUNDS>(gap, e.steps[t], pair, counter_block(sample, 0), time, key)) return;
    if (counts) atomicAdd(e.accepts + t, 1ull);
    at[0] = hot, at[1] = cold;
    e.place[cold] = t + 1, e.place[hot] = t;
}

// Looks at the ends of one copy's ladder after a round.
__device__ __forceinline__ void follow_ends(const Exchange& e, u32 copy, bool counts = true) {
    int* const at = e.holder + copy * e.temperatures;
    const int cold = at[0], hot = at[e.temperatures - 1];
    if (cold != hot && e.last_end[cold] == FROM_HOT) e.last_end[cold] = FROM_COLD;  // one temperature has no ends
    if (counts && e.last_end[hot] == FROM_COLD) atomicAdd(e.trips + hot, 1ull);
    e.last_end[hot] = FROM_HOT;
}
