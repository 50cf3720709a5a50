// Vertical counters: plane p of word w holds bit p of 32 lanes' counts.
#pragma once
#include "bits/logic.cuh"

template <int PLANES, int WORDS>
struct Counters {
    u32 plane[PLANES][WORDS];

    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int p = 0; p < PLANES; ++p)
#pragma unroll
            for (int w = 0; w < WORDS; ++w) plane[p][w] = 0;
    }
    // Adds items of weight 2^PLANE to word w: pairs of them with the plane by full adders. Carries are left.
    template <int PLANE, int ITEMS>
    __device__ __forceinline__ void add_to_plane(const u32* item, int w, u32* carry) {
#pragma unroll
        for (int k = 0; k + 1 < ITEMS; k += 2) {
            const u32 low = plane[PLANE][w];
            plane[PLANE][w] = parity(low, item[k], item[k + 1]);
            carry[k / 2] = majority(low, item[k], item[k + 1]);
        }
        if constexpr (ITEMS % 2) {
            carry[ITEMS / 2] = plane[PLANE][w] & item[ITEMS - 1];
            plane[PLANE][w] ^= item[ITEMS - 1];
        }
    }
    // Adds items of one word, of weight 2^PLANE, and then the carries likewise.
    template <int PLANE = 0, int ITEMS>
    __device__ __forceinline__ void add(const u32 (&item)[ITEMS], int w) {
        if constexpr (PLANE < PLANES) {
            u32 carry[(ITEMS + 1) / 2];
            add_to_plane<PLANE, ITEMS>(item, w, carry);
            add<PLANE + 1>(carry, w);
        }
    }
    // Adds items of WORDS words each.
    template <int ITEMS>
    __device__ __forceinline__ void add(const u32 (&item)[WORDS][ITEMS]) {
#pragma unroll
        for (int w = 0; w < WORDS; ++w) add(item[w], w);
    }
};

// Returns the sum over two threads DISTANCE apart. Of several words each thread keeps half, the one with the bit set the upper.
template <int DISTANCE, int PLANES, int WORDS>
__device__ __forceinline__ auto pair_sum(const Counters<PLANES, WORDS>& own) {
    constexpr int KEPT = WORDS > 1 ? WORDS / 2 : 1;
    const bool upper = threadIdx.x & DISTANCE;
    Counters<PLANES + 1, KEPT> both;
#pragma unroll
    for (int w = 0; w < KEPT; ++w) {
        u32 carry = 0;
#pragma unroll
        for (int p = 0; p < PLANES; ++p) {
            const u32 low = own.plane[p][w], high = own.plane[p][WORDS - KEPT + w];
            const u32 kept = upper ? high : low, other = __shfl_xor_sync(~0u, upper ? low : high, DISTANCE);
            both.plane[p][w] = parity(kept, other, carry);
            carry = majority(kept, other, carry);
        }
        both.plane[PLANES][w] = carry;
    }
    return both;
}
