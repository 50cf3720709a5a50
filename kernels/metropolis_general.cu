// The general Metropolis update, one thread for four replicas of one site: spinsim/engine/cpu/general.py on the GPU.
// spins[(sample * sites + site) * width + replica] is a signed byte, +1 or -1; width is a multiple of 4.
#include "acceptance.cuh"

constexpr u32 REFINE = 32;  // plane offset of the lower halves of the uniforms

// All sites of one colour (grid x, with the calls of four replicas) of every sample (grid y).
template <typename Integer, int ROUNDS>
__global__ __launch_bounds__(256) void sweep_general(signed char* spins, const u32* batch, u32 batch_size,
                                                     const long long* start, const u32* near, const Integer* couplings,
                                                     size_t coupling_stride, const Integer* fields, size_t field_stride,
                                                     const double* double_beta, double zero_acceptance, u32 sites, u32 calls,
                                                     u32 first_sample, u32 first_call, u64 half_sweep, Key key) {
    const size_t item = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (item >= (size_t)batch_size * calls) return;
    const u32 call = item % calls, site = batch[item / calls], sample = blockIdx.y;
    const char4* lattice = (const char4*)spins + (size_t)sample * sites * calls;
    const Integer field = fields[sample * field_stride + site];
    Integer local[4] = {field, field, field, field};
    for (long long e = start[site]; e < start[site + 1]; ++e) {
        const char4 s = lattice[(size_t)near[e] * calls + call];
        const Integer j = couplings[sample * coupling_stride + e];
        local[0] += s.x > 0 ? j : -j;
        local[1] += s.y > 0 ? j : -j;
        local[2] += s.z > 0 ? j : -j;
        local[3] += s.w > 0 ? j : -j;
    }
    const u32 global_call = first_call + call;
    const HalfSweep time = counter_half_sweep(half_sweep, STREAM_UPDATE);
    const u32 block = counter_block(first_sample + sample, global_call / REFINE), plane = time.word3 + global_call % REFINE;
    const uint4 random = philox<ROUNDS>(site, block, time.word2, plane, key);
    const u32 upper[4] = {random.x, random.y, random.z, random.w};
    const char4 own = lattice[(size_t)site * calls + call];
    signed char spin[4] = {own.x, own.y, own.z, own.w};
    bool always_zero = zero_acceptance >= 1.0;
    const u64 zero_threshold = always_zero ? 0 : __double2ull_rz(__dmul_rn(zero_acceptance, 18446744073709551616.0));
#pragma unroll
    for (int r = 0; r < 4; ++r) {
        const Integer half_cost = spin[r] > 0 ? local[r] : -local[r];
        bool flip = half_cost < 0;
        if (!flip) {
            u64 threshold = zero_threshold;
            flip = always_zero;
            if (half_cost != 0) {
                const double y = -__dmul_rn((double)half_cost, double_beta[4 * call + r]);
                flip = exp_threshold(y > -45.0 ? y : -45.0, threshold);
            }
            if (!flip) {
                const u32 top = (u32)(threshold >> 32);
                flip = upper[r] < top;
                if (upper[r] == top) {
                    const uint4 finer = philox<ROUNDS>(site, block, time.word2, plane + REFINE, key);
                    const u32 lower[4] = {finer.x, finer.y, finer.z, finer.w};
                    flip = lower[r] < (u32)threshold;
                }
            }
        }
        if (flip) spin[r] = -spin[r];
    }
    ((char4*)spins)[((size_t)sample * sites + site) * calls + call] = make_char4(spin[0], spin[1], spin[2], spin[3]);
}
