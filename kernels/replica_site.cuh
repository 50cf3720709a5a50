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
    const uint4* near;         // up to 7 slots: [2 * (batch.first + q)], eight words, 16 times the site and its neighbours
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

// A site's place, its neighbours' and the signs of its bonds; fetched one site ahead, so that nothing waits for it.
struct Record {
    uint4 head, rest;
    uint2 negative;

    __device__ __forceinline__ static Record fetch(const Model& model, u32 sample, u32 i) {
        return {__ldg(model.near + 2 * i), __ldg(model.near + 2 * i + 1),
                __ldg(model.negative + sample * model.negative_stride + i)};
    }
    __device__ __forceinline__ u32 offset(int k) const { return k < 4 ? word_of(head, k) : word_of(rest, k - 4); }
    __device__ __forceinline__ u32 sign(int k) const {
        return __byte_perm(k < 4 ? negative.x : negative.y, 0, 0x1111 * (k & 3));
    }
};

__device__ __forceinline__ uint4& at_offset(uint4* lattice, u32 offset) { return *(uint4*)((char*)lattice + offset); }

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

// The lanes of one site before chance decides.
template <typename R>
struct Chances {
    typename R::Group classes;
    uint4 spin;
    u32 certain[4], zero[4];
};

// Sites of up to seven bonds.
template <typename R>
__device__ __forceinline__ Chances<R> weigh(uint4* lattice, const Record& record) {
    Chances<R> c;
    c.spin = at_offset(lattice, record.offset(0));
    u32 wanted[4][R::SLOTS];  // the spin that each bond asks for
#pragma unroll
    for (int k = 0; k < R::SLOTS; ++k) {
        const uint4 near = at_offset(lattice, record.offset(1 + k));
#pragma unroll
        for (int w = 0; w < 4; ++w) wanted[w][k] = word_of(near, w) ^ record.sign(k);
    }
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        const u32 spin = word_of(c.spin, w);
        if constexpr (R::PLAIN) {
            classify<R::SLOTS>(wanted[w], spin, c.classes.bit[0][w], c.classes.bit[1][w], c.certain[w], c.zero[w]);
        } else {
            u32 count[3];
            count_unsatisfied_bonds<R::SLOTS>(wanted[w], spin, count);
#pragma unroll
            for (int b = 0; b < R::BITS; ++b) c.classes.bit[b][w] = b < 3 ? count[b] : spin;
            c.certain[w] = R::FIELD ? 0u : count[2];
            c.zero[w] = 0;
        }
    }
    return c;
}

// Sites of any number of bonds.
template <typename R>
__device__ __forceinline__ Chances<R> weigh(const uint4* lattice, u32 site, u32 q, const Batch& batch, const Model& model,
                                            u32 sample) {
    Chances<R> c;
    c.spin = lattice[site];
    u32 count[R::COUNT_BITS][4];
    count_slots<R::COUNT_BITS>(count, c.spin, lattice, model.neighbour + batch.offset + q,
                               model.signs + sample * model.sign_stride + batch.offset + q, batch);
#pragma unroll
    for (int w = 0; w < 4; ++w) {
#pragma unroll
        for (int b = 0; b < R::BITS; ++b)
            c.classes.bit[b][w] = b < R::COUNT_BITS ? count[b < R::COUNT_BITS ? b : 0][w] : word_of(c.spin, w);
        c.certain[w] = R::FIELD ? 0u : count[R::COUNT_BITS - 1][w];
        c.zero[w] = 0;
    }
    return c;
}

// Sites first, first + stride, ... of a batch up to `end`, one of each thread; the whole warp must call it with one `first`
// of its own. `lattice` and the rows of `always` and `planes`, those of the batch's parity, may lie in shared memory.
template <typename R, typename Always, typename Rows>
__device__ __forceinline__ void update_sites(uint4* lattice, u32 first, u32 stride, u32 end, const Batch& batch,
                                             const Model& model, u32 sample, const Always& always, const Rows& planes,
                                             const u64* thresholds, uint4 lanes, u32 block, HalfSweep time, const Key& key,
                                             Tail<R::BITS>& tail) {
    const u32 mine = threadIdx.x & 31;
    Record record;
    if constexpr (R::SLOTS > 0) record = Record::fetch(model, sample, batch.first + min(first + mine, end - 1));
    for (; first < end; first += stride) {
        const u32 q = min(first + mine, end - 1);
        const bool there = first + mine < end;
        Chances<R> c;
        u32 site;
        uint4* place;
        if constexpr (R::SLOTS > 0) {
            const Record now = record;
            record = Record::fetch(model, sample, batch.first + min(first + stride + mine, end - 1));
            site = now.offset(0) / sizeof(uint4);
            place = &at_offset(lattice, now.offset(0));
            c = weigh<R>(lattice, now);
        } else {
            site = model.order[batch.first + q];
            place = lattice + site;
            c = weigh<R>(lattice, site, q, batch, model, sample);
        }
        if constexpr (!R::PLAIN) {
            u32 without_chance[4];
            c.classes.pick(always, without_chance);
#pragma unroll
            for (int w = 0; w < 4; ++w) c.certain[w] |= without_chance[w];
        }
        u32 undecided[4], accepted[4], deep[4], used[4];
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            used[w] = there ? word_of(lanes, w) : 0;
            c.zero[w] &= used[w];
            undecided[w] = used[w] & ~c.certain[w] & ~c.zero[w];
        }
        decide_lanes<R::PLAIN && R::SLOTS != 7, R::ROUNDS>(c.classes, c.zero, undecided, accepted, deep, planes, site, block,
                                                           time, key);
        if (there)
            *place = make_uint4(c.spin.x ^ ((c.certain[0] | accepted[0]) & used[0]),
                                c.spin.y ^ ((c.certain[1] | accepted[1]) & used[1]),
                                c.spin.z ^ ((c.certain[2] | accepted[2]) & used[2]),
                                c.spin.w ^ ((c.certain[3] | accepted[3]) & used[3]));
        if (tail.add(site, undecided, deep, c.classes.bit))
            tail.template pop<false, R::ROUNDS>((u32*)lattice, 0, thresholds, block, time, key);
    }
    while (tail.waiting()) tail.template pop<false, R::ROUNDS>((u32*)lattice, 0, thresholds, block, time, key);
}
