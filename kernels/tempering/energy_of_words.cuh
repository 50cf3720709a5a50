// Exact energies, and numbers of spins +1, of replicas whose words a thread block holds in shared memory.
#pragma once
#include "metropolis/unpacked.cuh"

constexpr u32 HALF = 16;  // replicas of a thread that adds up energies

// Adds up 16 sums over a warp: lanes l and 16 + l return sum l. The two lanes of each pair APART keep half of 2 * APART sums each.
template <int APART = HALF / 2>
__device__ __forceinline__ long long warp_sum(long long (&sum)[HALF]) {
    const bool upper = threadIdx.x & APART;
#pragma unroll
    for (int k = 0; k < APART; ++k) {
        const long long kept = upper ? sum[k + APART] : sum[k], other = upper ? sum[k] : sum[k + APART];
        sum[k] = kept + __shfl_xor_sync(~0u, other, APART);
    }
    if constexpr (APART > 1) return warp_sum<APART / 2>(sum);
    return sum[0] + __shfl_xor_sync(~0u, sum[0], HALF);
}

// Adds energies in quanta of `replicas` replicas to `energy` in shared memory, by a whole block, which holds `words` words of each
// place in `held`. A bond is counted from its higher place; places below `first` have neither such bonds nor fields.
template <typename Integer>
__device__ __noinline__ void add_energies(const Exact& exact, u32 sample, const u32* held, u32 words, u32 replicas, u32 first,
                                          u32 sites, u64* energy) {
    constexpr int AHEAD = 3;  // neighbours asked for at once
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x / 32, warps = blockDim.x / 32, halves = (replicas + HALF - 1) / HALF;
    const u32 sharing = max(1u, warps / halves);  // warps that share the places of half a word
    const unsigned short* const spins = (const unsigned short*)held;
    const Integer* const couplings = (const Integer*)exact.couplings + sample * exact.coupling_stride;
    const Integer* const fields = (const Integer*)exact.fields + sample * exact.field_stride;
    for (u32 half = warp / sharing; half < halves; half += warps / sharing) {
        long long cost[HALF] = {}, all = 0;  // of what is not satisfied, and of all
        for (u32 place = first + warp % sharing * 32 + lane; place < sites; place += sharing * 32) {
            const u32 own = spins[place * words * 2 + half];
            const Integer field = fields[place];
            Integer here[HALF];
            all += field;
#pragma unroll
            for (int r = 0; r < HALF; ++r) here[r] = own >> r & 1 ? 0 : field;
            for (long long e = exact.start[place], last = exact.start[place + 1]; e < last; e += AHEAD) {
                u32 differ[AHEAD];
                Integer coupling[AHEAD];
#pragma unroll
                for (int k = 0; k < AHEAD; ++k) {
                    const u32 near = e + k < last ? exact.near[e + k] : sites;
                    const bool lower = near < place;
                    differ[k] = own ^ (lower ? spins[near * words * 2 + half] : 0), coupling[k] = lower ? couplings[e + k] : 0;
                    all += coupling[k];
                }
#pragma unroll
                for (int k = 0; k < AHEAD; ++k)
#pragma unroll
                    for (int r = 0; r < HALF; ++r) here[r] += differ[k] >> r & 1 ? coupling[k] : 0;
            }
#pragma unroll
            for (int r = 0; r < HALF; ++r) cost[r] += here[r];
        }
#pragma unroll
        for (int r = 0; r < HALF; ++r) cost[r] = 2 * cost[r] - all;
        const long long sum = warp_sum(cost);
        if (lane < HALF) atomicAdd(energy + half * HALF + lane, (u64)sum);
    }
}

// Adds spins +1 of every replica to `up` in shared memory, by a whole block; those of the first `first_sites` places are added to the
// upper half as well.
__device__ __forceinline__ void add_up(const u32* held, u32 words, u32 first_sites, u32 sites, u32* up) {
    const u32 lane = threadIdx.x & 31, warps = blockDim.x / 32, parts = (warps + words - 1) / words;
    for (u32 task = threadIdx.x / 32; task < words * parts; task += warps) {
        const u32 word = task % words;
        u32 count = 0;
        for (u32 place = task / words; place < sites; place += parts)
            count += (held[place * words + word] >> lane & 1) * (place < first_sites ? 0x10001 : 1);
        atomicAdd(up + 32 * word + lane, count);
    }
}
