// Squares of 32 x 32 and of 8 x 8 bits, in the registers of one thread or of a warp.
#pragma once
#include "bits/types.cuh"

// Exchanges squares of WIDTH x WIDTH bits beside the diagonal; LOWER are the bits of the first of two such squares.
template <int WIDTH, u32 LOWER, int WORDS>
__device__ __forceinline__ void exchange_squares(u32 (&a)[WORDS]) {
#pragma unroll
    for (int k = 0; k < WORDS / 2; ++k) {
        const int i = k / WIDTH * 2 * WIDTH + k % WIDTH;
        const u32 one = a[i], other = a[i + WIDTH];
        if constexpr (WIDTH == 16) {
            a[i] = __byte_perm(one, other, 0x5410), a[i + WIDTH] = __byte_perm(one, other, 0x7632);
        } else if constexpr (WIDTH == 8) {
            a[i] = __byte_perm(one, other, 0x6240), a[i + WIDTH] = __byte_perm(one, other, 0x7351);
        } else {
            a[i] = (one & LOWER) | (other << WIDTH & ~LOWER), a[i + WIDTH] = (one >> WIDTH & LOWER) | (other & ~LOWER);
        }
    }
}

// Moves bit b of a[i] to bit i of a[b] (Warren, Hacker's Delight, 7-3).
__device__ __forceinline__ void transpose(u32 (&a)[32]) {
    exchange_squares<16, 0x0000ffff>(a);
    exchange_squares<8, 0x00ff00ff>(a);
    exchange_squares<4, 0x0f0f0f0f>(a);
    exchange_squares<2, 0x33333333>(a);
    exchange_squares<1, 0x55555555>(a);
}

// Does so with each of the four squares of 8 x 8 bits that lie side by side.
__device__ __forceinline__ void transpose_octets(u32 (&a)[8]) {
    exchange_squares<4, 0x0f0f0f0f>(a);
    exchange_squares<2, 0x33333333>(a);
    exchange_squares<1, 0x55555555>(a);
}

// Returns bit `lane` of the words of all lanes of a warp: bit b of lane i's word is bit i of lane b's result.
__device__ __forceinline__ u32 transpose_across(u32 word) {
    const u32 lane = threadIdx.x % 32;
    word = __byte_perm(word, __shfl_xor_sync(~0u, word, 16), lane & 16 ? 0x3276 : 0x5410);
    word = __byte_perm(word, __shfl_xor_sync(~0u, word, 8), lane & 8 ? 0x3715 : 0x6240);
    u32 lower = 0x0f0f0f0f;
#pragma unroll
    for (u32 width = 4; width; width /= 2, lower ^= lower << width) {
        const u32 other = __shfl_xor_sync(~0u, word, width), kept = lane & width ? ~lower : lower;
        word = (word & kept) | (__funnelshift_r(other, other, lane & width ? width : 32 - width) & ~kept);  // rotated
    }
    return word;
}
