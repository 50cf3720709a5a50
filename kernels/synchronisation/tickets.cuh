// Warps take the tiles of a lattice in turn: its own number first, then by ticket.
#pragma once
#include "bits/types.cuh"

struct Tickets {
    u32* next;   // of each lattice: tickets drawn, over all launches; each tile that a warp takes draws one
    u32 before;  // what it holds before this round of tiles

    __device__ __forceinline__ Tickets of(size_t lattice) const { return {next + lattice, before}; }
    __device__ __forceinline__ void pass(u32 tiles) { before += tiles; }

    // The whole warp must call both; the number drawn takes long to come. The address names the lane, which is 0: from one
    // address the compiler lets one thread draw for all, and waits for the number at once to share it out.
    __device__ __forceinline__ u32 draw() const {
        u32 lane;
        asm("mov.u32 %0, %%laneid;" : "=r"(lane));
        return threadIdx.x & 31 ? 0 : atomicAdd(next + lane, 1u);
    }
    __device__ __forceinline__ u32 number_of(u32 drawn) const {
        return __shfl_sync(~0u, drawn, 0) - before + gridDim.x * (blockDim.x / 32);
    }
};
CHECK_STRUCT(Tickets, engine.moves.metropolis.classes.TICKETS);

// The places of one batch in turn, by ticket; the only batch of a colour that the kernel updates.
struct InTurn {
    Tickets tickets;
    u32 first;  // of the batch
    __device__ __forceinline__ u32 draw(u32) const { return tickets.draw(); }
    __device__ __forceinline__ u32 number_of(u32 drawn) const { return first + 32 * tickets.number_of(drawn); }
};
