// One site of a replica-packed lattice: 128 replicas updated at once, as in spinsim/engine/cpu/packed.py.
#pragma once
#include "bonds.cuh"
#include "tail.cuh"

// The sites of one colour and parity of degree (spinsim/engine/batches.py).
struct Batch { u32 first, size, slots, base, parity, offset; };

struct Model {
    const u32* order;          // sites, batch by batch
    const u32* neighbour;      // [batch.offset + slot * batch.size + q]
    const u8* signs;           // the same places: 1 where equal spins leave the bond unsatisfied
    size_t sign_stride;        // from sample to sample, 0 where all share them
    const uint4* near;         // up to 7 slots: [2 * (batch.first + q)], the site and its neighbours, eight words
    const uint2* negative;     // the same sites: bytes 0xff where `signs` is 1
    size_t negative_stride;
};

struct Tables {
    const uint4* always;       // [block][parity][class]
    const uint4* planes;       // [block][parity][plane][class]
    const u64* thresholds;     // [block][parity][class][lane]
    const uint4* lanes;        // [block]: lanes in use
};

// How sites are updated. SLOTS: bonds of every site, 4, 6 or 7, or 0 for any number; COUNT_BITS of their count; FIELD: the
// spin belongs to the class; PLAIN: the default zero-cost rule, no field and no certain acceptance but for gains.
template <int SLOTS_, int COUNT_BITS_, bool FIELD_, bool PLAIN_, int ROUNDS_>
struct Rule {
    static constexpr int SLOTS = SLOTS_, COUNT_BITS = COUNT_BITS_, ROUNDS = ROUNDS_;
    static constexpr bool FIELD = FIELD_, PLAIN = PLAIN_;
    static constexpr int BITS = FIELD ? COUNT_BITS + 1 : COUNT_BITS - 1;
    static_assert(SLOTS == 0 || COUNT_BITS == 3, "fixed numbers of slots have three bits of count");
    static_assert(!PLAIN || (SLOTS > 0 && !FIELD), "plain rules are for fixed numbers of slots without a field");
    using Group = Classes<PLAIN ? SLOTS : 0, BITS, 4>;
};

// Spins of a site's neighbours as its bonds want it: SLOTS words of each of the four.
template <int SLOTS>
struct Wanted {
    u32 word[4][SLOTS];

    __device__ __forceinline__ void load(const uint4* lattice, const u32 (&site)[8], uint2 negative) {
#pragma unroll
        for (int k = 0; k < SLOTS; ++k) {
            const uint4 near = lattice[site[1 + k]];
            const u32 sign = __byte_perm(k < 4 ? negative.x : negative.y, 0, 0x1111 * (k & 3));
#pragma unroll
            for (int w = 0; w < 4; ++w) word[w][k] = word_of(near, w) ^ sign;
        }
    }
};

// Unsatisfied bonds of any number of slots, bond by bond.
template <int COUNT_BITS>
__device__ __forceinline__ void count_slots(u32 (&count)[COUNT_BITS][4], const uint4& spin, const uint4* lattice,
                                            const u32* neighbour, const u8* signs, const Batch& batch) {
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

// The update of the q-th site of a batch; the whole warp must call it, with `used` empty where there is no such site.
// `lattice` and the rows of `always` and `planes`, those of the batch's parity, may lie in shared memory.
template <typename R, typename Always, typename Rows, typename Finish>
__device__ __forceinline__ void update_site(uint4* lattice, u32 q, const Batch& batch, const Model& model, u32 sample,
                                            const Always& always, const Rows& planes, uint4 used, u32 block, HalfSweep time,
                                            const Key& key, Tail<R::BITS>& tail, Finish finish) {
    typename R::Group classes;
    u32 site, certain[4], zero[4] = {}, undecided[4], accepted[4], deep[4];
    uint4 spin;
    if constexpr (R::SLOTS > 0) {
        const uint4 head = __ldg(model.near + 2 * (batch.first + q)), rest = __ldg(model.near + 2 * (batch.first + q) + 1);
        const u32 index[8] = {head.x, head.y, head.z, head.w, rest.x, rest.y, rest.z, rest.w};
        site = index[0];
        spin = lattice[site];
        Wanted<R::SLOTS> wanted;
        wanted.load(lattice, index, __ldg(model.negative + sample * model.negative_stride + batch.first + q));
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            if constexpr (R::PLAIN) {
                classify<R::SLOTS>(wanted.word[w], word_of(spin, w), classes.bit[0][w], classes.bit[1][w], certain[w], zero[w]);
            } else {
                u32 count[3];
                count_unsatisfied_bonds<R::SLOTS>(wanted.word[w], word_of(spin, w), count);
#pragma unroll
                for (int b = 0; b < R::BITS; ++b) classes.bit[b][w] = b < 3 ? count[b] : word_of(spin, w);
                certain[w] = R::FIELD ? 0u : count[2];
            }
        }
    } else {
        site = model.order[batch.first + q];
        spin = lattice[site];
        u32 count[R::COUNT_BITS][4];
        count_slots<R::COUNT_BITS>(count, spin, lattice, model.neighbour + batch.offset + q,
                                   model.signs + sample * model.sign_stride + batch.offset + q, batch);
#pragma unroll
        for (int w = 0; w < 4; ++w) {
#pragma unroll
            for (int b = 0; b < R::BITS; ++b)
                classes.bit[b][w] = b < R::COUNT_BITS ? count[b < R::COUNT_BITS ? b : 0][w] : word_of(spin, w);
            certain[w] = R::FIELD ? 0u : count[R::COUNT_BITS - 1][w];
        }
    }
    if constexpr (!R::PLAIN) {
        u32 without_chance[4];
        classes.pick(always, without_chance);
#pragma unroll
        for (int w = 0; w < 4; ++w) certain[w] |= without_chance[w];
    }
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        zero[w] &= word_of(used, w);
        undecided[w] = word_of(used, w) & ~certain[w] & ~zero[w];
    }
    decide_lanes<R::PLAIN && R::SLOTS != 7, R::ROUNDS>(classes, zero, undecided, accepted, deep, planes, site, block, time, key);
    u32 flip[4];
#pragma unroll
    for (int w = 0; w < 4; ++w) flip[w] = (certain[w] | accepted[w]) & word_of(used, w);
    if (used.x | used.y | used.z | used.w)
        lattice[site] = make_uint4(spin.x ^ flip[0], spin.y ^ flip[1], spin.z ^ flip[2], spin.w ^ flip[3]);
    tail.take(site, undecided, deep, classes.bit, finish);
}
