// Unpacked spins: spins[(sample * sites + site) * width + replica] is a signed byte, +1 or -1.
#pragma once
#include "bits/types.cuh"

// Is what a thread loads at once: one or four words of four replicas.
template <int WORDS>
struct alignas(4 * WORDS) Spins { u32 word[WORDS]; };

// Returns signed byte k of a word by one instruction, which picks a byte and its sign three times.
__device__ __forceinline__ int signed_byte(u32 word, int k) {
    int out;
    asm("prmt.b32 %0, %1, 0, %2;" : "=r"(out) : "r"(word), "r"(0x8880 + 0x1111 * k));
    return out;
}
