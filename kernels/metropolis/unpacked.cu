// The general Metropolis update: spinsim/engine/metropolis/unpacked/cpu_sweep.py on the GPU.
#include "metropolis/refined.cuh"
#include "packing/unpacked.cuh"

constexpr int THREADS = HOST(engine.metropolis.unpacked.cuda.THREADS);

// Updates all sites of one colour (grid x, with the replicas) of every sample (grid y). A thread has CALLS Philox calls, each
// of four replicas. Where the energy has two TERMS, neighbours by bonds of term 0 stand before middle[site], the inverse
// temperatures of term 1 behind those of term 0 of each sample. `beta_stride` are the calls from one sample's temperatures to the
// next one's, 0 where all samples share them.
template <typename Integer, int CALLS, int ROUNDS, int TERMS>
__global__ __launch_bounds__(THREADS) void sweep_general(signed char* spins, const u32* batch, u32 batch_size,
                                                     const long long* start, const long long* middle, const u32* near,
                                                     const Integer* couplings, size_t coupling_stride,
                                                     const Integer* fields, size_t field_stride,
                                                     const double* double_beta, const float* single_beta,
                                                     u32 beta_stride, double zero_acceptance, u32 sites, u32 calls,
                                                     u32 first_sample, u32 first_call, u64 half_sweep,
                                                     const __grid_constant__ Key key) {
    static_assert(HOST(engine.metropolis.unpacked.replica_order.WORDS) == 4, "a call serves four replicas");
    static_assert(CALLS == 1 || CALLS == 4, "a thread loads 4 or 16 spins at once");
    using Words = Spins<CALLS>;
    const size_t item = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    const u32 threads = calls / CALLS;  // of one site
    if (item >= (size_t)batch_size * threads) return;
    const u32 part = item % threads, site = batch[item / threads], sample = blockIdx.y;
    Words* const lattice = (Words*)spins + (size_t)sample * sites * threads + part;
    const Integer field = fields[sample * field_stride + site];
    Integer local[TERMS][4 * CALLS];
    const Integer* const row = couplings + sample * coupling_stride;
    long long e = start[site];
#pragma unroll
    for (int term = 0; term < TERMS; ++term) {
#pragma unroll
        for (int r = 0; r < 4 * CALLS; ++r) local[term][r] = term == 0 ? field : 0;
        for (const long long last = term + 1 < TERMS ? middle[site] : start[site + 1]; e < last; ++e) {
            const Words s = lattice[(size_t)near[e] * threads];
            const Integer j = row[e];
#pragma unroll
            for (int r = 0; r < 4 * CALLS; ++r) local[term][r] += signed_byte(s.word[r / 4], r % 4) * j;
        }
    }
    const HalfSweep time = counter_half_sweep(half_sweep, STREAM_UPDATE);
    Words* const place = lattice + (size_t)site * threads;
    Words spin = *place;
    const u32 first = first_call + part * CALLS;  // all calls of a thread are in one block of 128 replicas
    const u32 block = counter_block(first_sample + sample, first / REFINE);
    const Prefix prefix = philox_prefix(site, block, time.word2, key);
#pragma unroll
    for (int c = 0; c < CALLS; ++c) {
        const u32 call = part * CALLS + c, plane = time.word3 + (first + c) % REFINE;
        const uint4 random = philox_finish<ROUNDS>(prefix, plane, key);
        const u32 at = sample * beta_stride + call, last_at = at + (TERMS - 1) * calls;  // of term 0 and of the last one
        const float4 four = ((const float4*)single_beta)[at], more = ((const float4*)single_beta)[last_at];
        const float beta[4] = {four.x, four.y, four.z, four.w}, last_beta[4] = {more.x, more.y, more.z, more.w};
        u32 flips = 0, ask = 0;  // 0xfe in the bytes of spins to flip, and of those to ask about again
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const int s = signed_byte(spin.word[c], k);
            const Integer half_cost = s * local[0][4 * c + k];
            const float x = (float)half_cost * beta[k], y = (float)(s * local[TERMS - 1][4 * c + k]) * last_beta[k];
            const Screen screen = TERMS == 1 ? screened(x, word_of(random, k)) : screened_sum(x, y, word_of(random, k));
            flips |= screen.accept ? 0xfeu << 8 * k : 0;
            ask |= screen.ask || (TERMS == 1 && half_cost == 0) ? 0xfeu << 8 * k : 0;
        }
        if (ask) {
            flips &= ~ask;
#pragma unroll
            for (int k = 0; k < 4; ++k)
                if (ask >> 8 * k & 0xff) {
                    const int s = signed_byte(spin.word[c], k);
                    const double x = (double)(s * local[0][4 * c + k]) * double_beta[4 * (size_t)at + k];
                    const double y = (double)(s * local[TERMS - 1][4 * c + k]) * double_beta[4 * (size_t)last_at + k];
                    const Threshold t = TERMS > 1 ? rare_threshold_of_sum(x, y, zero_acceptance)
                                        : x < 0   ? Threshold{true, 0}
                                        : x > 0   ? rare_exp_threshold(-x)
                                                  : threshold_of(zero_acceptance);
                    if (below<ROUNDS>(word_of(random, k), t, k, {site, block, time.word2, plane + REFINE}, key))
                        flips |= 0xfeu << 8 * k;
                }
        }
        spin.word[c] ^= flips;  // 1 is 0x01, -1 is 0xff
    }
    *place = spin;
}
