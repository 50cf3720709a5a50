// Lanes that the bit planes leave undecided, about one in 400: queued by each warp, finished 32 at a time.
//
// Each thread finishing its own lanes would keep the warp waiting for the thread with the most of them.
#pragma once
#include "metropolis/bitplane.cuh"

// Finds thresholds of a class and a lane: laid out for every lane, or one for all lanes.
struct LaneThresholds {
    const u64* thresholds;
    __device__ __forceinline__ u64 of(u32 cls, u32 lane) const { return __ldg(thresholds + (cls << 7 | lane)); }
};
struct UniformThresholds {
    const u64* thresholds;
    __device__ __forceinline__ u64 of(u32 cls, u32) const { return __ldg(thresholds + cls); }
};

// Is told of flips as they happen, and does nothing.
struct NoTally {
    template <typename Chances>
    __device__ __forceinline__ void group(const Chances&, const u32 (&)[4], bool) const {}
    __device__ __forceinline__ void lane(u32, u32) const {}
    __device__ __forceinline__ void begin_half_sweep(bool) const {}
    __device__ __forceinline__ void end_half_sweep() const {}
    static __device__ __forceinline__ bool is_told() { return false; }
};

// Holds one warp's groups with undecided lanes in shared memory. slot[0] to slot[count - 1] name the entries in use, the rest
// of `slot` those free; the count is a register of all threads.
template <int BITS>
struct TailEntries {
    static constexpr u32 ROOM = HOST(engine.moves.metropolis.replica_packed.cuda_lattices.TAIL_ROOM);
    uint4 undecided[ROOM], deep[ROOM], cls[BITS][ROOM];
    uint2 group[ROOM];  // as the counter names it, and where its words lie
    u32 slot[ROOM];
};

template <int BITS>
class Tail {
    using Entries = TailEntries<BITS>;
    static constexpr u32 FULL = 32;
    static_assert(FULL - 1 + 32 < Entries::ROOM, "there is room for a group of each thread");
    static constexpr u32 WORDS = HOST(engine.moves.metropolis.replica_packed.cuda_lattices.TAIL_WORDS);
    static constexpr u32 CLASS_BIT_WORDS = HOST(engine.moves.metropolis.replica_packed.cuda_lattices.CLASS_BIT_WORDS);
    static_assert(sizeof(Entries) == 4 * Entries::ROOM * (WORDS + CLASS_BIT_WORDS * BITS), "the host makes room for it");
    Entries& e;
    u32 count;

    static __device__ __forceinline__ u32 before_me() { return (1u << (threadIdx.x & 31)) - 1; }

public:
    __device__ __forceinline__ explicit Tail(Entries& entries) : e(entries), count(0) {
        for (u32 i = threadIdx.x & 31; i < Entries::ROOM; i += 32) e.slot[i] = i;
        __syncwarp();
    }

    __device__ __forceinline__ bool full() const { return count >= FULL; }
    __device__ __forceinline__ bool empty() const { return count == 0; }

    // Queues what a group left undecided; the whole warp must call it.
    __device__ __forceinline__ void add(u32 counter_group, u32 group, const u32 (&lanes)[4], const u32 (&deep)[4],
                                        const u32 (&bits)[BITS][4]) {
        const bool some = lanes[0] | lanes[1] | lanes[2] | lanes[3];
        const u32 all = __ballot_sync(~0u, some);
        if (some) {
            const u32 s = e.slot[count + __popc(all & before_me())];
            e.group[s] = make_uint2(counter_group, group);
            e.undecided[s] = make_uint4(lanes[0], lanes[1], lanes[2], lanes[3]);
            e.deep[s] = make_uint4(deep[0], deep[1], deep[2], deep[3]);
#pragma unroll
            for (int b = 0; b < BITS; ++b) e.cls[b][s] = make_uint4(bits[b][0], bits[b][1], bits[b][2], bits[b][3]);
        }
        count += __popc(all);
        __syncwarp();
    }

    // Decides one lane of each of up to 32 groups, the last ones, or two, if MAY_TWO, where there are at most 16; groups with
    // more lanes stay. `words` is the lattice, in which `group` has four words.
    template <int ROUNDS, bool MAY_TWO, typename Thresholds, typename Tally = NoTally>
    __device__ __forceinline__ void pop(u32* words, const Thresholds& thresholds, u32 block, HalfSweep time, const Key& key,
                                        Tally&& tally = {}) {
        const u32 thread = threadIdx.x & 31, base = count > 32 ? count - 32 : 0;
        const bool two = MAY_TWO && count <= 16, second = two && thread >= 16;
        const u32 i = base + (two ? thread & 15 : thread);
        const bool here = i < count;
        bool again = false;
        u32 s = 0;
        uint4 lanes = make_uint4(0, 0, 0, 0);
        if (here) s = e.slot[i], lanes = e.undecided[s];
        if constexpr (MAY_TWO) __syncwarp();  // both threads of a group read its lanes before either clears one
        if (here) {
            if (second) without_lowest(lanes);
            const u32 w = lanes.x ? 0 : lanes.y ? 1 : lanes.z ? 2 : 3, at = 4 * s + w;
            const u32 word = lanes.x ? lanes.x : lanes.y ? lanes.y : lanes.z ? lanes.z : lanes.w;
            const u32 rest = word & (word - 1), mask = word ^ rest, lane = 32 * w + (31 & 31 - __clz(mask));
            const uint2 group = e.group[s];
            u32 index = 0;
#pragma unroll
            for (int b = 0; b < BITS; ++b) index |= ((const u32*)e.cls[b])[at] & mask ? 1u << b : 0u;
            const u64 threshold = thresholds.of(index, lane);
            const uint4 own = philox<ROUNDS>(group.x, block, time.word2, time.word3 + TAIL_PLANE + lane, key);
            const u64 open = threshold << (((const u32*)e.deep)[at] & mask ? PLANES : OWN_PLANES);
            if (mask && ((u64)own.x << 32 | own.y) < open) {  // a group may have no second lane
                atomicXor(words + ((size_t)group.y * 4 + w), mask);
                tally.lane(index, lane);
            }
            u32* const left = (u32*)e.undecided + at;
            if constexpr (MAY_TWO)
                atomicAnd(left, ~mask);  // both threads' lanes may be in one word
            else
                *left = rest;
            again = rest | (w < 1 ? lanes.y : 0) | (w < 2 ? lanes.z : 0) | (w < 3 ? lanes.w : 0);
        }
        __syncwarp();  // all slots are read before any is written
        const bool tells = here && (second || !two);  // whether its group stays
        const u32 stay = __ballot_sync(~0u, tells && again), rank = __popc(stay & before_me());
        if (tells) e.slot[again ? base + rank : i + __popc(stay) - rank] = s;
        count = base + __popc(stay);
        __syncwarp();
    }

private:
    static __device__ __forceinline__ void without_lowest(uint4& lanes) {
        const bool x = lanes.x, y = x || lanes.y, z = y || lanes.z;
        lanes.w &= z ? ~0u : lanes.w - 1;
        lanes.z &= y ? ~0u : lanes.z - 1;
        lanes.y &= x ? ~0u : lanes.y - 1;
        lanes.x &= lanes.x - 1;
    }
};
