// Philox4x32 (Salmon et al., SC'11), counter words laid out as in spinsim/rng.py. Multiplicands and keys are 32-bit words.
#pragma once
#include "bits/types.cuh"

constexpr u64 MULTIPLIER_0 = HOST(rng.MULTIPLIER_0), MULTIPLIER_1 = HOST(rng.MULTIPLIER_1);
constexpr int FEWER_ROUNDS = HOST(rng.FEWER_ROUNDS), MOST_ROUNDS = HOST(rng.ROUNDS);
constexpr u32 BLOCK_BITS = HOST(rng.BLOCK_BITS), STREAM_BITS = HOST(rng.STREAM_BITS), PLANE_BITS = HOST(rng.PLANE_BITS);

// What a random number is for: the members of rng.Stream that kernels draw from.
enum Stream : u32 {
    STREAM_UPDATE = HOST(rng.Stream.UPDATE),
    STREAM_START = HOST(rng.Stream.START),
    STREAM_SWAP = HOST(rng.Stream.SWAP),
    STREAM_LANCZOS = HOST(rng.Stream.LANCZOS),
    STREAM_COUPLINGS = HOST(rng.Stream.COUPLINGS),
};

// The keys of all rounds: read from constant memory, they take neither registers nor additions.
struct Key { u32 low[MOST_ROUNDS], high[MOST_ROUNDS]; };
CHECK_STRUCT(Key, cuda.launch.KEY);

__device__ __forceinline__ void philox_round(u32& x0, u32& x1, u32& x2, u32& x3, u32 k0, u32 k1) {
    const u64 a = MULTIPLIER_0 * x0;
    const u64 b = MULTIPLIER_1 * x2;
    x0 = (u32)(b >> 32) ^ x1 ^ k0;
    x1 = (u32)b;
    x2 = (u32)(a >> 32) ^ x3 ^ k1;
    x3 = (u32)a;
}

template <int FIRST, int ROUNDS>
__device__ __forceinline__ uint4 philox_rounds(u32 x0, u32 x1, u32 x2, u32 x3, const Key& key) {
    static_assert(ROUNDS == FEWER_ROUNDS || ROUNDS == MOST_ROUNDS, "Philox4x32 is used with 7 or 10 rounds");
#pragma unroll
    for (int r = FIRST; r < ROUNDS; ++r) philox_round(x0, x1, x2, x3, key.low[r], key.high[r]);
    return make_uint4(x0, x1, x2, x3);
}

template <int ROUNDS>
__device__ __forceinline__ uint4 philox(u32 c0, u32 c1, u32 c2, u32 c3, const Key& key) {
    return philox_rounds<0, ROUNDS>(c0, c1, c2, c3, key);
}

// Holds what the first three rounds of one group's calls share: all but counter word 3, which holds the plane.
struct Prefix { u32 p0, p1, p2, p3, p4; };

__device__ __forceinline__ Prefix philox_prefix(u32 c0, u32 c1, u32 c2, const Key& key) {
    u32 x0 = c0, x1 = c1, x2 = c2, x3 = 0;
    philox_round(x0, x1, x2, x3, key.low[0], key.high[0]);
    const u64 a = MULTIPLIER_0 * x0;
    const u32 y2 = (u32)(a >> 32) ^ x3 ^ key.high[1];
    const u64 b = MULTIPLIER_1 * y2;
    return {x2, x1 ^ key.low[1], (u32)(b >> 32) ^ key.low[2], (u32)b, (u32)a ^ key.high[2]};
}

template <int ROUNDS>
__device__ __forceinline__ uint4 philox_finish(const Prefix& p, u32 c3, const Key& key) {
    const u64 b = MULTIPLIER_1 * (p.p0 ^ c3);
    const u64 a = MULTIPLIER_0 * ((u32)(b >> 32) ^ p.p1);
    return philox_rounds<3, ROUNDS>(p.p2 ^ (u32)b, p.p3, (u32)(a >> 32) ^ p.p4, (u32)a, key);
}

// Holds counter words 2 and 3 of a half-sweep; the plane is added to word 3.
struct HalfSweep { u32 word2, word3; };

__device__ __forceinline__ HalfSweep counter_half_sweep(u64 half_sweep, u32 stream) {
    return {(u32)half_sweep, (u32)(half_sweep >> 32) << (STREAM_BITS + PLANE_BITS) | stream << PLANE_BITS};
}

__device__ __forceinline__ u32 counter_block(u32 sample, u32 block) { return sample << BLOCK_BITS | block; }
