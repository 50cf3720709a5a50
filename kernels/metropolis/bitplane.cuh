// The lazy bit-plane comparison: "uniform < threshold" for a group of 128 lanes at once, four words of 32, exact to 64 bits.
#pragma once
#include "bits/logic.cuh"
#include "random/philox.cuh"

constexpr int OWN_PLANES = HOST(engine.moves.metropolis.classes.OWN_PLANES), COLUMN_PLANES = HOST(engine.moves.metropolis.classes.COLUMN_PLANES);
constexpr int PLANES = OWN_PLANES + COLUMN_PLANES;
constexpr u32 TAIL_PLANE = HOST(engine.moves.metropolis.classes.TAIL_PLANE);
// Flips that cost nothing are refused where that many planes are all ones.
constexpr int ZERO_PLANES = HOST(engine.moves.metropolis.classes.ZERO_PLANES);
static_assert(ZERO_PLANES == OWN_PLANES + 1, "decide_lanes takes the last plane of the zero-cost rule from the columns");


__device__ __forceinline__ u32 word_of(const uint4& v, int w) { return w == 0 ? v.x : w == 1 ? v.y : w == 2 ? v.z : v.w; }
__device__ __forceinline__ u32 word_of(u32 v, int) { return v; }

// Reads table rows of four words, which hold a bit of each lane, from global memory.
struct GlobalRows {
    static constexpr bool UNIFORM = false, SUMS = false;
    const uint4* rows;
    __device__ __forceinline__ uint4 load(int row) const { return __ldg(rows + row); }
    __device__ __forceinline__ GlobalRows from(int row) const { return {rows + row}; }
};

// Reads such rows from shared memory. Loads are volatile, as the compiler would otherwise keep all rows in registers across
// groups.
struct SharedRows {
    static constexpr bool UNIFORM = false, SUMS = false;
    u32 address;
    __device__ __forceinline__ uint4 load(int row) const {
        uint4 v;
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                     : "r"(address + 16 * row));
        return v;
    }
    __device__ __forceinline__ SharedRows from(int row) const { return {address + 16 * row}; }
};

// Reads rows of one word, where all lanes have one temperature, from shared memory.
struct UniformRows {
    static constexpr bool UNIFORM = true, SUMS = false;
    u32 address;
    __device__ __forceinline__ u32 load(int row) const {
        u32 v;
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(address + 4 * row));
        return v;
    }
    __device__ __forceinline__ UniformRows from(int row) const { return {address + 4 * row}; }
};

// Reads such rows for classes of two bits as sums: factors times the words of the two bits and of both. Bit by bit the sum
// is 0 or 1, so nothing carries; a multiply-add takes a fifth of the time of a logical operation.
struct UniformSums {
    static constexpr bool UNIFORM = true, SUMS = true;
    u32 address;  // constant, factor of bit 0, of bit 1, of both, plane by plane
    __device__ __forceinline__ uint4 load(int plane) const { return SharedRows{address}.load(plane); }

    // Returns the factors of one plane; `row` holds 0 or all ones, -1, for each class. Without class 0 both bits' word is not
    // needed.
    static __device__ __forceinline__ uint4 factors(const u32* row, bool class_0) {
        if (class_0) return make_uint4(row[0], row[0] - row[1], row[0] - row[2], row[1] + row[2] - row[0] - row[3]);
        return make_uint4(row[1] + row[2] - row[3], row[2] - row[3], row[1] - row[3], 0);
    }
};

// Picks the word of each column's occupant; `occupant` words are disjoint.
__device__ __forceinline__ u32 fold(const u32 (&word)[4], const u32 (&occupant)[4]) {
    return mux(occupant[0], mux(occupant[1], mux(occupant[2], word[3], word[2]), word[1]), word[0]);
}

// Says how many of the first planes hold no threshold bits of classes 0, 1 and 2.
template <int LARGEST_, int MIDDLE_, int SMALLEST_>
struct Clear {
    static constexpr int LARGEST = LARGEST_, MIDDLE = MIDDLE_, SMALLEST = SMALLEST_;
    static_assert(LARGEST >= MIDDLE && MIDDLE >= SMALLEST, "what costs more has a smaller threshold");
};

// Holds flip classes of W words of lanes as bit planes. PLAIN, a number of slots, says that class 3 are flips that cost
// nothing, under the default rule, except with 7 slots; with 4 slots no lane has class 0. PLAIN = 0 takes any class; numbers
// from 200 on are classes of two terms (anisotropic.cu).
template <int PLAIN, int BITS, int W>
struct Classes {
    static_assert(PLAIN == 0 || (BITS == 2 && (PLAIN == 4 || PLAIN == 6 || PLAIN == 7)), "plain classes have two bits");
    u32 bit[BITS][W];

    // Picks for every lane the row of its class among 2^B rows.
    template <int B, typename Rows>
    __device__ __forceinline__ void tree(const Rows& rows, u32 (&out)[W]) const {
        if constexpr (B == 0) {
            const auto row = rows.load(0);
#pragma unroll
            for (int w = 0; w < W; ++w) out[w] = word_of(row, w);
        } else {
            u32 upper[W];
            tree<B - 1>(rows, out);
            tree<B - 1>(rows.from(1 << (B - 1)), upper);
#pragma unroll
            for (int w = 0; w < W; ++w) out[w] = mux(bit[B - 1][w], out[w], upper[w]);
        }
    }

    template <typename Rows>
    __device__ __forceinline__ void pick(const Rows& rows, u32 (&out)[W]) const {
        if constexpr (PLAIN == 4) {
            const auto one = rows.load(1), two = rows.load(2);
#pragma unroll
            for (int w = 0; w < W; ++w) out[w] = mux(bit[0][w], word_of(two, w), word_of(one, w));
        } else if constexpr (PLAIN == 6) {
            const auto none = rows.load(0), one = rows.load(1), two = rows.load(2);
#pragma unroll
            for (int w = 0; w < W; ++w)
                out[w] = mux(bit[1][w], mux(bit[0][w], word_of(none, w), word_of(one, w)), word_of(two, w));
        } else {
            tree<BITS>(rows, out);
        }
    }

    // Picks for every lane the row of its class in one plane.
    template <typename Rows>
    __device__ __forceinline__ void pick_plane(const Rows& planes, int plane, u32 (&out)[W]) const {
        if constexpr (Rows::SUMS) {
            static_assert(BITS == 2, "sums are of two bits");
            const uint4 factor = planes.load(plane);
#pragma unroll
            for (int w = 0; w < W; ++w) {
                out[w] = bit[0][w] * factor.y + factor.x;
                out[w] += bit[1][w] * factor.z;
                if constexpr (PLAIN != 4) out[w] += (bit[0][w] & bit[1][w]) * factor.w;
            }
        } else {
            pick(planes.from(plane << BITS), out);
        }
    }

    // Does the same for own planes where classes of a cost have no bits in the first ones, as CLEAR says, and class 3 has those of
    // 63/64; `zero` are lanes of class 3.
    template <typename CLEAR, typename Rows>
    __device__ __forceinline__ void pick_clear(const Rows& planes, int plane, const u32 (&zero)[W], u32 (&out)[W]) const {
        if (plane < CLEAR::SMALLEST) {
#pragma unroll
            for (int w = 0; w < W; ++w) out[w] = zero[w];
            return;
        }
        const bool has_middle = plane >= CLEAR::MIDDLE, has_largest = PLAIN == 6 && plane >= CLEAR::LARGEST;
        const auto two = planes.load(plane << BITS | 2);
        const auto one = has_middle ? planes.load(plane << BITS | 1) : two;
        const auto none = has_largest ? planes.load(plane << BITS) : two;
#pragma unroll
        for (int w = 0; w < W; ++w) {
            out[w] = lop3<IN_A & (IN_B | IN_C)>(bit[1][w], bit[0][w], word_of(two, w));
            if (has_largest)
                out[w] = lop3<IN_A | (~IN_B & IN_C & 0xff)>(out[w], bit[1][w], mux(bit[0][w], word_of(none, w), word_of(one, w)));
            else if (has_middle)
                out[w] = lop3<IN_A | (IN_B & IN_C)>(out[w], bit[0][w], word_of(one, w));
        }
    }

    // Does the same of 2^B classes from FIRST on in a field, whose low two bits are a count; `rows` are those of the plane.
    template <typename CLEAR, int SLOTS, int B = BITS, int FIRST = 0, typename Rows>
    __device__ __forceinline__ void pick_in_field(const Rows& rows, int plane, u32 (&out)[W]) const {
        if constexpr (B == 0) {
            const auto row = rows.load(FIRST);
#pragma unroll
            for (int w = 0; w < W; ++w) out[w] = word_of(row, w);
        } else {
            constexpr int HALF = 1 << (B - 1), LAST = (FIRST + HALF - 1) % 4;  // the cheapest of the lower half
            constexpr int BEGINS = LAST == 3 ? 0 : LAST == 2 ? CLEAR::SMALLEST : LAST == 1 ? CLEAR::MIDDLE : SLOTS == 4 ? PLANES : CLEAR::LARGEST;
            u32 lower[W];
            pick_in_field<CLEAR, SLOTS, B - 1, FIRST + HALF>(rows, plane, out);
            if (plane >= BEGINS) pick_in_field<CLEAR, SLOTS, B - 1, FIRST>(rows, plane, lower);
#pragma unroll
            for (int w = 0; w < W; ++w) out[w] = plane >= BEGINS ? mux(bit[B - 1][w], lower[w], out[w]) : bit[B - 1][w] & out[w];
        }
    }

    __device__ __forceinline__ Classes<PLAIN, BITS, 1> folded(const u32 (&occupant)[4]) const {
        Classes<PLAIN, BITS, 1> column;
#pragma unroll
        for (int b = 0; b < BITS; ++b) column.bit[b][0] = fold(bit[b], occupant);
        return column;
    }
};

// Compares one more significant bit: one ternary operation for each result.
__device__ __forceinline__ void compare(u32 threshold, u32 random, u32& accepted, u32& undecided) {
    accepted = lop3<(IN_A & ~IN_B & 0xff) | (~(IN_A ^ IN_B) & IN_C & 0xff)>(threshold, random, accepted);
    undecided = lop3<~(IN_A ^ IN_B) & IN_C & 0xff>(threshold, random, undecided);
}

// Makes a group's random calls when they are asked for.
template <int ROUNDS>
struct Calls {
    Prefix prefix;
    u32 word3;
    const Key& key;
    __device__ __forceinline__ Calls(u32 group, u32 block, HalfSweep time, const Key& key)
        : prefix(philox_prefix(group, block, time.word2, key)), word3(time.word3), key(key) {}
    __device__ __forceinline__ uint4 operator()(int plane) const { return philox_finish<ROUNDS>(prefix, word3 + plane, key); }
};

// Makes a group's random calls at once.
template <int ROUNDS>
struct CallsAhead {
    uint4 call[OWN_PLANES + 1];
    __device__ __forceinline__ CallsAhead(u32 group, u32 block, HalfSweep time, const Key& key) {
        const Calls<ROUNDS> calls(group, block, time, key);
#pragma unroll
        for (int plane = 0; plane <= OWN_PLANES; ++plane) {
            uint4& c = call[plane] = calls(plane);
            asm volatile("" : "+r"(c.x), "+r"(c.y), "+r"(c.z), "+r"(c.w));  // here, and not where they are used
        }
    }
    __device__ __forceinline__ const uint4& operator()(int plane) const { return call[plane]; }
};

// Decides lanes of a group, those in `open`. ZERO says that of these, class 3 are flips that cost nothing, under the default
// rule, and that `planes` has no rows of theirs; CLEAR, that thresholds begin with so many zeros.
// On return `accepted` holds for lanes in `open`; `undecided` are lanes left to a call of their own, of them those in `deep`
// after PLANES bits, the others after OWN_PLANES. Row `plane << BITS | class` of `planes` holds the threshold bits of a
// plane; `calls(plane)` are random words. `meanwhile` is called halfway, to start loads that are needed later.
template <bool ZERO, typename CLEAR, int SLOTS, int PLAIN, int BITS, typename Rows, typename Calls, typename Meanwhile>
__device__ __forceinline__ void decide_lanes(const Classes<PLAIN, BITS, 4>& classes, const u32 (&open)[4],
                                             u32 (&undecided)[4], u32 (&accepted)[4], u32 (&deep)[4],
                                             const Rows& planes, const Calls& calls, Meanwhile meanwhile) {
    constexpr bool IN_FIELD = PLAIN == 0 && CLEAR::SMALLEST > 0, IS_CLEAR = !IN_FIELD && CLEAR::SMALLEST > 0;
    constexpr bool APART = ZERO && !IS_CLEAR;  // flips that cost nothing are compared apart
    static_assert(ZERO || !IS_CLEAR, "class 3 costs nothing where thresholds begin with zeros, but in a field");
    u32 ones[4], zero[4];
    const auto find_zero = [&] {
#pragma unroll
        for (int w = 0; w < 4; ++w) zero[w] = lop3<IN_A & IN_B & IN_C>(open[w], classes.bit[0][w], classes.bit[1][w]);
    };
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        accepted[w] = 0, ones[w] = ~0u;
        undecided[w] = open[w];
        if constexpr (APART) undecided[w] = lop3<IN_A & ~(IN_B & IN_C) & 0xff>(open[w], classes.bit[0][w], classes.bit[1][w]);
    }
#pragma unroll
    for (int plane = OWN_PLANES - 1; plane >= 0; --plane) {
        const uint4 random = calls(plane);
        u32 threshold[4];
        if (IS_CLEAR && plane + 1 == CLEAR::SMALLEST) find_zero();  // no earlier, as it takes registers
        if constexpr (IS_CLEAR)
            classes.template pick_clear<CLEAR>(planes, plane, zero, threshold);
        else if constexpr (IN_FIELD)
            classes.template pick_in_field<CLEAR, SLOTS>(planes.from(plane << BITS), plane, threshold);
        else
            classes.pick_plane(planes, plane, threshold);
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            compare(threshold[w], word_of(random, w), accepted[w], undecided[w]);
            if constexpr (APART) ones[w] &= word_of(random, w);
        }
    }
    if constexpr (APART) {
        find_zero();
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            accepted[w] = mux(zero[w], accepted[w], ~ones[w]);
            undecided[w] = mux(zero[w], undecided[w], ones[w]);
        }
    }
    meanwhile();
    // The lowest undecided lane of each column takes its next bits from one call that serves all columns.
    const u32 two = undecided[0] | undecided[1], three = two | undecided[2];
    const u32 occupant[4] = {undecided[0], undecided[1] & ~undecided[0], undecided[2] & ~two, undecided[3] & ~three};
    const uint4 random = calls(OWN_PLANES);
    u32 left = three | undecided[3], taken = 0;
    if constexpr (Rows::UNIFORM) {
        const Classes<PLAIN, BITS, 1> column = classes.folded(occupant);
#pragma unroll
        for (int j = COLUMN_PLANES - 1; j >= 0; --j) {
            u32 threshold[1];
            column.pick_plane(planes, OWN_PLANES + j, threshold);
            compare(threshold[0], word_of(random, j), taken, left);
        }
        // The threshold of class 3, 63/64, has no further bits: what is left of it is refused.
        if constexpr (PLAIN == 4 || PLAIN == 6)
            left = lop3<IN_A & ~(IN_B & IN_C) & 0xff>(left, column.bit[0][0], column.bit[1][0]);
    } else {
#pragma unroll
        for (int j = COLUMN_PLANES - 1; j >= 0; --j) {
            u32 threshold[4];
            classes.pick_plane(planes, OWN_PLANES + j, threshold);
            compare(fold(threshold, occupant), word_of(random, j), taken, left);
        }
    }
    if constexpr (ZERO) {
        const u32 free = fold(zero, occupant);
        taken = mux(free, taken, ~random.x);
        left &= ~free;
    }
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        accepted[w] |= occupant[w] & taken;
        deep[w] = occupant[w] & left;
        undecided[w] = (undecided[w] & ~occupant[w]) | deep[w];
    }
}
