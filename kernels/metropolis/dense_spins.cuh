// The spins of a group of replicas of a dense model, which stay in shared memory as bits.
#pragma once
#include "bits/types.cuh"

constexpr u32 SITES = HOST(engine.moves.metropolis.dense.SITES);  // of a block of the sweep: two for each lane of a warp
static_assert(SITES == 64, "lanes have two sites of a block");

// Fetches the spins of a group of replicas, bits [replica][place] in the order of visits, rows `pitch` words apart, 0 past the
// last site and the last of the replicas that are `there`.
template <u32 REPLICAS>
__device__ __forceinline__ void load_bits(u32* bits, u32 pitch, const signed char* from, const u32* order, u32 sites, u32 width,
                                          u32 depth, u32 there) {
    const u32 lane = threadIdx.x % 32;
    for (u32 word = threadIdx.x / 32; word < depth / 32; word += blockDim.x / 32) {
        const u32 place = word * 32 + lane;
        const u32* const bytes = (const u32*)(from + (size_t)(place < sites ? order[place] : 0) * width);
        for (u32 r = 0; r < REPLICAS; r += 4) {
            const u32 four = place < sites && r < there ? bytes[r / 4] : 0;
#pragma unroll
            for (u32 k = 0; k < 4; ++k) {
                const u32 up = __ballot_sync(~0u, (four >> 8 * k & 255) == 1);
                if (lane == 0) bits[(r + k) * pitch + word] = up;
            }
        }
    }
}

// Brings them back.
template <u32 REPLICAS>
__device__ __forceinline__ void store_bits(const u32* bits, u32 pitch, signed char* to, const u32* order, u32 sites, u32 width,
                                           u32 there) {
    for (u32 place = threadIdx.x; place < sites; place += blockDim.x) {
        u32* const bytes = (u32*)(to + (size_t)order[place] * width);
        for (u32 r = 0; r < min(REPLICAS, there); r += 4) {
            u32 four = 0;
#pragma unroll
            for (u32 k = 0; k < 4; ++k) four |= (bits[(r + k) * pitch + place / 32] >> place % 32 & 1 ? 1u : 255u) << 8 * k;
            bytes[r / 4] = four;
        }
    }
}
