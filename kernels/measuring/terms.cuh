// Numbers of a measurement that are added up, and terms made of them, as spinsim/engine/measuring/reduction.py has them.
#pragma once
#include "bits/types.cuh"

constexpr u32 THREADS = HOST(engine.measuring.cuda_reduction.THREADS);
constexpr u32 ELEMENTS = HOST(engine.measuring.cuda_reduction.MOST_ELEMENTS);
constexpr int ABSOLUTE = HOST(engine.measuring.reduction.ABSOLUTE);

// Finds a measured number, an integer or, where it `is_real`, a double.
struct Source {
    size_t first, of_sample, of_chain, of_place, count, is_real;
    u32 elements[ELEMENTS];

    __device__ __forceinline__ double at(const u64* word) const {
        return is_real ? __longlong_as_double((long long)*word) : (double)(long long)*word;
    }

    __device__ __forceinline__ double of(const u64* numbers, size_t sample, size_t chain, size_t place) const {
        const u64* const own = numbers + first + sample * of_sample + chain * of_chain + place * of_place;
        double x = at(own + elements[0]);
#pragma unroll 1
        for (u32 k = 1; k < count; ++k) x += at(own + elements[k]);
        return x;
    }
};
CHECK_STRUCT(Source, engine.measuring.cuda_reduction.SOURCE);

// Is a power of scales[0][place] x_0 + scales[1][place] x_1 + constant[place]; followed, own, judged and the rows
// of sums over energy are -1 where a term has none.
struct Term {
    Source sources[2];
    size_t count, chains;
    long long power, followed, own, judged, row, pair_row;
};
CHECK_STRUCT(Term, engine.measuring.cuda_reduction.TERM);

__device__ __forceinline__ double power_of(double x, int power) {
    if (power == 1) return x;
    if (power == ABSOLUTE) return fabs(x);
    const double square = x * x;
    return power == 2 ? square : square * square;
}
