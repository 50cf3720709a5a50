// The general Metropolis update: spinsim/engine/cpu/general.py on the GPU.
// spins[(sample * sites + site) * width + replica] is a signed byte, +1 or -1; width is a multiple of 4.
#include "acceptance.cuh"
#include "bitplane.cuh"

constexpr u32 REFINE = 32;  // plane offset of the lower halves of the uniforms

// Signed byte k of a word: one instruction, which picks a byte and its sign three times.
__device__ __forceinline__ int signed_byte(u32 word, int k) {
    int out;
    asm("prmt.b32 %0, %1, 0, %2;" : "=r"(out) : "r"(word), "r"(0x8880 + 0x1111 * k));
    return out;
}

// All sites of one colour (grid x, with the replicas) of every sample (grid y). A thread has CALLS Philox calls, each of
// four replicas.
template <typename Integer, int CALLS, int ROUNDS>
__global__ __launch_bounds__(256) void sweep_general(signed char* spins, const u32* batch, u32 batch_size,
                                                     const long long* start, const u32* near, const Integer* couplings,
                                                     size_t coupling_stride, const Integer* fields, size_t field_stride,
                                                     const double* double_beta, const float* single_beta,
                                                     double zero_acceptance, u32 sites, u32 calls, u32 first_sample,
                                                     u32 first_call, u64 half_sweep, Key key) {
    static_assert(CALLS == 1 || CALLS == 4, "a thread loads 4 or 16 spins at once");
    struct alignas(4 * CALLS) Spins { u32 word[CALLS]; };
    const size_t item = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    const u32 threads = calls / CALLS;  // of one site
    if (item >= (size_t)batch_size * threads) return;
    const u32 part = item % threads, site = batch[item / threads], sample = blockIdx.y;
    Spins* const lattice = (Spins*)spins + (size_t)sample * sites * threads + part;
    const Integer field = fields[sample * field_stride + site];
    Integer local[4 * CALLS];
#pragma unroll
    for (int r = 0; r < 4 * CALLS; ++r) local[r] = field;
    const Integer* const row = couplings + sample * coupling_stride;
    for (long long e = start[site], last = start[site + 1]; e < last; ++e) {
        const Spins s = lattice[(size_t)near[e] * threads];
        const Integer j = row[e];
#pragma unroll
        for (int r = 0; r < 4 * CALLS; ++r) local[r] += signed_byte(s.word[r / 4], r % 4) * j;
    }
    const HalfSweep time = counter_half_sweep(half_sweep, STREAM_UPDATE);
    Spins* const place = lattice + (size_t)site * threads;
    Spins spin = *place;
#pragma unroll
    for (int c = 0; c < CALLS; ++c) {
        const u32 call = part * CALLS + c, global_call = first_call + call;
        const u32 block = counter_block(first_sample + sample, global_call / REFINE);
        const u32 plane = time.word3 + global_call % REFINE;
        const uint4 random = philox<ROUNDS>(site, block, time.word2, plane, key);
        const float4 four = ((const float4*)single_beta)[call];
        const float beta[4] = {four.x, four.y, four.z, four.w};
        u32 flips = 0;  // 0xfe in the bytes of spins to flip
        bool ask = false;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const int r = 4 * c + k;
            const Integer half_cost = signed_byte(spin.word[c], k) * local[r];
            const Screen screen = half_cost > 0 ? screened((float)half_cost * beta[k], word_of(random, k))
                                                : half_cost < 0 ? ACCEPT : ASK;
            local[r] = screen == ASK ? half_cost : -1;  // of what is left to ask
            ask |= screen == ASK;
            flips |= screen == ACCEPT ? 0xfeu << 8 * k : 0;
        }
        if (ask) {
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                const int r = 4 * c + k;
                if (local[r] < 0) continue;
                const Threshold t = local[r] == 0 ? threshold_of(zero_acceptance)
                                                  : exp_threshold(-__dmul_rn((double)local[r], double_beta[4 * call + k]));
                const u32 upper = word_of(random, k), top = (u32)(t.value >> 32);
                bool flip = t.always || upper < top;
                if (!t.always && upper == top) {
                    const uint4 finer = philox<ROUNDS>(site, block, time.word2, plane + REFINE, key);
                    flip = word_of(finer, k) < (u32)t.value;
                }
                flips |= flip ? 0xfeu << 8 * k : 0;
            }
        }
        spin.word[c] ^= flips;  // 1 is 0x01, -1 is 0xff
    }
    *place = spin;
}
