// What is measured of every copy at every temperature, written to a buffer from what is known of replicas; the buffer is
// laid out by spinsim/engine/measuring/cuda.py.
#pragma once
#include "tempering/exchange.cuh"

// Of two sums of a replica.
struct Linear {
    long long one, other, constant;

    __device__ __forceinline__ long long of(long long first, long long second) const {
        return one * first + other * second + constant;
    }
};
CHECK_LAYOUT(Linear, engine.measuring.cuda.LINEAR);

// First words, of 64 bits, of what a buffer holds of all samples; `size` words are a measurement's.
struct Measured {
    size_t energy, magnetization, overlap, link_overlap, attempts, accepts, trips, place, holder, last_end, size;
    Linear energy_of, magnetization_of;
    double quantum;
    size_t compared, linked, sites, bonds;  // of each sample: overlaps and link overlaps, and what they are of equal copies

    // One sample's part, by a whole block. `sums(replica, one, other)` finds a replica's sums; exchange.of(sample) may hold
    // `place`, `holder` and `last_end` in shared memory.
    template <typename Sums>
    __device__ __forceinline__ void write(u64* to, const Exchange& e, u32 sample, const Sums& sums) const {
        const size_t replicas = e.copies * e.temperatures, pairs = e.temperatures - 1;
        for (size_t i = threadIdx.x; i < replicas; i += blockDim.x) {
            const size_t at = sample * replicas + i;
            const int replica = e.holder[i];
            long long one, other;
            sums(replica, one, other);
            ((double*)(to + energy))[at] = __dmul_rn((double)energy_of.of(one, other), quantum);
            to[magnetization + at] = magnetization_of.of(one, other);
            to[trips + at] = *(volatile const u64*)(e.trips + i);  // atomics bypass the nearest cache
            ((int*)(to + holder))[at] = replica;
            ((int*)(to + place))[at] = e.place[i];
            ((signed char*)(to + last_end))[at] = e.last_end[i];
        }
        for (size_t t = threadIdx.x; t < pairs; t += blockDim.x) {
            to[attempts + sample * pairs + t] = *(volatile const u64*)(e.attempts + t);
            to[accepts + sample * pairs + t] = *(volatile const u64*)(e.accepts + t);
        }
        for (size_t q = threadIdx.x; q < compared; q += blockDim.x) to[overlap + sample * compared + q] = sites;
        for (size_t q = threadIdx.x; q < linked; q += blockDim.x) to[link_overlap + sample * linked + q] = bonds;
    }
};
CHECK_LAYOUT(Measured, engine.measuring.cuda.MEASURED);
