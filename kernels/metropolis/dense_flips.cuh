// Which of a block's 64 sites of one replica of a dense model flip. A uniform says up to which cost it accepts a flip, so that a try is
// a comparison of integers; all sites are tried at once, with what is believed of the others' flips, until that is what is found.
#pragma once
#include "metropolis/refined.cuh"

template <typename Integer>
struct Wide;
template <>
struct Wide<int> {
    using Unsigned = u32;
    static constexpr float MOST = 1 << 30;  // no half cost is larger
    __device__ __forceinline__ static int floor(float x) { return __float2int_rd(x); }
};

constexpr float SURELY = 1.0f / (1 << 20), NEARLY = 1.0f / (1 << 19);  // of -log u: relative and absolute
constexpr u32 FEW = 1 << 20, FEWEST = 1 << 12;  // uniforms whose lower halves count for more, and that say nothing
constexpr float NEARLY_OF_FEW = 1.0f / (1 << 11);
constexpr float HOTTEST = 1 << 15;  // times MOST: up to there log u tells bounds that fit

// Bounds of the half costs that are accepted at a temperature, as slopes in log2 u and constants. The error of -log u is that of
// lg2.approx, below 2^-22 or as much of its value, that of an upper word for all its uniforms, 2^-20 (of FEW 2^-12), and that of a few
// roundings; that of its quotient by double_beta a few roundings more. The bounds leave more.
template <typename Integer>
__device__ __forceinline__ float4 scale_of(double double_beta) {
    constexpr float MOST = Wide<Integer>::MOST, LOG_2 = 0.69314718f;
    const float per_beta = 1.0f / (float)double_beta;
    if (!(per_beta < MOST * HOTTEST)) return {0, per_beta > 3e38f ? MOST : -1.0f, 0, MOST};  // infinite: all are accepted
    return {per_beta * (-LOG_2 * (1 - SURELY)), per_beta * -NEARLY, per_beta * (-LOG_2 * (1 + SURELY)), per_beta * NEARLY};
}

// Which half costs a uniform accepts: all up to `certain`, but 0 where it is refused, and none that is larger by `rest` + 1 or more;
// between them all 64 bits of the uniform decide.
template <typename Integer>
struct Bounds {
    using Type = Wide<Integer>;
    using Unsigned = typename Type::Unsigned;
    static constexpr Unsigned REFUSED = (Unsigned)1 << (8 * sizeof(Integer) - 1);
    Integer certain;
    Unsigned rest;  // the highest bit: whether 0 is refused

    __device__ __forceinline__ static Bounds none() { return {(Integer)REFUSED, 0}; }

    // Of the upper word of a uniform; `top` is that of the threshold of costs of 0. Sets `undecided` where it takes with_care.
    __device__ __forceinline__ static Bounds of(u32 upper, const float4& scale, u32 top, bool& undecided) {
        const float log = log2_of(upper);
        undecided = undecided || upper < FEW || upper == top;
        return between(fmaf(log, scale.x, scale.y), fmaf(log, scale.z, scale.w), upper < top);
    }

    __device__ __noinline__ static Bounds with_care(u32 upper, float4 scale, Threshold zero) {
        const u32 top = (u32)(zero.value >> 32);
        if (upper < FEWEST || (upper == top && !zero.always)) return {-1, (Unsigned)Type::MOST};
        const float log = log2_of(upper), wide = upper < FEW ? scale.w * (NEARLY_OF_FEW / NEARLY) : 0;
        const float low = fmaf(log, scale.x, scale.y) - wide, high = fmaf(log, scale.z, scale.w) + wide;
        return between(low, fminf(high, Type::MOST), zero.always || upper < top);
    }

    __device__ __forceinline__ bool accepts(Integer half_cost) const {
        return half_cost <= certain && half_cost != (Integer)(~rest & REFUSED);  // the least integer is none
    }
    __device__ __forceinline__ bool asks(Integer half_cost) const {
        return (Unsigned)half_cost + ~(Unsigned)certain < (rest & ~REFUSED);
    }

private:
    __device__ __forceinline__ static float log2_of(u32 upper) {
        float log;
        asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(log) : "f"((float)upper * 0x1p-32f));
        return log;
    }
    __device__ __forceinline__ static Bounds between(float low, float high, bool zero) {
        const Integer certain = Type::floor(fmaxf(low, zero ? 0.0f : -1.0f));
        const Unsigned rest = (Unsigned)Type::floor(high) - (Unsigned)certain;
        return {certain, zero ? rest : rest | (~(Unsigned)certain & REFUSED)};
    }
};

// Where the uniforms of a site and four replicas come from.
struct Counter {
    u32 site, block;
    HalfSweep time;
};

// Decides by the full 64 bits of the k-th of them; `half_cost` is not below 0.
template <int ROUNDS, typename Integer>
__device__ __noinline__ bool accepted(Integer half_cost, double double_beta, double zero_acceptance, Counter of, int k, const Key& key) {
    const u32 upper = word_of(philox<ROUNDS>(of.site, of.block, of.time.word2, of.time.word3, key), k);
    const Threshold t = half_cost == 0 ? threshold_of(zero_acceptance) : rare_exp_threshold(-((double)half_cost * double_beta));
    return below<ROUNDS>(upper, t, k, {of.site, of.block, of.time.word2, of.time.word3 + REFINE}, key);
}

// What all warps of a group of replicas know of its random numbers and temperatures; it lies in shared memory.
struct Draws {
    const u32* order;
    const u32* colour;
    const double* double_beta;  // of the group
    double zero_acceptance;
    u64 half_sweep;             // before the first sweep
    u32 colours, blocks;        // of a sweep
    u32 call, block;            // of the group's first replica: its Philox call within a block of 128, counter word 1

    // Of a place in the order of visits and the quad-th four replicas.
    __device__ __forceinline__ Counter counter(u32 place, u64 half_sweep, u32 quad) const {
        HalfSweep time = counter_half_sweep(half_sweep + colour[place], STREAM_UPDATE);
        time.word3 += call + quad;
        return {order[place], block, time};
    }

    // Says whether a flip at such a place, in a sweep from the first one on, is accepted.
    template <int ROUNDS, typename Integer>
    __device__ __forceinline__ bool accepts(Integer half_cost, u32 place, u32 sweep, u32 replica, const Key& key) const {
        const Counter of = counter(place, half_sweep + (u64)sweep * colours, replica / 4);
        return accepted<ROUNDS>(half_cost, double_beta[replica], zero_acceptance, of, replica % 4, key);
    }
};

// Returns which of two sites of each lane flip. `again` gives the half costs with flips instead of other ones; as a site's are those
// with the flips of earlier sites, what gives itself is what one site after the other gives. `accepts` says whether a site's flip is
// accepted.
template <typename Integer, typename Accepts, typename Again>
__device__ __forceinline__ uint2 settle(Integer (&half_cost)[2], const Accepts& accepts, const Again& again) {
    uint2 flips = {0, 0};
    while (true) {
        const bool first = accepts(0, half_cost[0]), second = accepts(1, half_cost[1]);
        const uint2 next = {__ballot_sync(~0u, first), __ballot_sync(~0u, second)};
        if (next.x == flips.x && next.y == flips.y) return flips;
        again(half_cost, next, flips);
        flips = next;
    }
}
