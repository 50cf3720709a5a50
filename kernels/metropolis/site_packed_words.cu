// Site-packed Metropolis of lattices that fit shared memory, for few of them: four threads a group of 128 sites, each with a word of
// 32. They share the group's random calls, of which each makes one of the first four. The thread blocks of a cluster share a lattice;
// each has room for all of it and keeps up to date what its own part looks at: who updates a word tells the blocks that will read it.
// Replicas and samples in y and z, many half-sweeps a launch.
#include "metropolis/uniform.cuh"
#include "packing/any_rows.cuh"
#include "synchronisation/cluster.cuh"

static_assert(OWN_PLANES == 5 && COLUMN_PLANES == 4, "four planes are shared, the fifth and the columns' call are everybody's");

// Gives thread w of four the word w of each thread's four.
__device__ __forceinline__ void transpose_in_four(u32 (&a)[4], u32 w) {
#pragma unroll
    for (u32 by = 1; by < 4; by *= 2) {
        const bool upper = w & by;
#pragma unroll
        for (u32 k = 0; k < 4; ++k) {
            if (k & by) continue;
            const u32 given = __shfl_xor_sync(~0u, upper ? a[k] : a[k | by], by);
            a[k | by] = upper ? a[k | by] : given;
            a[k] = upper ? given : a[k];
        }
    }
}

__device__ __forceinline__ u32 any_of_four(u32 value) {
    value |= __shfl_xor_sync(~0u, value, 1);
    return value | __shfl_xor_sync(~0u, value, 2);
}

// Returns the union of the words of the threads before this one of four.
__device__ __forceinline__ u32 before_in_four(u32 value, u32 w) {
    const u32 neighbour = __shfl_xor_sync(~0u, value, 1), pair = value | neighbour, others = __shfl_xor_sync(~0u, pair, 2);
    return (w & 1 ? neighbour : 0) | (w & 2 ? others : 0);
}

// Reads words of one colour of a lattice in shared memory, 32 lanes from any of them on.
struct Lanes {
    const u32* words;
    u32 lanes, count;

    __device__ __forceinline__ u32 from(int first) const {
        const u32 at = first < 0 ? first + lanes : (u32)first >= lanes ? first - lanes : first, k = at / 32, left = lanes - at;
        const u32 bits = __funnelshift_r(words[k], k + 1 < count ? words[k + 1] : 0, at % 32);
        return left < 32 ? bits | words[0] << left : bits;  // those past the last lane are 0
    }
};

// Finds the words of the neighbours of word w of group g of a colour, in the order of the slots.
template <int DIMENSION>
__device__ __forceinline__ void neighbours_of_word(const AnyRows& rows, u32 colour, u32 g, u32 w, const Lanes& other,
                                                   u32 (&near)[2 * DIMENSION]) {
    const int at = 128 * g + 32 * w, width = rows.width, plane = width * rows.height;
    const u32* const masks = (const u32*)(rows.masks + g % rows.repeating) + w;
    const auto mask = [&](AnyRows::Side side) { return __ldg(masks + 4 * side * rows.repeating); };
    const auto from_either = [&](AnyRows::Side side, int lane, int at_side) {
        const u32 bits = mask(side);
        return bits ? mux(bits, other.from(lane), other.from(at_side)) : other.from(lane);
    };
    near[2] = other.from(at);
    const u32 up = from_either(AnyRows::LAST, at + 1, at + 1 - width), down = from_either(AnyRows::FIRST, at - 1, at - 1 + width);
    near[3] = mux(mask(AnyRows::ODD) ^ (0 - colour), down, up);
    if constexpr (DIMENSION == 2) {
        near[0] = other.from(at - width), near[1] = other.from(at + width);
    } else {
        near[0] = from_either(AnyRows::BOTTOM, at - width, at - width + plane);
        near[1] = from_either(AnyRows::TOP, at + width, at + width - plane);
        near[4] = other.from(at - plane), near[5] = other.from(at + plane);
    }
}

// Holds the lanes of a word that chance decides, and their classes.
template <typename R>
struct WordChances {
    Classes<R::PLAIN ? R::SLOTS : 0, R::BITS, 1> classes;
    u32 certain, open;

    template <typename Always>
    __device__ __forceinline__ WordChances(const u32 (&near)[R::SLOTS], u32 spin, u32 used, const Always& always) {
        if constexpr (R::PLAIN) {
            classify<R::SLOTS>(near, spin, classes.bit[0][0], classes.bit[1][0], certain);
        } else {
            u32 count[3], without_chance[1];
            count_unsatisfied_bonds<R::SLOTS>(near, spin, count);
#pragma unroll
            for (int b = 0; b < R::BITS; ++b) classes.bit[b][0] = b < 3 ? count[b < 3 ? b : 0] : spin;
            classes.pick(always, without_chance);
            certain = without_chance[0] | (R::FIELD ? 0 : count[2]);
        }
        certain &= used, open = used & ~certain;
    }
};

// Returns the flips of a word by chance. All threads of a warp must call it.
template <typename R, int ROUNDS, typename Planes>
__device__ __forceinline__ u32 flips_by_chance(const WordChances<R>& c, const Planes& planes, const UniformThresholds& thresholds,
                                               u32 g, u32 w, u32 block, const HalfSweep& time, const Key& key) {
    const Prefix prefix = philox_prefix(g, block, time.word2, key);
    const uint4 call = philox_finish<ROUNDS>(prefix, time.word3 + w, key), fifth = philox_finish<ROUNDS>(prefix, time.word3 + 4, key);
    const uint4 of_columns = philox_finish<ROUNDS>(prefix, time.word3 + OWN_PLANES, key);
    u32 random[4] = {call.x, call.y, call.z, call.w}, accepted = 0, undecided = c.open;
    transpose_in_four(random, w);
#pragma unroll
    for (int plane = OWN_PLANES - 1; plane >= 0; --plane) {
        u32 threshold[1];
        c.classes.pick_plane(planes, plane, threshold);
        compare(threshold[0], plane < 4 ? random[plane & 3] : w < 2 ? (w ? fifth.y : fifth.x) : w & 1 ? fifth.w : fifth.z, accepted,
                undecided);
    }
    // The lowest undecided lane of each column takes its next bits from one call that serves all columns.
    const u32 before = before_in_four(undecided, w), occupant = undecided & ~before;
    u32 left = any_of_four(occupant), taken = 0;
    Classes<R::PLAIN ? R::SLOTS : 0, R::BITS, 1> column;  // class 0, which 4 slots do not have, is none of an empty column
#pragma unroll
    for (int b = 0; b < R::BITS; ++b) column.bit[b][0] = any_of_four(occupant & c.classes.bit[b][0]) | ~left;
#pragma unroll
    for (int j = COLUMN_PLANES - 1; j >= 0; --j) {
        u32 threshold[1];
        column.pick_plane(planes, OWN_PLANES + j, threshold);
        compare(threshold[0], word_of(of_columns, j), taken, left);
    }
    u32 flips = (accepted & c.open) | (occupant & taken);
    const u32 deep = occupant & left;
    for (u32 rest = (undecided & ~occupant) | deep; rest; rest &= rest - 1) {  // each with a call of its own
        const u32 bit = __ffs(rest) - 1, mask = 1u << bit, lane = 32 * w + bit;
        u32 index = 0;
#pragma unroll
        for (int b = 0; b < R::BITS; ++b) index |= (c.classes.bit[b][0] >> bit & 1) << b;
        const uint4 own = philox<ROUNDS>(g, block, time.word2, time.word3 + TAIL_PLANE + lane, key);
        const u64 open = thresholds.of(index, lane) << (deep & mask ? PLANES : OWN_PLANES);
        flips = ((u64)own.x << 32 | own.y) < open ? flips | mask : flips & ~mask;
    }
    return flips;
}

// readers[g]: a bit for each block of the cluster that looks at lanes of group g, of either colour.
template <int DIMENSION, bool SIGNED, bool FIELD, int KIND, int ROUNDS, int BLOCKS>
__global__ OF_CLUSTERS(BLOCKS) __launch_bounds__(HOST(engine.moves.metropolis.site_packed.cuda_rows.WORD_THREADS)) void sweep_words(
    u32* state, AnyRows rows, const u32* readers, Signs signs, UniformTables tables, u32 first_sample, u32 first_replica,
    u64 half_sweep, u32 half_sweeps, Key key) {
    using R = Rule<2 * DIMENSION, 3, FIELD, KIND, ROUNDS>;
    using Blocks = Cluster<BLOCKS>;
    extern __shared__ uint4 in_shared[];
    __shared__ UniformRules<R> rules;
    const u32 replica = blockIdx.y, sample = blockIdx.z, groups = rows.groups, words = 4 * groups, rank = Blocks::rank();
    const size_t part = (size_t)sample * gridDim.y + replica;
    const u32 block = counter_block(first_sample + sample, first_replica + replica);
    const size_t rules_of = tables.part(sample, replica);
    const UniformThresholds thresholds = {tables.thresholds + (rules_of << R::BITS)};
    u32 *const lattice = (u32*)in_shared, *const global = state + 2 * part * words;
    rules.load(tables, rules_of);
    for (u32 i = threadIdx.x; i < 2 * groups; i += blockDim.x) in_shared[i] = ((const uint4*)global)[i];
    Blocks::arrive(), Blocks::wait();
    const u32 first = groups * rank / BLOCKS, stop = groups * (rank + 1) / BLOCKS, w = threadIdx.x % 4;

    for (u32 done = 0; done < half_sweeps; ++done, ++half_sweep) {
        const u32 colour = half_sweep & 1;
        const bool is_last = done + 1 == half_sweeps;
        const HalfSweep time = counter_half_sweep(half_sweep, STREAM_UPDATE);
        u32* const mine = lattice + colour * words;
        const Lanes other = {lattice + (1 - colour) * words, rows.lanes(), words};
        const u32* const negative = (const u32*)(signs.negative + sample * signs.stride + colour * R::SLOTS * groups);
        for (u32 some = first; some < stop; some += blockDim.x / 4) {
            const u32 place = some + threadIdx.x / 4, g = min(place, stop - 1), own = 4 * g + w;
            u32 near[R::SLOTS];
            neighbours_of_word<DIMENSION>(rows, colour, g, w, other, near);
            if constexpr (SIGNED) {
#pragma unroll
                for (int k = 0; k < R::SLOTS; ++k) near[k] ^= __ldg(negative + (size_t)k * words + own);
            }
            const u32 left = place < stop ? max(0, (int)min(rows.lanes(), own * 32 + 32) - (int)(own * 32)) : 0;
            const u32 used = left ? ~0u >> (32 - left) : 0, spin = mine[own];
            const WordChances<R> c(near, spin, used, rules.always());
            const u32 flips = flips_by_chance<R, ROUNDS>(c, rules.planes(), thresholds, g, w, block, time, key);
            if (place < stop) {
                const u32 now = spin ^ c.certain ^ flips;
                mine[own] = now;
                if (is_last) {
                    global[colour * words + own] = now;
                } else if constexpr (Blocks::SEVERAL) {
                    for (u32 others = __ldg(readers + g) & ~(1u << rank); others; others &= others - 1)
                        Blocks::store_word(Blocks::at(mine + own, __ffs(others) - 1), now);
                }
                if (done + 2 == half_sweeps) global[colour * words + own] = now;
            }
        }
        if (!is_last) Blocks::arrive(), Blocks::wait();
    }
}
