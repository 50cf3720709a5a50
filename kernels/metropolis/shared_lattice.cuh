// The lattice of one (sample, block of 128 replicas) in shared memory: its words, lanes in use, rows of `always` and `planes`
// for both parities, a tail for each warp.
#pragma once
#include "metropolis/replica_site.cuh"
#include "synchronisation/staged.cuh"

constexpr int MOST_SHARED_THREADS = HOST(engine.moves.metropolis.replica_packed.cuda_lattices.MOST_SHARED_THREADS);

template <typename R>
struct SharedLattice {
    static constexpr u32 ALWAYS_ROWS = 2 << R::BITS, PLANE_ROWS = 2 * PLANES << R::BITS;
    uint4* words;
    u32 sites;
    Tail<R::BITS> tail;

    __device__ __forceinline__ SharedLattice(uint4* shared, u32 sites)
        : words(shared),
          sites(sites),
          tail(((TailEntries<R::BITS>*)(shared + sites + 1 + ALWAYS_ROWS + PLANE_ROWS))[threadIdx.x / 32]) {}

    __device__ __forceinline__ uint4* always_rows() const { return words + sites + 1; }
    __device__ __forceinline__ uint4* plane_rows() const { return always_rows() + ALWAYS_ROWS; }

    __device__ __forceinline__ void* behind() const {  // room of the block's that follows
        return (TailEntries<R::BITS>*)(plane_rows() + PLANE_ROWS) + blockDim.x / 32;
    }

    // Starts copying; wait_for_copies() and a barrier must follow.
    __device__ __forceinline__ void load(const uint4* home, const uint4& lanes) {
        const u32 address = (u32)__cvta_generic_to_shared(words);
        for (u32 i = threadIdx.x; i < sites; i += blockDim.x) copy_once(address + 16 * i, home + i);
        if (threadIdx.x == 0) words[sites] = lanes;
    }
    __device__ __forceinline__ void store(uint4* home) const {
        for (u32 i = threadIdx.x; i < sites; i += blockDim.x) home[i] = words[i];
    }

    // `thresholds(parity)` finds those of sites of even or odd degree; `tally` is told whether a half-sweep is the last.
    template <typename Thresholds, typename Tally = NoTally>
    __device__ __forceinline__ void sweep(u32 sweeps, u64& half_sweep, const Batch* batches, const int* colour_start,
                                          int colours, const Model& model, const Thresholds& thresholds, u32 sample,
                                          u32 counter, const Key& key, Tally&& tally = {}) {
        const SharedRows lanes = {(u32)__cvta_generic_to_shared(words + sites)};
        for (u32 sweep = 0; sweep < sweeps; ++sweep)
            for (int colour = 0; colour < colours; ++colour, ++half_sweep) {
                __syncthreads();  // sites of one colour share no bond: their batches need no barrier between them
                const HalfSweep time = counter_half_sweep(half_sweep, STREAM_UPDATE);
                tally.begin_half_sweep(sweep + 1 == sweeps && colour + 1 == colours);
                for (int b = colour_start[colour]; b < colour_start[colour + 1]; ++b) {
                    const Batch batch = batches[b];
                    const SharedRows always = lanes.from(1 + (batch.parity << R::BITS));
                    const SharedRows planes = lanes.from(1 + ALWAYS_ROWS + (batch.parity * PLANES << R::BITS));
                    const auto update = [&](auto&& told) {
                        update_sites<R, false>({batch, model, sample, nullptr}, words, batch.first + (threadIdx.x & ~31u),
                                               batch.first + batch.size, Stride{blockDim.x}, always, planes,
                                               thresholds(batch.parity), lanes, counter, time, key, tail, [] {}, told);
                    };
                    if (tally.is_told())
                        update(tally);
                    else
                        update(NoTally{});
                }
                tally.end_half_sweep();
            }
        __syncthreads();
    }
};
