// Ternary Boolean operations on words, each one instruction. Written as such, because the compiler, left to combine plain
// ANDs and ORs, takes a tenth more instructions.
#pragma once
#include "bits/types.cuh"

// Truth tables are written as expressions of the three inputs.
constexpr u32 IN_A = 0xf0, IN_B = 0xcc, IN_C = 0xaa;

template <u32 TABLE>
__device__ __forceinline__ u32 lop3(u32 a, u32 b, u32 c) {
    static_assert(TABLE < 256, "a truth table has eight bits");
    u32 out;
    asm("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(out) : "r"(a), "r"(b), "r"(c), "n"(TABLE));
    return out;
}

__device__ __forceinline__ u32 mux(u32 bit, u32 zero, u32 one) {
    return lop3<(IN_A & IN_C) | (~IN_A & IN_B & 0xff)>(bit, zero, one);
}
__device__ __forceinline__ u32 majority(u32 a, u32 b, u32 c) { return lop3<(IN_A & IN_B) | (IN_C & (IN_A | IN_B))>(a, b, c); }
__device__ __forceinline__ u32 parity(u32 a, u32 b, u32 c) { return lop3<IN_A ^ IN_B ^ IN_C>(a, b, c); }

__device__ __forceinline__ uint4 differing(const uint4& a, const uint4& b) {
    return make_uint4(a.x ^ b.x, a.y ^ b.y, a.z ^ b.z, a.w ^ b.w);
}
__device__ __forceinline__ uint4 differing(const uint4& a, u32 b) { return differing(a, make_uint4(b, b, b, b)); }
