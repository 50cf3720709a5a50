// spinsim/acceptance.py on the device: exp from plain IEEE operations, never contracted, so that both agree to the bit.
#pragma once
#include "philox.cuh"

__device__ __forceinline__ double times_plus(double a, double b, double c) { return __dadd_rn(__dmul_rn(a, b), c); }

// 64-bit threshold of exp(y), y from -45 to 0: floor(2^64 exp(y)); always true where exp(y) is 1.
__device__ __forceinline__ bool exp_threshold(double y, u64& threshold) {
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
    const double p = __dmul_rn(r, __longlong_as_double((long long)(1023 + (int)n) << 52));
    threshold = p >= 1.0 ? 0 : __double2ull_rz(__dmul_rn(p, 18446744073709551616.0));
    return p >= 1.0;
}
