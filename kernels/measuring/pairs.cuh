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
