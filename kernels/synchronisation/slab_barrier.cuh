// A barrier of all blocks that share a slab of a lattice, and flags between neighbouring slabs, which kernels on other devices
// update at the same time: each writes into its neighbours' memory for how many half-sweeps its edges, the tiles that touch
// other slabs, are done.
#pragma once
#include "synchronisation/lattice_barrier.cuh"

struct SlabBarrier {
    static constexpr u32 MOST_POLLS = 1u << 27;  // a minute or two: a neighbour has failed

    LatticeBarrier own;
    const u32 *before, *after;  // of each lattice: half-sweeps for which the edges of the slabs beside this one are done
    u32 *to_before, *to_after;  // of each lattice: where they find those of this slab
    u32* edges;                 // of each lattice: edges that are done, over all half-sweeps
    u32 done, edge_tiles;       // half-sweeps of all launches before this one; edges of each half-sweep

    __device__ __forceinline__ LatticeBarrier of(size_t lattice) const { return own.of(lattice); }

    // Returns when the neighbours' edges are done for as many half-sweeps of the launch: their layers can then be read, and
    // they read no more what the next half-sweep changes. A whole warp calls it, each thread for what it looks at.
    __device__ __forceinline__ void wait_for_edges(size_t lattice, u32 half_sweeps, bool looks_before, bool looks_after) const {
        if (__any_sync(~0u, looks_before)) wait_for(before + lattice, done + half_sweeps);
        if (__any_sync(~0u, looks_after)) wait_for(after + lattice, done + half_sweeps);
        __syncwarp();
    }
    // Says that a warp is done with an edge in the half-sweep after so many of the launch; the last one tells the neighbours.
    __device__ __forceinline__ void pass_edge(size_t lattice, u32 half_sweeps) const {
        __syncwarp();
        if (threadIdx.x % 32 == 0) {
            u32 passed;
            const u32 now = done + half_sweeps + 1;
            asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(passed) : "l"(edges + lattice) : "memory");
            if (passed + 1 == edge_tiles * now) {
                asm volatile("fence.acq_rel.sys;" ::: "memory");
                asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(to_before + lattice), "r"(now) : "memory");
                asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(to_after + lattice), "r"(now) : "memory");
            }
        }
        __syncwarp();
    }

    static __device__ __forceinline__ void wait_for(const u32* flag, u32 number) {
        u32 now, polls = 0;
        do {
            asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(now) : "l"(flag) : "memory");
            if (++polls == MOST_POLLS) __trap();
        } while (__any_sync(~0u, (int)(now - number) < 0));
        asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(now) : "l"(flag) : "memory");
    }
};
CHECK_STRUCT(SlabBarrier, engine.moves.metropolis.site_packed.cuda.SLAB_BARRIER);
