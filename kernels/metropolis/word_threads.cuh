// Updates by a thread for each word of 32 lanes: four threads of a warp have a group of 128. A thread's chain of instructions is what few
// lattices wait for. Threads of a warp never part, as shuffles are slow where they may; words are chosen by masks.
#pragma once
#include "metropolis/group.cuh"

static_assert(OWN_PLANES == 5 && COLUMN_PLANES == 4, "two calls a thread are six of a group, of which two are made twice");

// Gives thread w of four the word w of each thread's four. Words are chosen by masks, as the compiler makes branches of conditions.
__device__ __forceinline__ void transpose_in_four(u32 (&a)[4], u32 w) {
#pragma unroll
    for (u32 by = 1; by < 4; by *= 2) {
        const u32 upper = w & by ? ~0u : 0;
#pragma unroll
        for (u32 k = 0; k < 4; ++k) {
            if (k & by) continue;
            const u32 given = __shfl_xor_sync(~0u, mux(upper, a[k | by], a[k]), by);
            a[k | by] = mux(upper, given, a[k | by]);
            a[k] = mux(upper, a[k], given);
        }
    }
}

__device__ __forceinline__ u32 any_of_four(u32 value) {
    value |= __shfl_xor_sync(~0u, value, 1);
    return value | __shfl_xor_sync(~0u, value, 2);
}

// Reads words in global memory: lanes in the lower half, a date in the upper one, which each half-sweep raises by one; both come with
// one load.
struct DatedWords {
    using Word = u64;
    static constexpr bool WAITS = true;
    const u64* words;
    u32 date;

    __device__ __forceinline__ u64 operator()(u32 k) const {
        u64 now;
        asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(now) : "l"(words + k));
        return now;
    }
    // Returns the half-sweeps that a word has done since `date`, less than 0 if it is not up to date.
    __device__ __forceinline__ int ahead(u64 word) const { return (int)((u32)(word >> 32) - date); }
    __device__ __forceinline__ static void write(u64* place, u32 word, u32 date) {
        asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(place), "l"((u64)date << 32 | word) : "memory");
    }
};

// Draws the random words of word w of a group. All threads of a warp must do so.
struct WordRandom {
    u32 plane[OWN_PLANES], column[COLUMN_PLANES];

    template <int ROUNDS>
    __device__ __forceinline__ static WordRandom draw(u32 g, u32 w, u32 block, const HalfSweep& time, const Key& key) {
        const Prefix prefix = philox_prefix(g, block, time.word2, key);
        const u32 odd = w & 1 ? ~0u : 0;
        const uint4 one = philox_finish<ROUNDS>(prefix, time.word3 + w, key);
        const uint4 two = philox_finish<ROUNDS>(prefix, time.word3 + (odd ? OWN_PLANES : 4), key);
        u32 turned[4] = {one.x, one.y, one.z, one.w};
        transpose_in_four(turned, w);
        WordRandom random;
        u32 fifth[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const u32 mine = word_of(two, k), given = __shfl_xor_sync(~0u, mine, 1);
            random.plane[k] = turned[k], random.column[k] = mux(odd, given, mine), fifth[k] = mux(odd, mine, given);
        }
        random.plane[4] = mux(w & 2 ? ~0u : 0, mux(odd, fifth[0], fifth[1]), mux(odd, fifth[2], fifth[3]));
        return random;
    }
};

template <typename R>
using WordClasses = Classes<R::PLAIN ? R::SLOTS : 0, R::BITS, 1>;

// Holds the lanes of a word that chance decides, and their classes.
template <typename R>
struct WordChances {
    WordClasses<R> classes;
    u32 certain, open;

    template <typename Always>
    __device__ __forceinline__ WordChances(const u32 (&near)[R::SLOTS], u32 spin, u32 used, const Always& always) {
        if constexpr (R::PLAIN) {
            classify<R::SLOTS>(near, spin, classes.bit[0][0], classes.bit[1][0], certain);
        } else {
            u32 count[3], without_chance[1];
            count_unsatisfied_bonds<R::SLOTS>(near, spin, count);
#pragma unroll
            for (int b = 0; b < R::BITS; ++b) classes.bit[b][0] = b < R::LOW_BITS ? count[b < R::LOW_BITS ? b : 0] : spin;
            classes.pick(always, without_chance);
            certain = without_chance[0] | (R::GAINS ? count[2] : 0);
        }
        certain &= used, open = used & ~certain;
    }
};

// Decides the `open` lanes of word w of a group and returns those that flip. `rows` says what thresholds lanes have: own(plane), and
// column(j) of the lanes that have the columns' bits, after fold(). All threads of a warp must call it.
template <typename R, typename Rows, typename Thresholds>
__device__ __forceinline__ u32 decide_word(const WordClasses<R>& classes, u32 open, u32 w, const WordRandom& random, Rows& rows,
                                           const Thresholds& thresholds, u32 group, u32 block, const HalfSweep& time, const Key& key) {
    u32 accepted = 0, undecided = open;
#pragma unroll
    for (int plane = OWN_PLANES - 1; plane >= 0; --plane) compare(rows.own(plane), random.plane[plane], accepted, undecided);
    // The lowest undecided lane of each column takes its next bits from one call that serves all columns.
    const u32 beside = __shfl_xor_sync(~0u, undecided, 1), away = __shfl_xor_sync(~0u, undecided, 2) | __shfl_xor_sync(~0u, undecided, 3);
    const u32 occupant = undecided & ~(beside & (w & 1 ? ~0u : 0)) & ~(away & (w & 2 ? ~0u : 0));
    u32 left = undecided | beside | away, taken = 0;
    rows.fold(occupant, left);
#pragma unroll
    for (int j = COLUMN_PLANES - 1; j >= 0; --j) compare(rows.column(j), random.column[j], taken, left);
    u32 found = (accepted & open) | (occupant & taken);
    const u32 deep = occupant & left;
    for (u32 rest = (undecided & ~occupant) | deep; __any_sync(~0u, rest); rest &= rest - 1) {  // each with a call of its own
        const u32 mask = rest & (0 - rest), bit = 31 & (__ffs(rest) - 1), lane = 32 * w + bit;  // without one the mask is 0
        u32 index = 0;
#pragma unroll
        for (int b = 0; b < R::BITS; ++b) index |= (classes.bit[b][0] >> bit & 1) << b;
        const uint4 call = philox<R::ROUNDS>(group, block, time.word2, time.word3 + TAIL_PLANE + lane, key);
        const u64 limit = thresholds.of(index, lane) << (deep & mask ? PLANES : OWN_PLANES);
        found = ((u64)call.x << 32 | call.y) < limit ? found | mask : found & ~mask;
    }
    return found;
}
