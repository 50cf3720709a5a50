// Replica-packed Metropolis, one thread for 128 replicas of one site: spinsim/engine/cpu/packed.py on the GPU.
// state[(sample * blocks + block) * sites + site] is a uint4 of 128 lanes.
#include "bitplane.cuh"

// Unsatisfied bonds of every lane as COUNT_BITS bit planes, starting from `base` phantom bonds.
template <int COUNT_BITS>
__device__ __forceinline__ void count_bonds(u32 (&count)[COUNT_BITS][4], const uint4& spin, const uint4* lattice,
                                            const u32* neighbour, const u8* signs, u32 sites, int slots, u32 base) {
#pragma unroll
    for (int b = 0; b < COUNT_BITS; ++b)
#pragma unroll
        for (int w = 0; w < 4; ++w) count[b][w] = 0u - (base >> b & 1);
    for (int k = 0; k < slots; ++k) {
        const uint4 near = lattice[neighbour[(size_t)k * sites]];
        const u32 sign = 0u - signs[(size_t)k * sites];
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            u32 carry = word_of(spin, w) ^ word_of(near, w) ^ sign;
#pragma unroll
            for (int b = 0; b < COUNT_BITS; ++b) {
                const u32 low = count[b][w];
                count[b][w] = low ^ carry;
                carry &= low;
            }
        }
    }
}

// One batch of sites of one colour and parity of degree, all blocks (grid y) and samples (grid z).
template <int COUNT_BITS, bool FIELD, int ROUNDS>
__global__ __launch_bounds__(128) void sweep_replica(uint4* state, const u32* batch, const u32* neighbour, const u8* signs,
                                                     u32 batch_size, int slots, u32 base, int parity, size_t sign_stride,
                                                     u32 sites, const uint4* always, const uint4* planes,
                                                     const u64* thresholds, const uint4* lanes, u32 first_sample,
                                                     u32 first_block, u64 half_sweep, u32 key_low, u32 key_high) {
    static_assert(COUNT_BITS >= 3 && COUNT_BITS <= 5, "degrees up to 31");
    constexpr int BITS = FIELD ? COUNT_BITS + 1 : COUNT_BITS - 1;
    const u32 q = blockIdx.x * blockDim.x + threadIdx.x;
    if (q >= batch_size) return;
    const u32 block = blockIdx.y, sample = blockIdx.z, site = batch[q];
    uint4* lattice = state + ((size_t)sample * gridDim.y + block) * sites;
    const uint4 spin = lattice[site];
    u32 count[COUNT_BITS][4], cls[BITS][4], undecided[4], accepted[4], flip[4];
    count_bonds<COUNT_BITS>(count, spin, lattice, neighbour + q, signs + sample * sign_stride + q, batch_size, slots, base);
    const size_t table = (size_t)block * 2 + parity;
    const uint4 used = lanes[block];
#pragma unroll
    for (int w = 0; w < 4; ++w)
#pragma unroll
        for (int b = 0; b < BITS; ++b) cls[b][w] = FIELD && b == COUNT_BITS ? word_of(spin, w) : count[b < COUNT_BITS ? b : 0][w];
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        u32 certain = Select<BITS>::pick(cls, always + (table << BITS), w);
        if (!FIELD) certain |= count[COUNT_BITS - 1][w];
        flip[w] = certain;
        undecided[w] = ~certain & word_of(used, w);
    }
    accept_lanes<BITS, ROUNDS>(cls, undecided, accepted, planes + ((table * FIXED_PLANES) << BITS),
                               thresholds + ((table << BITS) << 7), site,
                               counter_block(first_sample + sample, first_block + block),
                               counter_half_sweep(half_sweep, STREAM_UPDATE), {key_low, key_high});
    lattice[site] = make_uint4(spin.x ^ (flip[0] | accepted[0]) & used.x, spin.y ^ (flip[1] | accepted[1]) & used.y,
                               spin.z ^ (flip[2] | accepted[2]) & used.z, spin.w ^ (flip[3] | accepted[3]) & used.w);
}
