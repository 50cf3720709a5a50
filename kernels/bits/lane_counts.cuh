// Sums over items of 128 lanes, lane by lane.
#pragma once
#include "bits/counters.cuh"

constexpr int LOADED_AT_ONCE = 4;  // items that a thread loads before it adds them

template <int ITEMS, int PLANES, typename Item>
__device__ __forceinline__ void count_batch(const Item& item, u32 first, Counters<PLANES, 4>& counters) {
    u32 word[4][ITEMS];
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        const uint4 lanes = item(first + k * blockDim.x);
        word[0][k] = lanes.x, word[1][k] = lanes.y, word[2][k] = lanes.z, word[3][k] = lanes.w;
    }
    counters.add(word);
}

// Counts the calling thread's items from `first` on below `stop`, blockDim.x apart; no more than the planes hold.
template <int PLANES, typename Item>
__device__ __forceinline__ Counters<PLANES, 4> count_strided(const Item& item, u32 first, u32 stop) {
    Counters<PLANES, 4> counters;
    counters.clear();
    const u32 ahead = (LOADED_AT_ONCE - 1) * blockDim.x;
    for (; first + ahead < stop; first += LOADED_AT_ONCE * blockDim.x) count_batch<LOADED_AT_ONCE>(item, first, counters);
    for (; first < stop; first += blockDim.x) count_batch<1>(item, first, counters);
    return counters;
}

// Adds `weight` times the sums of the eight threads of a warp that have a word in common, to totals[128] in shared memory; every thread of the
// warp must call it. They are APART: 1, octet w of the warp has word w, or 4, of each four threads the one with number w.
template <int APART = 1, int PLANES>
__device__ __forceinline__ void add_octets(const Counters<PLANES, 1>& counters, u32* totals, u32 weight = 1) {
    static_assert(PLANES + 3 <= 16, "a count has two bytes");
    static_assert(APART == 1 || APART == 4, "a warp has four words");
    const auto sum = pair_sum<APART>(pair_sum<2 * APART>(pair_sum<4 * APART>(counters)));
    const u32 thread = threadIdx.x % 32, first = thread / APART % 8;  // of four lanes, eight apart, a byte each
    u32 low = 0, high = 0;
#pragma unroll
    for (int p = 0; p < PLANES + 3; ++p) (p < 8 ? low : high) += (sum.plane[p][0] >> first & 0x01010101) << p % 8;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        const u32 count = (low >> 8 * k & 0xff) | (high >> 8 * k & 0xff) << 8;
        atomicAdd(totals + (APART == 1 ? thread / 8 : thread % 4) * 32 + first + 8 * k, weight * count);
    }
}

// Adds `weight` times the warp's counts to totals[128] in shared memory; every thread of the warp must call it.
template <int PLANES>
__device__ __forceinline__ void add_warp(const Counters<PLANES, 4>& counters, u32* totals, u32 weight = 1) {
    add_octets(pair_sum<8>(pair_sum<16>(counters)), totals, weight);
}
