// Lanes that the bit planes leave undecided, about one in 300: queued by each warp, finished 32 at a time.
//
// Each thread finishing its own lanes would keep the warp waiting for the thread with the most of them.
#pragma once
#include "bitplane.cuh"

// One warp's queue in shared memory: words with undecided lanes, with what is needed to decide them.
template <int BITS>
struct Tail {
    static constexpr u32 ROOM = 96, FULL = 32;
    u32 count;
    u32 place[ROOM];  // index of the word in the lattice, 4 * group + word
    u32 undecided[ROOM], deep[ROOM];
    u32 cls[BITS][ROOM];

    __device__ __forceinline__ void clear() {
        if ((threadIdx.x & 31) == 0) count = 0;
        __syncwarp();
    }

    __device__ __forceinline__ bool push(u32 where, u32 lanes, u32 lanes_deep, const u32 (&bits)[BITS]) {
        const u32 i = atomicAdd(&count, 1u);
        if (i >= ROOM) return false;
        place[i] = where, undecided[i] = lanes, deep[i] = lanes_deep;
#pragma unroll
        for (int b = 0; b < BITS; ++b) cls[b][i] = bits[b];
        return true;
    }

    // Takes up to 32 words off the end and decides one lane of each; words with more lanes go back.
    template <int ROUNDS>
    __device__ __forceinline__ void pop(u32 filled, u32* words, u32 first_group, const u64* thresholds, u32 lane_stride,
                                        u32 block, HalfSweep time, const Key& key) {
        const u32 base = filled > FULL ? filled - FULL : 0, i = base + (threadIdx.x & 31);
        u32 where = 0, lanes = 0, lanes_deep = 0, bits[BITS] = {};
        if (i < filled) {
            where = place[i], lanes = undecided[i], lanes_deep = deep[i];
#pragma unroll
            for (int b = 0; b < BITS; ++b) bits[b] = cls[b][i];
        }
        __syncwarp();
        if ((threadIdx.x & 31) == 0) count = base;
        __syncwarp();
        if (lanes) {
            const u32 rest = lanes & (lanes - 1), mask = lanes ^ rest, lane = 32 * (where & 3) + 31 - __clz(mask);
            u32 index = 0;
#pragma unroll
            for (int b = 0; b < BITS; ++b) index |= bits[b] & mask ? 1u << b : 0u;
            const uint4 own = philox<ROUNDS>(first_group + (where >> 2), block, time.word2, time.word3 + TAIL_PLANE + lane, key);
            const u64 threshold = thresholds[lane_stride ? index << 7 | lane : index];
            const u64 open = lanes_deep & mask ? threshold << PLANES : threshold << OWN_PLANES;
            if (((u64)own.x << 32 | own.y) < open) atomicXor(words + where, mask);
            if (rest) push(where, rest, lanes_deep, bits);
        }
        __syncwarp();
    }

    // Queues what a group left undecided and decides lanes while there are enough for a whole warp, which must call it.
    // `finish` is called with the number of words queued and calls `pop`.
    template <typename Bits, typename Finish>
    __device__ __forceinline__ void take(u32 group, u32 (&undecided_words)[4], const u32 (&deep_words)[4], const Bits& bits,
                                         Finish finish) {
        u32 filled;
        do {
#pragma unroll
            for (int w = 0; w < 4; ++w)
                if (undecided_words[w]) {
                    u32 of_word[BITS];
#pragma unroll
                    for (int b = 0; b < BITS; ++b) of_word[b] = bits[b][w];
                    if (push(4 * group + w, undecided_words[w], deep_words[w], of_word)) undecided_words[w] = 0;
                }
            filled = waiting();
            u32 queued = filled;
            while (queued >= FULL) {
                finish(queued < ROOM ? queued : ROOM);
                queued = waiting();
            }
        } while (filled > ROOM);  // some did not find room
    }

    // Decides all that wait.
    template <typename Finish>
    __device__ __forceinline__ void empty(Finish finish) {
        for (u32 filled = waiting(); filled; filled = waiting()) finish(filled);
    }

private:
    __device__ __forceinline__ u32 waiting() {
        __syncwarp();
        const u32 filled = *(volatile u32*)&count;
        __syncwarp();
        return filled;
    }
};
