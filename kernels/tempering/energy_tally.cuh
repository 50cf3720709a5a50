// Unsatisfied bonds of every lane, counted while the last of two colours is updated: each bond has one end of that colour, and
// the update knows how many bonds of a site are unsatisfied before it and what flips.
#pragma once
#include "bits/lane_counts.cuh"
#include "metropolis/group.cuh"

constexpr u32 TALLIED_GROUPS = HOST(engine.moves.metropolis.replica_packed.cuda_lattices.TALLIED_GROUPS);  // of a thread, at most
static_assert(5 * sizeof(uint4) + sizeof(u32) == HOST(engine.moves.metropolis.replica_packed.cuda_lattices.TALLY_BYTES), "a thread's room");

// FLUSHES: threads may have more than TALLIED_GROUPS groups of the last colour.
template <typename R, bool FLUSHES = false, bool = R::PLAIN || (R::FIELD && R::Beginning::SMALLEST > 0)>
struct EnergyTally : NoTally {
    static constexpr bool POSSIBLE = false;
    __device__ __forceinline__ EnergyTally(void*, u32*, bool) {}
};

// A site of class k has k unsatisfied bonds, BONDS - k where it gains, which it loses then; phantom bonds count as well. Of
// those left to chance k become BONDS - k. In a field the class of what gains has the low bits of BONDS - k; no other flip is
// certain there, as at an infinite temperature.
template <typename R, bool FLUSHES>
class EnergyTally<R, FLUSHES, true> {
    static constexpr u32 BONDS = R::SLOTS == 7 ? 7 : 6, COUNTED = 9;
    static_assert(!R::FIELD || BONDS == 6, "kinds in a field are of even degrees");
    static_assert(4 * TALLIED_GROUPS * BONDS < 1 << COUNTED, "four threads' groups fit");
    uint4* room;  // this thread's [5], blockDim.x apart: counts' planes 0 to 3 and 4 to 7, then a group's three planes
    u32* totals;  // of each lane
    bool wanted, on = false;
    u32 left = 0;  // groups that the counters still hold, where FLUSHES

    __device__ __forceinline__ uint4& at(int k) const { return room[k * blockDim.x]; }
    __device__ __forceinline__ u32& last_plane() const {  // words behind all threads' room
        return ((u32*)(room - threadIdx.x + 5 * blockDim.x))[threadIdx.x];
    }
    __device__ __forceinline__ Counters<COUNTED, 1> load() const {
        const uint4 low = at(0), high = at(1);
        return {{{low.x}, {low.y}, {low.z}, {low.w}, {high.x}, {high.y}, {high.z}, {high.w}, {last_plane()}}};
    }
    __device__ __forceinline__ void store(const Counters<COUNTED, 1>& c) const {
        at(0) = make_uint4(c.plane[0][0], c.plane[1][0], c.plane[2][0], c.plane[3][0]);
        at(1) = make_uint4(c.plane[4][0], c.plane[5][0], c.plane[6][0], c.plane[7][0]);
        last_plane() = c.plane[8][0];
    }

    __device__ __forceinline__ void clear() {
        Counters<COUNTED, 1> none;
        none.clear();
        store(none);
        left = TALLIED_GROUPS;
    }

public:
    static constexpr bool POSSIBLE = true;

    // Half-sweeps that are not counted are code of their own where a multiprocessor has few blocks: many, each at another
    // place, would fetch both again and again.
    __device__ __forceinline__ bool is_told() const { return on || blockDim.x < 256; }

    // `shared` is room for TALLY_BYTES a thread; threads have at most TALLIED_GROUPS groups of the last colour.
    __device__ __forceinline__ EnergyTally(void* shared, u32* totals, bool wanted)
        : room((uint4*)shared + threadIdx.x), totals(totals), wanted(wanted) {}

    __device__ __forceinline__ void begin_half_sweep(bool is_last) {
        on = wanted && is_last;
        if (on) clear();
    }
    __device__ __forceinline__ void end_half_sweep() const {
        if (on) add_octets(load(), totals);
    }

    // The whole warp must call it. Each thread adds one word of four threads' groups, fetched from shared memory.
    __device__ __forceinline__ void group(const Chances<R>& c, const u32 (&accepted)[4], bool there) {
        if (!on) return;
        if (FLUSHES && left-- == 0) {
            add_octets(load(), totals);
            clear(), --left;
        }
        u32 own[3][4];
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            const u32 flips = accepted[w] & c.open[w];
            const u32 low = c.classes.bit[0][w];
            u32 high = c.classes.bit[1][w];
            if constexpr (R::FIELD) high = lop3<(IN_A ^ (~IN_B & ~IN_C & 0xff)) & 0xff>(high, c.open[w], low);
            own[0][w] = BONDS == 7 ? low ^ flips : low;
            own[1][w] = BONDS == 7 ? high ^ flips : lop3<IN_A ^ (IN_B & ~IN_C & 0xff)>(high, flips, low);
            own[2][w] = BONDS == 7 ? flips : lop3<IN_A & ~(IN_B & IN_C) & 0xff>(flips, low, high);
        }
#pragma unroll
        for (int p = 0; p < 3; ++p) at(2 + p) = make_uint4(own[p][0], own[p][1], own[p][2], own[p][3]);
        if (!there) at(2) = at(3) = make_uint4(0, 0, 0, 0);  // and nothing flips
        __syncwarp();
        u32 item[3][7];
        const u32 thread = threadIdx.x & 31;
        const u32* const words = (const u32*)(room - thread + thread % 8) + thread / 8;
#pragma unroll
        for (int p = 0; p < 3; ++p)
#pragma unroll
            for (int k = 0; k < 4; ++k) item[p][k] = words[4 * ((2 + p) * blockDim.x + 8 * k)];
        Counters<COUNTED, 1> sum = load();
        sum.template add_to_plane<0, 4>(item[0], 0, item[1] + 4);
        sum.template add_to_plane<1, 6>(item[1], 0, item[2] + 4);
        sum.template add<2>(item[2], 0);
        store(sum);
        __syncwarp();  // all have fetched
    }
    // A lane left undecided, of class `cls`, flips after all.
    __device__ __forceinline__ void lane(u32 cls, u32 lane) const {
        if (on) atomicAdd(totals + lane, BONDS - 2 * (cls & 3));
    }
};
