// The lazy bit-plane comparison: "uniform < threshold" for 128 lanes at once, exact to 64 bits.
#pragma once
#include "philox.cuh"

constexpr int FIXED_PLANES = 8;  // as in engine/tables.py
constexpr u32 TAIL_PLANE = 128;

__device__ __forceinline__ u32 mux(u32 bit, u32 zero, u32 one) { return (bit & one) | (~bit & zero); }

__device__ __forceinline__ u32 word_of(const uint4& v, int w) { return w == 0 ? v.x : w == 1 ? v.y : w == 2 ? v.z : v.w; }

// Table rows in global memory.
struct GlobalRows {
    const uint4* rows;
    __device__ __forceinline__ uint4 load(int row) const { return __ldg(rows + row); }
    __device__ __forceinline__ GlobalRows from(int row) const { return {rows + row}; }
};

// Table rows in shared memory. Volatile, because the compiler would otherwise keep all rows in registers across sweeps.
struct SharedRows {
    u32 address;
    __device__ __forceinline__ uint4 load(int row) const {
        uint4 v;
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                     : "r"(address + 16 * row));
        return v;
    }
    __device__ __forceinline__ SharedRows from(int row) const { return {address + 16 * row}; }
};

// Picks, lane by lane, one of 2^BITS rows by the lane's class, given as bit planes.
template <int BITS>
struct Select {
    template <typename Rows>
    static __device__ __forceinline__ void pick(const u32 (*cls)[4], const Rows& rows, u32 (&out)[4]) {
        u32 upper[4];
        Select<BITS - 1>::pick(cls, rows, out);
        Select<BITS - 1>::pick(cls, rows.from(1 << (BITS - 1)), upper);
#pragma unroll
        for (int w = 0; w < 4; ++w) out[w] = mux(cls[BITS - 1][w], out[w], upper[w]);
    }
};

template <>
struct Select<0> {
    template <typename Rows>
    static __device__ __forceinline__ void pick(const u32 (*)[4], const Rows& rows, u32 (&out)[4]) {
        const uint4 row = rows.load(0);
        out[0] = row.x, out[1] = row.y, out[2] = row.z, out[3] = row.w;
    }
};

// The lanes still undecided, one by one: each compares what is left of its threshold with a Philox call of its own.
template <int BITS, int ROUNDS>
__device__ __forceinline__ void finish_lanes(const u32 (&cls)[BITS][4], const u32 (&undecided)[4], u32 (&accepted)[4],
                                             const u64* thresholds, const Prefix& prefix, HalfSweep time, Key key) {
    u32 left[4] = {undecided[0], undecided[1], undecided[2], undecided[3]};
    while (left[0] | left[1] | left[2] | left[3]) {
        const int w = left[0] ? 0 : left[1] ? 1 : left[2] ? 2 : 3;
        const u32 word = left[0] ? left[0] : left[1] ? left[1] : left[2] ? left[2] : left[3];
        const u32 mask = word & (0u - word), lane = 32 * w + __ffs(word) - 1;
        u32 index = 0;
#pragma unroll
        for (int b = 0; b < BITS; ++b) {
            const u32 bits = w == 0 ? cls[b][0] : w == 1 ? cls[b][1] : w == 2 ? cls[b][2] : cls[b][3];
            index |= bits & mask ? 1u << b : 0u;
        }
        const uint4 own = philox_finish<ROUNDS>(prefix, time.word3 + TAIL_PLANE + lane, key);
        const u32 accept = ((u64)own.x << 32 | own.y) < thresholds[index << 7 | lane] ? mask : 0u;
#pragma unroll
        for (int v = 0; v < 4; ++v) {
            left[v] ^= v == w ? mask : 0u;
            accepted[v] |= v == w ? accept : 0u;
        }
    }
}

// Lanes of `undecided` that accept. Row `plane << BITS | class` of `planes` holds threshold bits, most significant plane first;
// `thresholds[class << 7 | lane]` what is left of the thresholds after FIXED_PLANES bits.
template <int BITS, int ROUNDS, typename Rows>
__device__ __forceinline__ void accept_lanes(const u32 (&cls)[BITS][4], u32 (&undecided)[4], u32 (&accepted)[4],
                                             const Rows& planes, const u64* thresholds, u32 group, u32 block,
                                             HalfSweep time, Key key) {
    const Prefix prefix = philox_prefix(group, block, time.word2, key);
#pragma unroll
    for (int w = 0; w < 4; ++w) accepted[w] = 0;
#pragma unroll
    for (int plane = FIXED_PLANES - 1; plane >= 0; --plane) {
        const uint4 random = philox_finish<ROUNDS>(prefix, time.word3 + plane, key);
        u32 threshold[4];
        Select<BITS>::pick(cls, planes.from(plane << BITS), threshold);
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            const u32 differ = threshold[w] ^ word_of(random, w);
            accepted[w] = (threshold[w] & differ) | (~differ & accepted[w]);
            undecided[w] &= ~differ;
        }
    }
    finish_lanes<BITS, ROUNDS>(cls, undecided, accepted, thresholds, prefix, time, key);
}
