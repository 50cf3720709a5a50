// spinsim/acceptance.py on the device: exp from plain IEEE operations, never contracted, so that both agree to the bit.
#pragma once
#include "random/philox.cuh"

__device__ __forceinline__ double times_plus(double a, double b, double c) { return __dadd_rn(__dmul_rn(a, b), c); }

// What a 64-bit uniform is compared with; a probability of 1 has no threshold.
struct Threshold {
    bool always;
    u64 value;
};

__device__ __forceinline__ Threshold threshold_of(double probability) {
    if (probability >= 1.0) return {true, 0};
    return {false, __double2ull_rz(__dmul_rn(probability, 18446744073709551616.0))};
}

// Returns exp(y), y not above 0.
__device__ __forceinline__ double exp_of(double y) {
    y = y > -45.0 ? y : -45.0;
    const double shift = 6755399441055744.0;  // 1.5 * 2^52
    const double n = __dsub_rn(times_plus(y, 1.4426950408889634, shift), shift);
    double x = __dsub_rn(y, __dmul_rn(n, 0.6931471803691238));
    x = __dsub_rn(x, __dmul_rn(n, 1.9082149292705877e-10));
    double r = times_plus(x, 1.0 / 6227020800.0, 1.0 / 479001600.0);
    r = times_plus(r, x, 1.0 / 39916800.0);
    r = times_plus(r, x, 1.0 / 3628800.0);
    r = times_plus(r, x, 1.0 / 362880.0);
    r = times_plus(r, x, 1.0 / 40320.0);
    r = times_plus(r, x, 1.0 / 5040.0);
    r = times_plus(r, x, 1.0 / 720.0);
    r = times_plus(r, x, 1.0 / 120.0);
    r = times_plus(r, x, 1.0 / 24.0);
    r = times_plus(r, x, 1.0 / 6.0);
    r = times_plus(r, x, 0.5);
    r = times_plus(r, x, 1.0);
    r = times_plus(r, x, 1.0);
    return __dmul_rn(r, __longlong_as_double((long long)(1023 + (int)n) << 52));
}

// Returns the threshold of probability exp(y), y below 0.
__device__ __forceinline__ Threshold exp_threshold(double y) { return threshold_of(exp_of(y)); }

// Does the same out of line, for where it is rare and written out many times.
__device__ __noinline__ Threshold rare_exp_threshold(double y) { return exp_threshold(y); }

constexpr float NEARLY_NOTHING = 1.0f / (1u << HOST(acceptance.NOTHING_BITS));  // what costs no more is taken for nothing

// Returns the threshold of a flip that costs x = one + other, as acceptance_of_terms does.
__device__ __noinline__ Threshold rare_threshold_of_sum(double one, double other, double zero_acceptance) {
    const double x = __dadd_rn(one, other), p = exp_of(x > 0 ? -x : 0.0);
    return threshold_of(fabs(x) <= NEARLY_NOTHING ? __dmul_rn(zero_acceptance, p) : p);
}

// A flip decided in single precision, where that is sure: all but about one in 10,000.
struct Screen { bool accept, undecided; };

// Says whether uniform < exp(-x); `upper` are the uniform's upper 32 bits. The exponent's error is below |x| 2^-21, that of
// ex2.approx below 2^-22, those of the uniform and of the difference below 2^-22; the margins are four times as wide and more.
__device__ __forceinline__ Screen screened(float x, u32 upper) {
    const float one_to_two = __uint_as_float(0x3f800000u | upper >> 9);
    float p;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(p) : "f"(x * -1.44269504f));
    const float ahead = (p + 1.0f) - one_to_two, scaled = p * 0x1p-19f;
    const float margin = fmaf(scaled, fabsf(x), scaled + 0x1p-20f);
    return {ahead > margin, !(fabsf(ahead) > margin)};
}

// Does the same of x = one + other, whose error is below (|one| + |other|) 2^-21. The margins hold where x is not lost in it; else,
// and where the sum may be taken for nothing, infinite or undefined, it asks.
__device__ __forceinline__ Screen screened_sum(float one, float other, u32 upper) {
    const float x = one + other, size = fabsf(one) + fabsf(other);
    if (!(fabsf(x) > fmaf(size, 0x1p-17f, 2 * NEARLY_NOTHING))) return {false, true};
    const float one_to_two = __uint_as_float(0x3f800000u | upper >> 9);
    float p;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(p) : "f"(x * -1.44269504f));
    const float ahead = (p + 1.0f) - one_to_two, scaled = p * 0x1p-19f;
    const float margin = fmaf(scaled, size, scaled + 0x1p-20f);
    return {x < 0 || ahead > margin, x > 0 && !(fabsf(ahead) > margin)};
}
