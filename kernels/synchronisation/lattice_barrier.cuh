// A barrier of all blocks that share a lattice, which must be resident together.
#pragma once
#include "bits/types.cuh"

struct LatticeBarrier {
    u32* arrived;  // of each lattice: blocks that have arrived, over all launches
    u32 before;    // what it holds before the launch

    __device__ __forceinline__ LatticeBarrier of(size_t lattice) const { return {arrived + lattice, before}; }

    // Says that the block is done; what its threads wrote can then be read by those that have waited.
    __device__ __forceinline__ void arrive() const {
        __syncthreads();
        if (threadIdx.x == 0) asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(arrived) : "memory");
    }
    // Returns when all blocks, gridDim.x, have arrived `times` times. Acquires but once, as that empties the first-level cache.
    __device__ __forceinline__ void wait(u32 times) const {
        if (threadIdx.x == 0) {
            u32 now;
            do asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(arrived) : "memory");
            while ((int)(now - before - gridDim.x * times) < 0);
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(arrived) : "memory");
        }
        __syncthreads();
    }
};
CHECK_STRUCT(LatticeBarrier, engine.moves.metropolis.classes.LATTICE_BARRIER);
