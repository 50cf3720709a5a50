// Lanes that the bit planes leave undecided, about one in 400: queued by each warp, finished 32 at a time.
//
// Each thread finishing its own lanes would keep the warp waiting for the thread with the most of them.
#pragma once
#include "bitplane.cuh"

// One warp's queue in shared memory: groups with undecided lanes and what is needed to decide them. At most FULL - 1 wait
// when a warp adds up to 32, so nothing overflows.
template <int BITS>
struct Tail {
    static constexpr u32 FULL = 32, ROOM = 64;
    uint4 undecided[ROOM], deep[ROOM], cls[BITS][ROOM];
    u32 group[ROOM];
    u32 count;

    __device__ __forceinline__ void clear() {
        if ((threadIdx.x & 31) == 0) count = 0;
        __syncwarp();
    }

    // Queues what a group left undecided; the whole warp must call it. True when enough wait for a whole warp.
    __device__ __forceinline__ bool add(u32 of_group, const u32 (&lanes)[4], const u32 (&lanes_deep)[4],
                                        const u32 (&bits)[BITS][4]) {
        if (lanes[0] | lanes[1] | lanes[2] | lanes[3]) {
            const u32 i = atomicAdd(&count, 1u);
            group[i] = of_group;
            undecided[i] = make_uint4(lanes[0], lanes[1], lanes[2], lanes[3]);
            deep[i] = make_uint4(lanes_deep[0], lanes_deep[1], lanes_deep[2], lanes_deep[3]);
#pragma unroll
            for (int b = 0; b < BITS; ++b) cls[b][i] = make_uint4(bits[b][0], bits[b][1], bits[b][2], bits[b][3]);
        }
        return waiting() >= FULL;
    }

    __device__ __forceinline__ u32 waiting() {
        __syncwarp();
        const u32 now = *(volatile u32*)&count;
        __syncwarp();
        return now;
    }

    // Takes up to 32 groups off the end and decides one lane of each; those with more lanes go back. `words` is the
    // lattice, in which `group` has four words; thresholds[class << 7 | lane], or thresholds[class] where UNIFORM.
    template <bool UNIFORM, int ROUNDS>
    __device__ __forceinline__ void pop(u32* words, u32 first_group, const u64* thresholds, u32 block, HalfSweep time,
                                        const Key& key) {
        const u32 filled = waiting(), base = filled > FULL ? filled - FULL : 0, i = base + (threadIdx.x & 31);
        u32 at = 0, lane = 0, mask = 0;
        bool again = false;
        if (i < filled) {
            const uint4 lanes = undecided[i];
            const int w = lanes.x ? 0 : lanes.y ? 1 : lanes.z ? 2 : 3;
            const u32 word = lanes.x ? lanes.x : lanes.y ? lanes.y : lanes.z ? lanes.z : lanes.w, rest = word & (word - 1);
            mask = word ^ rest;
            lane = 32 * w + 31 - __clz(mask);
            const uint4 left = {w == 0 ? rest : 0, w == 1 ? rest : w < 1 ? lanes.y : 0, w == 2 ? rest : w < 2 ? lanes.z : 0,
                                w == 3 ? rest : lanes.w};
            again = left.x | left.y | left.z | left.w;
            at = 4 * group[i] + w;
            u32 index = 0;
#pragma unroll
            for (int b = 0; b < BITS; ++b) index |= ((const u32*)&cls[b][i])[w] & mask ? 1u << b : 0u;
            const bool after_columns = ((const u32*)&deep[i])[w] & mask;
            const uint4 own =
                philox<ROUNDS>(first_group + (at >> 2), block, time.word2, time.word3 + TAIL_PLANE + lane, key);
            const u64 threshold = thresholds[UNIFORM ? index : index << 7 | lane];
            const u64 open = threshold << (after_columns ? PLANES : OWN_PLANES);
            if (((u64)own.x << 32 | own.y) < open) atomicXor(words + at, mask);
            if (again) undecided[i] = left;
        }
        keep(base, i, again);
    }

private:
    // Moves the entries that go back together, from `base` on.
    __device__ __forceinline__ void keep(u32 base, u32 i, bool again) {
        const u32 back = __ballot_sync(~0u, again);
        if (back) {
            uint4 lanes, lanes_deep, bits[BITS];
            u32 of_group;
            if (again) {
                lanes = undecided[i], lanes_deep = deep[i], of_group = group[i];
#pragma unroll
                for (int b = 0; b < BITS; ++b) bits[b] = cls[b][i];
            }
            __syncwarp();
            if (again) {
                const u32 to = base + __popc(back & ((1u << (threadIdx.x & 31)) - 1));
                undecided[to] = lanes, deep[to] = lanes_deep, group[to] = of_group;
#pragma unroll
                for (int b = 0; b < BITS; ++b) cls[b][to] = bits[b];
            }
        }
        if ((threadIdx.x & 31) == 0) count = base + __popc(back);
        __syncwarp();
    }
};
