// What is measured of every copy at every temperature, written to a buffer from what is known of replicas; the buffer is
// laid out by spinsim/engine/measuring/cuda.py.
#pragma once
#include "tempering/exchange.cuh"

// Holds what kernels count of a replica; the third one, of the first sublattice, is for measurements alone.
struct Counted { long long one, other, third; };

// Is a weighted sum of these and a constant.
struct Linear {
    long long one, other, third, constant;

    __device__ __forceinline__ long long of(const Counted& counted) const {
        return one * counted.one + other * counted.other + third * counted.third + constant;
    }
};
CHECK_STRUCT(Linear, engine.measuring.cuda.LINEAR);

// Says at which words of 64 bits of a buffer begins what it holds of all samples; a measurement has `size` words.
struct Measured {
    size_t energy, magnetization, staggered_magnetization, overlap, link_overlap, attempts, accepts, trips, place, holder, last_end, size;
    Linear energy_of, magnetization_of, staggered_of;
    double quantum;
    size_t compared, linked, sites, bonds;  // of each sample: overlaps and link overlaps, and what they are of equal copies

    // Writes one sample's part, by a whole block or by so many threads of it. `sums(replica)` returns what was counted of a replica;
    // exchange.of(sample) may hold `place`, `holder` and `last_end` in shared memory.
    template <typename Sums>
    __device__ __forceinline__ void write(u64* to, const Exchange& e, u32 sample, const Sums& sums, u32 thread = threadIdx.x,
                                          u32 threads = blockDim.x) const {
        const size_t replicas = e.copies * e.temperatures, pairs = e.temperatures - 1;
        for (size_t i = thread; i < replicas; i += threads) {
            const size_t at = sample * replicas + i;
            const int replica = e.holder[i];
            const Counted counted = sums(replica);
            ((double*)(to + energy))[at] = __dmul_rn((double)energy_of.of(counted), quantum);
            to[magnetization + at] = magnetization_of.of(counted);
            to[staggered_magnetization + at] = staggered_of.of(counted);
            to[trips + at] = *(volatile const u64*)(e.trips + i);  // atomics bypass the nearest cache
            ((int*)(to + holder))[at] = replica;
            ((int*)(to + place))[at] = e.place[i];
            ((signed char*)(to + last_end))[at] = e.last_end[i];
        }
        for (size_t t = thread; t < pairs; t += threads) {
            to[attempts + sample * pairs + t] = *(volatile const u64*)(e.attempts + t);
            to[accepts + sample * pairs + t] = *(volatile const u64*)(e.accepts + t);
        }
        for (size_t q = thread; q < compared; q += threads) to[overlap + sample * compared + q] = sites;
        for (size_t q = thread; q < linked; q += threads) to[link_overlap + sample * linked + q] = bonds;
    }
};
CHECK_STRUCT(Measured, engine.measuring.cuda.MEASURED);
