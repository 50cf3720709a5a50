// A barrier of all blocks of a launch, which must all be resident: each has a flag, which only it writes.
#pragma once

typedef unsigned int u32;

struct GridBarrier {
    u32* flags;  // of each block: half-sweeps done
    u32 epoch;   // what all flags hold before the launch

    // Says that the block has done `done` half-sweeps of this launch.
    __device__ __forceinline__ void arrive(u32 block, u32 done) const {
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flags + block), "r"(epoch + done) : "memory");
        }
    }
    // Returns when all blocks have.
    __device__ __forceinline__ void wait(u32 blocks, u32 done) const {
        for (u32 b = threadIdx.x; b < blocks; b += blockDim.x) {
            u32 flag;
            do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(flag) : "l"(flags + b) : "memory");
            while ((int)(flag - epoch - done) < 0);
        }
        __syncthreads();
    }
};
