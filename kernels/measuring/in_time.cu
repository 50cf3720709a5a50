// Correlations in time of replica-packed models of space and time: for each time t the pairs of sites (x, tau) and (x, tau + t)
// whose spins differ, lane by lane. Products of neighbours take the place of spins too.
#include "bits/lane_counts.cuh"
#include "metropolis/bitplane.cuh"
#include "measuring/pairs.cuh"

constexpr u32 THREADS = HOST(engine.measuring.cuda_comparison.TIME_THREADS), WARPS = THREADS / 32;
constexpr u32 LINES = HOST(engine.measuring.cuda_comparison.WORLD_LINES);  // whose pairs a thread adds together
constexpr int COUNT_PLANES = 8;
static_assert(HOST(engine.measuring.cuda_comparison.LINE_WORDS) / 32 + LINES < 1 << COUNT_PLANES, "the planes hold a thread's pairs");
static_assert(2 * HOST(engine.measuring.cuda_comparison.MOST_SLICES) <= HOST(engine.measuring.cuda_comparison.LINE_WORDS), "a line fits twice");

// Thread blocks take `together` world lines each (x), of blocks of replicas (y) and samples (z), into shared memory, where each
// warp takes times in turn; of `slices` slices they hold, `stretch` words apart, the first ones again behind the last, so that
// no time of a pair needs to turn round. places[line][slice]; totals[sample][block][time][128] are added to.
__global__ __launch_bounds__(THREADS, 3) void correlate_in_time(const uint4* state, u32 sites, const int* places, u32 lines,
                                                                u32 slices, u32 stretch, u32 together, const u32* times,
                                                                u32 count, u32* totals) {
    extern __shared__ uint4 words[];  // [line][stretch]
    __shared__ u32 of_warps[WARPS][128];
    const size_t part = (size_t)blockIdx.z * gridDim.y + blockIdx.y;
    const uint4* const lattice = state + part * sites;
    const u32 first = blockIdx.x * together, here = min(together, lines - first);
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (u32 i = threadIdx.x; i < slices; i += THREADS) {
        uint4 word[LINES];
#pragma unroll
        for (u32 k = 0; k < LINES; ++k)
            if (k < here) word[k] = __ldg(lattice + __ldg(places + (size_t)(first + k) * slices + i));
#pragma unroll
        for (u32 k = 0; k < LINES; ++k) {
            if (k >= here) break;
            words[k * stretch + i] = word[k];
            if (slices + i < stretch) words[k * stretch + slices + i] = word[k];
        }
    }
    __syncthreads();
    for (u32 t = warp; t < count; t += WARPS) {
        const u32 later = times[t];
        Counters<COUNT_PLANES, 4> counters;
        counters.clear();
        const auto add = [&](auto is_there) {
#pragma unroll 1
            for (u32 slice = lane; slice < slices; slice += 32) {
                const uint4* const now = words + slice;
                u32 word[4][LINES];
#pragma unroll
                for (u32 k = 0; k < LINES; ++k) {
                    uint4 differ = make_uint4(0, 0, 0, 0);
                    if (is_there(k)) differ = differing(now[k * stretch], now[k * stretch + later]);
#pragma unroll
                    for (int w = 0; w < 4; ++w) word[w][k] = word_of(differ, w);
                }
                counters.add(word);
            }
        };
        if (here == LINES)
            add([](u32) { return true; });
        else
            add([=](u32 k) { return k < here; });
        u32* const own = of_warps[warp];
#pragma unroll
        for (int k = 0; k < 4; ++k) own[lane + 32 * k] = 0;
        __syncwarp();
        add_warp(counters, own);
        __syncwarp();
        u32* const to = totals + (part * count + t) * 128;
#pragma unroll
        for (int k = 0; k < 4; ++k)
            if (own[lane + 32 * k]) atomicAdd(to + lane + 32 * k, own[lane + 32 * k]);
        __syncwarp();
    }
}

// Writes in_time[sample][replica][time], the pairs of equal spins less those of different ones, of the replicas that Pairs has
// alone, samples in y, times in z; the totals are cleared.
__global__ __launch_bounds__(THREADS) void sort_in_time(u32* totals, u32 blocks, u32 sites, u32 count, Pairs pairs, u32 replicas,
                                                        long long* in_time) {
    const u32 q = blockIdx.x * THREADS + threadIdx.x, sample = blockIdx.y, t = blockIdx.z;
    if (q >= replicas) return;
    const u32 replica = pairs.of(sample, pairs.count + q).x;
    u32* const from = totals + (((size_t)sample * blocks + replica / 128) * count + t) * 128 + replica % 128;
    in_time[((size_t)sample * replicas + q) * count + t] = (long long)sites - 2 * (long long)*from;
    *from = 0;
}
