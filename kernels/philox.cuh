// Philox4x32 (Salmon et al., SC'11), counter words laid out as in spinsim/rng.py. Multiplicands and keys are 32-bit words.
#pragma once

typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned char u8;

// The keys of all rounds: read from constant memory, they take neither registers nor additions.
struct Key { u32 low[10], high[10]; };

__device__ __forceinline__ void philox_round(u32& x0, u32& x1, u32& x2, u32& x3, u32 k0, u32 k1) {
    const u64 a = (u64)0xD2511F53u * x0;
    const u64 b = (u64)0xCD9E8D57u * x2;
    x0 = (u32)(b >> 32) ^ x1 ^ k0;
    x1 = (u32)b;
    x2 = (u32)(a >> 32) ^ x3 ^ k1;
    x3 = (u32)a;
}

template <int FIRST, int ROUNDS>
__device__ __forceinline__ uint4 philox_rounds(u32 x0, u32 x1, u32 x2, u32 x3, const Key& key) {
    static_assert(ROUNDS == 7 || ROUNDS == 10, "Philox4x32 is used with 7 or 10 rounds");
#pragma unroll
    for (int r = FIRST; r < ROUNDS; ++r) philox_round(x0, x1, x2, x3, key.low[r], key.high[r]);
    return make_uint4(x0, x1, x2, x3);
}

template <int ROUNDS>
__device__ __forceinline__ uint4 philox(u32 c0, u32 c1, u32 c2, u32 c3, const Key& key) {
    return philox_rounds<0, ROUNDS>(c0, c1, c2, c3, key);
}

// What the first three rounds of one group's calls share: all but counter word 3, which holds the plane.
struct Prefix { u32 p0, p1, p2, p3, p4; };

__device__ __forceinline__ Prefix philox_prefix(u32 c0, u32 c1, u32 c2, const Key& key) {
    u32 x0 = c0, x1 = c1, x2 = c2, x3 = 0;
    philox_round(x0, x1, x2, x3, key.low[0], key.high[0]);
    const u64 a = (u64)0xD2511F53u * x0;
    const u32 y2 = (u32)(a >> 32) ^ x3 ^ key.high[1];
    const u64 b = (u64)0xCD9E8D57u * y2;
    return {x2, x1 ^ key.low[1], (u32)(b >> 32) ^ key.low[2], (u32)b, (u32)a ^ key.high[2]};
}

template <int ROUNDS>
__device__ __forceinline__ uint4 philox_finish(const Prefix& p, u32 c3, const Key& key) {
    const u64 b = (u64)0xCD9E8D57u * (p.p0 ^ c3);
    const u64 a = (u64)0xD2511F53u * ((u32)(b >> 32) ^ p.p1);
    return philox_rounds<3, ROUNDS>(p.p2 ^ (u32)b, p.p3, (u32)(a >> 32) ^ p.p4, (u32)a, key);
}

// Counter words 2 and 3 of a half-sweep; the plane is added to word 3.
struct HalfSweep { u32 word2, word3; };

__device__ __forceinline__ HalfSweep counter_half_sweep(u64 half_sweep, u32 stream) {
    return {(u32)half_sweep, (u32)(half_sweep >> 32) << 16 | stream << 8};
}

__device__ __forceinline__ u32 counter_block(u32 sample, u32 block) { return sample << 14 | block; }

enum Stream : u32 { STREAM_UPDATE = 1, STREAM_START = 2, STREAM_SWAP = 4, STREAM_LANCZOS = 6 };  // the members of rng.Stream that kernels draw from
