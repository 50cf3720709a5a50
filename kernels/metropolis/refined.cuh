// Uniforms of 32 bits that decide unless they equal the upper half of a threshold; another call then has the lower halves.
#pragma once
#include "metropolis/bitplane.cuh"
#include "random/acceptance.cuh"

constexpr u32 REFINE = HOST(engine.moves.metropolis.unpacked.REFINE);  // plane offset of the lower halves of the uniforms

// Returns whether a 64-bit uniform is below a threshold; its lower half, word k of another call, is rarely needed.
template <int ROUNDS>
__device__ __noinline__ bool below(u32 upper, Threshold t, int k, uint4 lower, const Key& key) {
    const u32 top = (u32)(t.value >> 32);
    if (t.always || upper != top) return t.always || upper < top;
    return word_of(philox<ROUNDS>(lower.x, lower.y, lower.z, lower.w, key), k) < (u32)t.value;
}
