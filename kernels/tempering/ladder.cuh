// Acceptance tables of replicas whose temperatures exchanges have changed.
#pragma once
#include "metropolis/bitplane.cuh"

// Says what decides flips at every temperature of a ladder, [parity][class][temperature].
struct Ladder {
    const u64* limits;   // thresholds
    const u8* certain;   // 1 where a flip needs no random number
    size_t temperatures;
};
CHECK_STRUCT(Ladder, engine.moves.exchange_cuda.LADDER);

// Returns the words of 32 lanes' planes: thread p of the warp, below PLANES, is given bit 31 - p of the upper half of each
// lane's limit.
__device__ __forceinline__ u32 plane_word(u32 upper) {
    u32 mine = 0;
#pragma unroll
    for (int plane = 0; plane < PLANES; ++plane) {
        const u32 word = __ballot_sync(~0u, upper >> (31 - plane) & 1);
        if ((threadIdx.x & 31) == plane) mine = word;
    }
    return mine;
}
