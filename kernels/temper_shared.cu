// Parallel tempering of samples of at most 128 replicas whose lattice is in shared memory: many rounds a launch.
#include "exchange.cuh"
#include "ladder.cuh"
#include "lane_counts.cuh"
#include "shared_lattice.cuh"

// Bonds of a place with up to three others, 15 bits each, from the lowest bits on; bits 60 to 62 are signs. What is missing
// is a bond with itself.
struct Bonds {
    const u64* groups;     // [sample][group]
    size_t stride, count;  // from sample to sample, 0 where all share them; groups of a sample
};

// A sample's part of Exchange and what its lanes are counted to, in shared memory.
struct Held {
    int place[128], holder[128];
    u32 up[128], unsatisfied[128];
    signed char last_end[128];
};

// Thresholds of the temperatures at which lanes are.
struct LadderThresholds {
    const u64* limits;  // [class][temperature]
    const int* place;
    u32 temperatures;
    __device__ __forceinline__ u64 of(u32 cls, u32 lane) const { return __ldg(limits + cls * temperatures + place[lane]); }
};

// Adds ITEMS words a thread and lane for each of `items` to totals[128] in shared memory, by a whole block.
template <int WORDS, int AT_ONCE, typename Item>
__device__ __forceinline__ void count_block(const Item& item, u32 items, u32* totals) {
    constexpr int COUNTED = 5;
    constexpr u32 MOST = 31 / (WORDS * AT_ONCE) * AT_ONCE;  // of a thread, that the planes hold
    for (u32 base = 0; base < items; base += MOST * blockDim.x) {
        Counters<COUNTED, 4> counters;
        counters.clear();
#pragma unroll 1
        for (u32 k = 0; k < MOST && base + k * blockDim.x < items; k += AT_ONCE) {
            u32 word[4][WORDS * AT_ONCE];
#pragma unroll
            for (int n = 0; n < AT_ONCE; ++n) {
                const u32 i = base + (k + n) * blockDim.x + threadIdx.x;
                uint4 lanes[WORDS] = {};
                if (i < items) item(i, lanes);
#pragma unroll
                for (int j = 0; j < WORDS; ++j)
#pragma unroll
                    for (int w = 0; w < 4; ++w) word[w][n * WORDS + j] = word_of(lanes[j], w);
            }
            counters.add(word);
        }
        add_warp(counters, totals);
    }
}

template <int SLOTS, int COUNT_BITS, bool FIELD, int KIND, int ROUNDS>
__global__ __launch_bounds__(512, 1) void temper_shared(uint4* state, u32 sites, const Batch* batches,
                                                        const int* colour_start, int colours, Model model, const uint4* lanes,
                                                        Ladder ladder, Exchange exchange, Bonds bonds, long long per_up,
                                                        long long per_unsatisfied, u32 first_sample, u64 half_sweep,
                                                        u32 sweeps, u64 round, u32 rounds, Key key) {
    using R = Rule<SLOTS, COUNT_BITS, FIELD, KIND, ROUNDS>;
    using Lattice = SharedLattice<R>;
    constexpr u32 CLASSES = 1 << R::BITS;
    extern __shared__ uint4 shared[];
    __shared__ Held held;
    const u32 sample = blockIdx.z, temperatures = exchange.temperatures, replicas = exchange.copies * temperatures;
    Lattice lattice(shared, sites);
    uint4* const home = state + (size_t)sample * sites;
    lattice.load(home, *lanes);
    const Exchange far = exchange.of(sample);
    for (u32 r = threadIdx.x; r < 128; r += blockDim.x) {
        const bool used = r < replicas;
        held.place[r] = used ? far.place[r] : 0;
        held.holder[r] = used ? far.holder[r] : 0;
        held.last_end[r] = used ? far.last_end[r] : 0;
        held.up[r] = held.unsatisfied[r] = 0;
    }
    __syncthreads();
    const auto lay = [&] {
        const u32 thread = threadIdx.x & 31;
        for (u32 task = threadIdx.x / 32; task < 2 * CLASSES * 4; task += blockDim.x / 32) {
            const u32 row = task / 4, word = task % 4, parity = row / CLASSES, cls = row % CLASSES;
            const size_t from = row * ladder.temperatures + held.place[32 * word + thread];
            const u32 mine = plane_word(__ldg(ladder.limits + from));
            if (thread < PLANES) ((u32*)(lattice.plane_rows() + (parity * PLANES + thread) * CLASSES + cls))[word] = mine;
            if constexpr (!R::PLAIN) {
                const u32 certain = __ballot_sync(~0u, ladder.certain[from]);
                if (thread == 0) ((u32*)(lattice.always_rows() + row))[word] = certain;
            }
        }
    };
    lay();
    const u64* const groups = bonds.groups + sample * bonds.stride;
    for (u32 done = 0; done < rounds; ++done, ++round) {
        const auto thresholds = [&](u32 parity) {
            return LadderThresholds{ladder.limits + parity * CLASSES * temperatures, held.place, temperatures};
        };
        lattice.sweep(sweeps, half_sweep, batches, colour_start, colours, model, thresholds, sample,
                      counter_block(first_sample + sample, 0), key);
        count_block<3, 4>(
            [&](u32 i, uint4 (&differ)[3]) {
                const u64 group = __ldg(groups + i);
                const uint4 own = lattice.words[group & 0x7fff];
#pragma unroll
                for (int k = 0; k < 3; ++k) {
                    const uint4 other = lattice.words[group >> 15 * (k + 1) & 0x7fff];
                    const u32 sign = 0u - (u32)(group >> (60 + k) & 1);
                    differ[k] = make_uint4(parity(own.x, other.x, sign), parity(own.y, other.y, sign),
                                           parity(own.z, other.z, sign), parity(own.w, other.w, sign));
                }
            },
            bonds.count, held.unsatisfied);
        if constexpr (R::FIELD)
            count_block<1, 4>([&](u32 i, uint4 (&spin)[1]) { spin[0] = lattice.words[i]; }, sites, held.up);
        __syncthreads();
        const Exchange near = {held.place,    held.holder, far.attempts, far.accepts,     far.trips,
                               held.last_end, far.steps,   far.copies,   far.temperatures};
        const auto energy = [&](int r) { return per_up * held.up[r] + per_unsatisfied * held.unsatisfied[r]; };
        exchange_sample<ROUNDS>(near, energy, round, first_sample + sample, key);
        for (u32 r = threadIdx.x; r < 128; r += blockDim.x) held.up[r] = held.unsatisfied[r] = 0;
        lay();
        __syncthreads();
    }
    lattice.store(home);
    for (u32 r = threadIdx.x; r < replicas; r += blockDim.x)
        far.place[r] = held.place[r], far.holder[r] = held.holder[r], far.last_end[r] = held.last_end[r];
}
