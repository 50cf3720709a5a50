// A barrier of all blocks of a launch, which must all be resident.
#pragma once

typedef unsigned int u32;

struct GridBarrier {
    u32* arrived;  // blocks that have arrived, over all launches
    u32 before;    // what it holds before the launch

    // Says that the block is done; what its threads wrote can then be read past the first-level caches.
    __device__ __forceinline__ void arrive() const {
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(arrived) : "memory");
        }
    }
    // Returns when all blocks have arrived `times` times.
    __device__ __forceinline__ void wait(u32 blocks, u32 times) const {
        if (threadIdx.x == 0) {
            u32 now;
            do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(arrived) : "memory");
            while ((int)(now - before - blocks * times) < 0);
        }
        __syncthreads();
    }
};
