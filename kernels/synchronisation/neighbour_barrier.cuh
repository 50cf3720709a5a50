// A barrier between blocks whose parts of a lattice touch, which must be resident together: each waits for those up to `reach`
// before and behind it, in a circle, and not for the slowest of all.
#pragma once
#include "bits/types.cuh"

struct NeighbourBarrier {
    // Words from one block's count to the next: polls then spread over the cache.
    static constexpr u32 APART = HOST(engine.moves.metropolis.classes.APART);

    u32* arrived;       // of each block of each lattice: how often it has arrived, over all launches
    u32 before, reach;  // what all hold before the launch

    __device__ __forceinline__ NeighbourBarrier of(size_t lattice) const {
        return {arrived + lattice * gridDim.x * APART, before, reach};
    }
    // Says that the block is done; what its threads wrote can then be read by those that have waited.
    __device__ __forceinline__ void arrive() const {
        __syncthreads();
        if (threadIdx.x == 0)
            asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(arrived + blockIdx.x * APART) : "memory");
    }
    // Returns when the neighbours have arrived `times` times; 2 * reach threads at most look.
    __device__ __forceinline__ void wait(u32 times) const {
        if (threadIdx.x < 2 * reach) {
            const u32 away = threadIdx.x / 2 + 1, blocks = gridDim.x;
            const u32 other = threadIdx.x & 1 ? blockIdx.x + away : blockIdx.x + blocks - away;
            const u32* const theirs = arrived + (other < blocks ? other : other - blocks) * APART;
            u32 now;
            do asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(theirs) : "memory");
            while ((int)(now - before - times) < 0);
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(theirs) : "memory");
        }
        __syncthreads();
    }
};
CHECK_STRUCT(NeighbourBarrier, engine.moves.metropolis.classes.NEIGHBOUR_BARRIER);
