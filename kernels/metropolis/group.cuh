// One group of 128 lanes: what flips for certain, what is left to chance, whatever the packing.
#pragma once
#include "metropolis/bonds.cuh"
#include "metropolis/tail.cuh"

// Says how sites are updated. SLOTS is the number of bonds of every site, 4, 6 or 7, or 0 for any number; COUNT_BITS are those
// of their count; with FIELD the spin belongs to the class. KIND is any, plain, or plain and so warm or cold that the first planes of
// what costs energy hold no bits. Without a field plain is the default zero-cost rule and no certain acceptance but for gains; in one
// it says that the highest bit of the count is a gain for both spins, and belongs to no class.
enum Kind {
    ANY = HOST(engine.moves.metropolis.classes.Kind.ANY),
    PLAIN_KIND = HOST(engine.moves.metropolis.classes.Kind.PLAIN),
    WARM_KIND = HOST(engine.moves.metropolis.classes.Kind.WARM),
    COLD_KIND = HOST(engine.moves.metropolis.classes.Kind.COLD),
};

// Says where thresholds of a kind begin.
template <int KIND>
struct Beginnings { using Of = Clear<0, 0, 0>; };
template <>
struct Beginnings<WARM_KIND> {
    using Of = Clear<HOST(engine.moves.metropolis.classes.WARM_CLEAR.largest), HOST(engine.moves.metropolis.classes.WARM_CLEAR.middle),
                     HOST(engine.moves.metropolis.classes.WARM_CLEAR.smallest)>;
};
template <>
struct Beginnings<COLD_KIND> {
    using Of = Clear<HOST(engine.moves.metropolis.classes.COLD_CLEAR.largest), HOST(engine.moves.metropolis.classes.COLD_CLEAR.middle),
                     HOST(engine.moves.metropolis.classes.COLD_CLEAR.smallest)>;
};

template <int SLOTS_, int COUNT_BITS_, bool FIELD_, int KIND, int ROUNDS_>
struct Rule {
    static constexpr int SLOTS = SLOTS_, COUNT_BITS = COUNT_BITS_, ROUNDS = ROUNDS_;
    static constexpr bool FIELD = FIELD_, PLAIN = KIND != ANY && !FIELD, GAINS = KIND != ANY || !FIELD;  // where the count's highest bit is set
    static constexpr int LOW_BITS = GAINS ? COUNT_BITS - 1 : COUNT_BITS, BITS = LOW_BITS + FIELD;
    static_assert(SLOTS == 0 || COUNT_BITS == 3, "fixed numbers of slots have three bits of count");
    static_assert(KIND < WARM_KIND || SLOTS == 4 || SLOTS == 6, "costs of odd degrees have other classes");
    static_assert(!PLAIN || SLOTS > 0, "plain rules are for fixed numbers of slots");
    static_assert(!FIELD || KIND == ANY || COUNT_BITS == 3, "in a field kinds are of classes of two bits and the spin");
    using Beginning = typename Beginnings<KIND>::Of;
    using Group = Classes<PLAIN ? SLOTS : 0, BITS, 4>;
};

// Holds the lanes of one site that chance decides, and their classes.
template <typename R>
struct Chances {
    typename R::Group classes;
    u32 open[4];

    // Sets classes from a count of unsatisfied bonds, where no rule is plain.
    __device__ __forceinline__ void set(const u32 (&count)[R::COUNT_BITS], u32 spin, int w, u32 (&certain)[4]) {
#pragma unroll
        for (int b = 0; b < R::BITS; ++b) classes.bit[b][w] = b < R::LOW_BITS ? count[b < R::LOW_BITS ? b : 0] : spin;
        certain[w] = R::GAINS ? count[R::COUNT_BITS - 1] : 0u;
    }
    template <typename Always>
    __device__ __forceinline__ void add_certain(const Always& always, u32 (&certain)[4]) const {
        if constexpr (R::FIELD && R::Beginning::SMALLEST > 0) {  // of half the bonds unsatisfied, one less or as many
            const auto down = always.load(3), up = always.load(7);
#pragma unroll
            for (int w = 0; w < 4; ++w)
                certain[w] |= classes.bit[0][w] & classes.bit[1][w] & mux(classes.bit[2][w], word_of(down, w), word_of(up, w));
            return;
        }
        u32 without_chance[4];
        classes.pick(always, without_chance);
#pragma unroll
        for (int w = 0; w < 4; ++w) certain[w] |= without_chance[w];
    }
};

// Flips what flips for certain, at once, and leaves the words in `kept`, where they take no registers while the planes are
// compared: in shared memory, or in the lattice if that is there.
template <typename R>
__device__ __forceinline__ void flip_certain(Chances<R>& c, uint4* kept, const uint4& spin, const u32 (&certain)[4],
                                             const uint4& used, bool there) {
    u32 after[4];
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        const u32 lanes = there ? word_of(used, w) : 0;
        after[w] = lop3<IN_A ^ (IN_B & IN_C)>(word_of(spin, w), certain[w], lanes);
        c.open[w] = lanes & ~certain[w];
    }
    if (there) *kept = make_uint4(after[0], after[1], after[2], after[3]);
}

// Weighs a group with a fixed number of bonds, which ask for the spins `wanted`, and flips what flips for certain.
template <typename R, typename Always>
__device__ __forceinline__ Chances<R> weigh_bonds(const uint4 (&wanted)[R::SLOTS], const uint4& spin, uint4* kept,
                                                  const Always& always, const uint4& used, bool there) {
    Chances<R> c;
    u32 certain[4];
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        u32 of_word[R::SLOTS];
#pragma unroll
        for (int k = 0; k < R::SLOTS; ++k) of_word[k] = word_of(wanted[k], w);
        if constexpr (R::PLAIN) {
            classify<R::SLOTS>(of_word, word_of(spin, w), c.classes.bit[0][w], c.classes.bit[1][w], certain[w]);
        } else {
            u32 count[3];
            count_unsatisfied_bonds<R::SLOTS>(of_word, word_of(spin, w), count);
            c.set(count, word_of(spin, w), w, certain);
        }
    }
    if constexpr (!R::PLAIN) c.add_certain(always, certain);
    flip_certain(c, kept, spin, certain, used, there);
    return c;
}

// Does the rest of a group's update. `counter_group` addresses its random numbers, `group` its words in the lattice.
template <typename R, typename Rows, typename Calls, typename Meanwhile, typename Tally = NoTally>
__device__ __forceinline__ void leave_to_chance(const Chances<R>& c, const uint4* kept, uint4* place, bool there,
                                                u32 counter_group, u32 group, const Rows& planes, const Calls& calls,
                                                Tail<R::BITS>& tail, Meanwhile meanwhile, Tally&& tally = {}) {
    u32 undecided[4], accepted[4], deep[4];
    constexpr bool ZERO = R::PLAIN && R::SLOTS != 7 && !Rows::UNIFORM;
    decide_lanes<ZERO, typename R::Beginning, R::SLOTS>(c.classes, c.open, undecided, accepted, deep, planes, calls, meanwhile);
    if (there) {
        const uint4 spin = *kept;
        u32 after[4];
#pragma unroll
        for (int w = 0; w < 4; ++w) after[w] = lop3<IN_A ^ (IN_B & IN_C)>(word_of(spin, w), accepted[w], c.open[w]);
        *place = make_uint4(after[0], after[1], after[2], after[3]);
    }
    tally.group(c, accepted, there);
    tail.add(counter_group, group, undecided, deep, c.classes.bit);
}
