// Which replicas are compared: the copies at equal temperatures of one ladder.
#pragma once
#include "bits/types.cuh"

// Names the replicas of pair q * temperatures + t: those of copies[q].x and copies[q].y at temperature t. Past the `count`
// pairs: each replica alone, in the order of `holder`, its partner -1.
struct Pairs {
    const int* holder;   // [sample][copy][temperature]
    const int2* copies;  // [q]
    size_t replicas, temperatures, count;

    __device__ __forceinline__ int2 of(u32 sample, u32 pair) const {
        const int* const of_sample = holder + (size_t)sample * replicas;
        if (pair >= count) return make_int2(of_sample[pair - count], -1);
        const u32 q = pair / (u32)temperatures, t = pair - q * (u32)temperatures;
        return make_int2(of_sample[copies[q].x * temperatures + t], of_sample[copies[q].y * temperatures + t]);
    }
};
CHECK_STRUCT(Pairs, engine.moves.exchange_cuda.PAIRS);

// Samples of several measurements in succession, whose states follow each other. The numbers of a measurement, `holder` of
// Pairs among them, begin `words` behind those of the one before.
struct Successive {
    u32 first, samples;  // of the launch, counted through all measurements; of a measurement
    size_t words;

    __device__ __forceinline__ u32 state() const { return first + blockIdx.z; }
    __device__ __forceinline__ u32 sample() const { return state() % samples; }
    __device__ __forceinline__ size_t skipped() const { return state() / samples * words; }
};
CHECK_STRUCT(Successive, engine.measuring.cuda_comparison.SUCCESSIVE);

// The pairs of a measurement whose numbers begin `words` of 64 bits behind.
__device__ __forceinline__ Pairs pairs_behind(const Pairs& first, size_t words) {
    return {first.holder + 2 * words, first.copies, first.replicas, first.temperatures, first.count};
}
