// The lazy bit-plane comparison: "uniform < threshold" for 128 lanes at once, exact to 64 bits.
#pragma once
#include "philox.cuh"

constexpr int FIXED_PLANES = 8;  // as in engine/tables.py
constexpr u32 TAIL_PLANE = 128;

__device__ __forceinline__ u32 mux(u32 bit, u32 zero, u32 one) { return (bit & one) | (~bit & zero); }

__device__ __forceinline__ u32 word_of(const uint4& v, int w) { return w == 0 ? v.x : w == 1 ? v.y : w == 2 ? v.z : v.w; }

// Picks, lane by lane, one of 2^BITS rows by the lane's class, given as BITS bit planes.
template <int BITS>
struct Select {
    static __device__ __forceinline__ u32 pick(const u32 (&cls)[BITS][4], const uint4* rows, int w) {
        u32 level[1 << BITS];
#pragma unroll
        for (int c = 0; c < 1 << BITS; ++c) level[c] = word_of(rows[c], w);
#pragma unroll
        for (int b = 0; b < BITS; ++b)
#pragma unroll
            for (int c = 0; c < (1 << BITS) >> (b + 1); ++c) level[c] = mux(cls[b][w], level[2 * c], level[2 * c + 1]);
        return level[0];
    }
};

// Lanes of `undecided` that accept. `planes[plane << BITS | class]` are threshold bits, most significant plane first;
// `thresholds[class << 7 | lane]` what is left of the thresholds after FIXED_PLANES bits.
template <int BITS, int ROUNDS>
__device__ __forceinline__ void accept_lanes(const u32 (&cls)[BITS][4], u32 (&undecided)[4], u32 (&accepted)[4],
                                             const uint4* planes, const u64* thresholds, u32 group, u32 block,
                                             HalfSweep time, Key key) {
    const Prefix prefix = philox_prefix(group, block, time.word2, key);
#pragma unroll
    for (int w = 0; w < 4; ++w) accepted[w] = 0;
#pragma unroll
    for (int plane = FIXED_PLANES - 1; plane >= 0; --plane) {
        const uint4 random = philox_finish<ROUNDS>(prefix, time.word3 + plane, key);
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            const u32 t = Select<BITS>::pick(cls, planes + (plane << BITS), w);
            const u32 differ = t ^ word_of(random, w);
            accepted[w] = (t & differ) | (~differ & accepted[w]);
            undecided[w] &= ~differ;
        }
    }
#pragma unroll
    for (int w = 0; w < 4; ++w)
        while (undecided[w]) {
            const u32 bit = __ffs(undecided[w]) - 1;
            undecided[w] &= undecided[w] - 1;
            u32 index = 0;
#pragma unroll
            for (int b = 0; b < BITS; ++b) index |= (cls[b][w] >> bit & 1) << b;
            const u32 lane = 32 * w + bit;
            const uint4 own = philox_finish<ROUNDS>(prefix, time.word3 + TAIL_PLANE + lane, key);
            const u64 uniform = (u64)own.x << 32 | own.y;
            accepted[w] |= (u32)(uniform < thresholds[index << 7 | lane]) << bit;
        }
}
