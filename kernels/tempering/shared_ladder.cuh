// A sample's ladder in shared memory during many rounds: where replicas are, and what its exchanges and tables need.
#pragma once
#include "metropolis/replica_site.cuh"
#include "tempering/exchange.cuh"
#include "tempering/ladder.cuh"

// Finds thresholds of the temperatures at which lanes are.
struct LadderThresholds {
    const u64* limits;  // [class][temperature]
    const int* place;
    u32 temperatures;
    __device__ __forceinline__ u64 of(u32 cls, u32 lane) const { return __ldg(limits + cls * temperatures + place[lane]); }
};

// Lies in shared memory, one for a sample.
template <typename R>
struct SharedLadder {
    static constexpr u32 CLASSES = 1 << R::BITS, PARITY = R::SLOTS == 7 ? 1 : 0, PARITIES = R::SLOTS > 0 ? 1 : 2;  // of degrees
    static constexpr u32 ROWS = PARITIES * CLASSES - (R::PLAIN && R::SLOTS != 7);  // flips that cost nothing need none
    static constexpr bool NEAR = ROWS <= 8;                                        // rules are few

    double steps[128];
    int place[128], holder[128];
    u32 pairs[64];                  // tried in even rounds: the copy and, in the lower half, the colder temperature
    u32 up[128];  // spins +1 of each lane, those of the first sublattice again in the upper half; in a field or where it is noted
    u32 unsatisfied[128];                         // bonds of each lane
    unsigned short rules[NEAR ? ROWS * 128 : 1];  // of each row and temperature: the planes' bits, the highest first; certain
    signed char last_end[128];

    __device__ __forceinline__ u32 all_up(u32 lane) const { return up[lane] & 0xffff; }

    // Takes the sample's arrays, `own`. A barrier must follow.
    __device__ __forceinline__ void load(const Exchange& own, const Ladder& ladder, u32 none) {
        const u32 temperatures = own.temperatures, half = temperatures / 2;
        for (u32 r = threadIdx.x; r < 128; r += blockDim.x) {
            const bool used = r < own.copies * temperatures;
            place[r] = used ? own.place[r] : 0;
            holder[r] = used ? own.holder[r] : 0;
            last_end[r] = used ? own.last_end[r] : 0;
            up[r] = 0, unsatisfied[r] = none;
        }
        for (u32 t = threadIdx.x; t + 1 < temperatures; t += blockDim.x) steps[t] = own.steps[t];
        for (u32 i = threadIdx.x; i < own.copies * half; i += blockDim.x) pairs[i] = i / half << 16 | 2 * (i % half);
        if constexpr (NEAR)
            for (u32 i = threadIdx.x; i < ROWS * temperatures; i += blockDim.x)
                rules[i] = far_rule(ladder, PARITY * CLASSES * temperatures + i);
    }
    __device__ __forceinline__ void store(const Exchange& own) const {
        for (u32 r = threadIdx.x; r < own.copies * own.temperatures; r += blockDim.x)
            own.place[r] = place[r], own.holder[r] = holder[r], own.last_end[r] = last_end[r];
    }

    // Makes an entry of `rules` from the ladder in global memory.
    static __device__ __forceinline__ u32 far_rule(const Ladder& ladder, size_t i) {
        return __ldg(ladder.limits + i) >> (64 - PLANES) << 1 | ladder.certain[i];
    }
    __device__ __forceinline__ u32 rule(const Ladder& ladder, u32 row, u32 lane) const {
        const u32 i = row * ladder.temperatures + place[lane];
        if constexpr (NEAR) return rules[i];
        return far_rule(ladder, PARITY * CLASSES * ladder.temperatures + i);
    }
    // Lays the rows that the sites' degrees call for, behind those that `always_rows` and `plane_rows` point to.
    __device__ __forceinline__ void lay(uint4* always_rows, uint4* plane_rows, const Ladder& ladder) const {
        const u32 thread = threadIdx.x & 31;
        for (u32 first = 0; first < ROWS * 4; first += blockDim.x / 32) {  // in step, as votes are slow where threads may part
            const u32 task = min(first + threadIdx.x / 32, ROWS * 4 - 1);  // the last one again where there are more warps
            const u32 row = task / 4, word = task % 4, parity = PARITY + row / CLASSES, cls = row % CLASSES;
            const u32 own = rule(ladder, row, 32 * word + thread), mine = plane_word(own << (31 - PLANES));
            if (thread < PLANES) ((u32*)(plane_rows + (parity * PLANES + thread) * CLASSES + cls))[word] = mine;
            if constexpr (!R::PLAIN) {
                const u32 certain = __ballot_sync(~0u, own & 1);
                if (thread == 0) ((u32*)(always_rows + parity * CLASSES + cls))[word] = certain;
            }
        }
    }
    __device__ __forceinline__ LadderThresholds thresholds(const Ladder& ladder, u32 parity) const {
        return {ladder.limits + parity * CLASSES * ladder.temperatures, place, (u32)ladder.temperatures};
    }

    // Returns the sample's arrays, those that are held here in place of its own.
    __device__ __forceinline__ Exchange near(const Exchange& own) {
        return {place, holder, own.attempts, own.accepts, own.trips, last_end, steps, own.copies, own.temperatures};
    }

    // Does one round of exchanges, by a whole block; `per_up` and `per_unsatisfied` are weights in an energy, `counts` is as
    // in exchange_pair().
    __device__ __forceinline__ void exchange(const Exchange& own, long long per_up, long long per_unsatisfied, u64 round,
                                             u32 sample, const Key& key, bool counts = true) {
        const u32 copies = own.copies, temperatures = own.temperatures, tried = copies * (temperatures / 2);  // at most
        const Exchange nearby = near(own);
        const auto energy = [&](int r) { return per_up * all_up(r) + per_unsatisfied * unsatisfied[r]; };
        const HalfSweep time = counter_half_sweep(round, STREAM_SWAP);
        for (u32 i = threadIdx.x; i < tried; i += blockDim.x) {
            const u32 pair = pairs[i], t = (pair & 0xffff) + (round & 1);
            if (t + 1 < temperatures) exchange_pair<R::ROUNDS>(nearby, energy, pair >> 16, t, sample, time, key, counts);
        }
        __syncthreads();
        const u32 from_last = blockDim.x - 1 - threadIdx.x;  // the first warps have tables to lay
        for (u32 copy = from_last; copy < copies; copy += blockDim.x) follow_ends(nearby, copy, counts);
    }
};
