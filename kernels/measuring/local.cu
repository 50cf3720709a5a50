// Local susceptibilities of models of space and time: over measurements, squares of the sums of spins along world lines.
#include "bits/lane_counts.cuh"

constexpr u32 THREADS = HOST(engine.measuring.cuda.SQUARES_THREADS), WARPS = THREADS / 32;
constexpr u32 LINES = HOST(engine.measuring.cuda.SQUARES_LINES);  // of a thread block
constexpr u32 COLUMN = 129;                                             // for 128 replicas; one more spreads lines over banks
constexpr int COUNT_PLANES = 8;
constexpr u32 MOST = (1 << COUNT_PLANES) - 1;  // spins that the planes hold of a thread, or a byte of a replica

// Says which world lines of a sample are added, and to what: sums[sample][place of a copy][line], holder[sample][place of a copy].
struct Lines {
    const int* places;  // [line][slice], of the spins
    const int* holder;
    long long* sums;
    size_t lines, slices, replicas;
};
CHECK_STRUCT(Lines, engine.measuring.cuda.LINES_TYPE);

// Adds the squares of a thread block's lines from up[line][replica], the spins +1 of each, of its 128 replicas. No other block
// adds to the same sums.
__device__ __forceinline__ void add_squares(const u32 (&up)[LINES][COLUMN], const Lines& to) {
    const u32 first = blockIdx.x * LINES, replicas = to.replicas;
    const size_t row = (size_t)blockIdx.z * replicas;
    for (u32 i = threadIdx.x; i < replicas * LINES; i += THREADS) {
        const u32 q = i / LINES, line = i % LINES, replica = to.holder[row + q];
        if (first + line >= to.lines || replica / 128 != blockIdx.y) continue;
        const long long sum = 2 * (long long)up[line][replica % 128] - (long long)to.slices;
        to.sums[(row + q) * to.lines + first + line] += sum * sum;
    }
}

// Adds the squares of replica-packed spins state[sample][block][place]: LINES lines in x, blocks of replicas in y, samples in z. A
// warp takes a line.
__global__ __launch_bounds__(THREADS) void squares_of_replicas(const uint4* state, u32 sites, Lines to) {
    __shared__ u32 up[LINES][COLUMN];
    const uint4* const lattice = state + ((size_t)blockIdx.z * gridDim.y + blockIdx.y) * sites;
    const u32 lane = threadIdx.x % 32, first = blockIdx.x * LINES, slices = to.slices;
    for (u32 line = threadIdx.x / 32; line < LINES && first + line < to.lines; line += WARPS) {
        const int* const places = to.places + (size_t)(first + line) * slices;
        u32* const own = up[line];
#pragma unroll
        for (int k = 0; k < 4; ++k) own[lane + 32 * k] = 0;
        __syncwarp();
        for (u32 begin = 0; begin < slices; begin += 32 * MOST) {
            const u32 stop = min(slices, begin + 32 * MOST);
            Counters<COUNT_PLANES, 4> counters;
            counters.clear();
            const auto add = [&](auto items, u32 slice) {
                constexpr int ITEMS = sizeof(items);
                u32 word[4][ITEMS];
#pragma unroll
                for (int k = 0; k < ITEMS; ++k) {
                    const uint4 spins = __ldg(lattice + __ldg(places + slice + 32 * k));
                    word[0][k] = spins.x, word[1][k] = spins.y, word[2][k] = spins.z, word[3][k] = spins.w;
                }
                counters.add(word);
            };
            u32 slice = begin + lane;
            for (; slice + 96 < stop; slice += 128) add(u32(), slice);
            for (; slice < stop; slice += 32) add(char(), slice);
            add_warp(counters, own);
            __syncwarp();
        }
    }
    __syncthreads();
    add_squares(up, to);
}
