// A barrier of all blocks that share a slab of a lattice, and flags between neighbouring slabs, which kernels on other devices
// update at the same time: each writes into its neighbours' memory how many half-sweeps it has done.
#pragma once
#include "synchronisation/lattice_barrier.cuh"

struct SlabBarrier {
    static constexpr u32 MOST_POLLS = 1u << 27;  // a minute or two: a neighbour has failed

    LatticeBarrier own;
    const u32 *before, *after;  // of each lattice: half-sweeps that the slabs beside this one have done
    u32 *to_before, *to_after;  // of each lattice: where they find those of this slab
    u32 done;                   // of all launches before this one

    __device__ __forceinline__ LatticeBarrier of(size_t lattice) const { return own.of(lattice); }

    // Tells the neighbours how many half-sweeps of the launch are done; one thread calls it, which has waited for all blocks.
    __device__ __forceinline__ void tell(size_t lattice, u32 half_sweeps) const {
        asm volatile("fence.acq_rel.sys;" ::: "memory");
        asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(to_before + lattice), "r"(done + half_sweeps) : "memory");
        asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(to_after + lattice), "r"(done + half_sweeps) : "memory");
    }

    // Return when a neighbour has done as many half-sweeps of the launch: its layers can then be read, and it reads no more
    // those that the next half-sweep changes.
    __device__ __forceinline__ void wait_for_before(size_t lattice, u32 half_sweeps) const {
        wait_for(before + lattice, done + half_sweeps);
    }
    __device__ __forceinline__ void wait_for_after(size_t lattice, u32 half_sweeps) const {
        wait_for(after + lattice, done + half_sweeps);
    }

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
