// One site of a replica-packed lattice: 128 replicas updated at once, as in spinsim/engine/cpu/packed.py.
#pragma once
#include "bitplane.cuh"

// The sites of one colour and parity of degree (spinsim/engine/batches.py), seen from one thread's site.
struct Batch { u32 first, size, slots, base, parity, offset; };

struct Model {
    const u32* order;          // sites, batch by batch
    const u32* neighbour;      // [batch.offset + slot * batch.size + q]
    const u8* signs;           // the same places: 1 where equal spins leave the bond unsatisfied
    size_t sign_stride;        // from sample to sample, 0 where all share them
};

struct Tables {
    const uint4* always;       // [block][parity][class]
    const uint4* planes;       // [block][parity][plane][class]
    const u64* thresholds;     // [block][parity][class][lane]
    const uint4* lanes;        // [block]: lanes in use
};

__device__ __forceinline__ void full_add(u32 a, u32 b, u32 c, u32& sum, u32& carry) {
    sum = a ^ b ^ c;
    carry = (a & b) | (c & (a | b));
}

// Unsatisfied bonds as three bit planes: 4 slots (one phantom bond more), 6 or 7.
template <int SLOTS>
__device__ __forceinline__ void add_slots(const u32 (&x)[SLOTS], u32& b0, u32& b1, u32& b2) {
    static_assert(SLOTS == 4 || SLOTS == 6 || SLOTS == 7, "the three sizes that batches.py pads degrees to");
    u32 sum_a, carry_a;
    full_add(x[0], x[1], x[2], sum_a, carry_a);
    if constexpr (SLOTS == 4) {
        const u32 low = sum_a ^ x[3], d = sum_a & x[3];
        b0 = ~low;
        b1 = carry_a ^ d ^ low;
        b2 = (carry_a & d) | (low & (carry_a ^ d));
    } else {
        u32 sum_b, carry_b, carry_c;
        full_add(x[3], x[4], x[5], sum_b, carry_b);
        full_add(sum_a, sum_b, SLOTS == 7 ? x[SLOTS - 1] : 0u, b0, carry_c);
        full_add(carry_a, carry_b, carry_c, b1, b2);
    }
}

// Unsatisfied bonds as COUNT_BITS bit planes; SLOTS = 0 takes any number, bond by bond.
template <int COUNT_BITS, int SLOTS>
__device__ __forceinline__ void count_bonds(u32 (&count)[COUNT_BITS][4], const uint4& spin, const uint4* lattice,
                                            const u32* neighbour, const u8* signs, const Batch& batch) {
    if constexpr (SLOTS > 0) {
        static_assert(COUNT_BITS == 3, "fixed numbers of slots have three bits of count");
        uint4 near[SLOTS];
        u32 sign[SLOTS];
#pragma unroll
        for (int k = 0; k < SLOTS; ++k) {
            near[k] = lattice[neighbour[(size_t)k * batch.size]];
            sign[k] = 0u - signs[(size_t)k * batch.size];
        }
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            u32 x[SLOTS];
#pragma unroll
            for (int k = 0; k < SLOTS; ++k) x[k] = word_of(spin, w) ^ word_of(near[k], w) ^ sign[k];
            add_slots<SLOTS>(x, count[0][w], count[1][w], count[2][w]);
        }
    } else {
#pragma unroll
        for (int b = 0; b < COUNT_BITS; ++b)
#pragma unroll
            for (int w = 0; w < 4; ++w) count[b][w] = 0u - (batch.base >> b & 1);
        for (u32 k = 0; k < batch.slots; ++k) {
            const uint4 near = lattice[neighbour[(size_t)k * batch.size]];
            const u32 sign = 0u - signs[(size_t)k * batch.size];
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
}

// The update of the q-th site of a batch. `lattice` and the rows of `always` and `planes`, those of the batch's parity,
// may lie in shared memory.
template <int COUNT_BITS, bool FIELD, int SLOTS, int ROUNDS, typename Rows>
__device__ __forceinline__ void update_site(uint4* lattice, u32 q, const Batch& batch, const Model& model, u32 sample,
                                            const Rows& always, const Rows& planes, const u64* thresholds, uint4 used,
                                            u32 block, HalfSweep time, Key key) {
    constexpr int BITS = FIELD ? COUNT_BITS + 1 : COUNT_BITS - 1;
    const u32 site = model.order[batch.first + q];
    const uint4 spin = lattice[site];
    u32 count[COUNT_BITS][4], cls[BITS][4], certain[4], undecided[4], accepted[4];
    count_bonds<COUNT_BITS, SLOTS>(count, spin, lattice, model.neighbour + batch.offset + q,
                                   model.signs + sample * model.sign_stride + batch.offset + q, batch);
#pragma unroll
    for (int w = 0; w < 4; ++w)
#pragma unroll
        for (int b = 0; b < BITS; ++b) cls[b][w] = b < COUNT_BITS ? count[b < COUNT_BITS ? b : 0][w] : word_of(spin, w);
    Select<BITS>::pick(cls, always, certain);
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        if (!FIELD) certain[w] |= count[COUNT_BITS - 1][w];
        undecided[w] = ~certain[w] & word_of(used, w);
    }
    accept_lanes<BITS, ROUNDS>(cls, undecided, accepted, planes, thresholds, site, block, time, key);
    lattice[site] =
        make_uint4(spin.x ^ ((certain[0] | accepted[0]) & used.x), spin.y ^ ((certain[1] | accepted[1]) & used.y),
                   spin.z ^ ((certain[2] | accepted[2]) & used.z), spin.w ^ ((certain[3] | accepted[3]) & used.w));
}
