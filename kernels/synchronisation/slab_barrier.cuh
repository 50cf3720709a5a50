// A barrier of all blocks that share a slab of a lattice, and flags between neighbouring slabs, which kernels on other devices
// update at the same time: each writes into its neighbours' memory how many half-sweeps it has done.
#pragma once
#include "synchronisation/lattice_barrier.cuh"

struct SlabBarrier {
    static constexpr u32 MOST_POLLS = 1u << 27;  // a minute or two: a neighbour has failed

    LatticeBarrier own;
    const u32 *before, *after;   // of each lattice: half-sweeps that the slabs beside this one have done
    u32 *to_before, *to_after;   // of each lattice: where they find those of this slab
    u32 done;                    // of all launches before this one

    __device__ __forceinline__ SlabBarrier of(size_t lattice) const {
        return {own.of(lattice), before + lattice, after + lattice, to_before + lattice, to_after + lattice, done};
    }
    // Says that the block is done with this half-sweep of the launch; the last block to do so tells the neighbours.
    __device__ __forceinline__ void arrive(u32 half_sweeps) const {
        __syncthreads();
        if (threadIdx.x > 0) return;
        u32 others;
        asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(others) : "l"(own.arrived) : "memory");
        if (others + 1 - own.before != gridDim.x * half_sweeps) return;
        asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(to_before), "r"(done + half_sweeps) : "memory");
        asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(to_after), "r"(done + half_sweeps) : "memory");
    }
    __device__ __forceinline__ void wait(u32 half_sweeps) const { own.wait(half_sweeps); }

    // Return when a neighbour has done as many half-sweeps of the launch: its layers can then be read, and it reads no more
    // those that the next half-sweep changes.
    __device__ __forceinline__ void wait_for_before(u32 half_sweeps) const { wait_for(before, done + half_sweeps); }
    __device__ __forceinline__ void wait_for_after(u32 half_sweeps) const { wait_for(after, done + half_sweeps); }

    static __device__ __forceinline__ void wait_for(const u32* flag, u32 number) {
        u32 now, polls = 0;
        do {
            asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(now) : "l"(flag) : "memory");
            if (++polls == MOST_POLLS) __trap();
        } while ((int)(now - number) < 0);
        asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(now) : "l"(flag) : "memory");
    }
};
CHECK_LAYOUT(SlabBarrier, engine.metropolis.site_packed.cuda_records.SLAB_BARRIER);
