// Measurements of a ladder added to sums over energy on the device: the integers of spinsim/engine/measuring/reduction.py, of
// which it does not matter in which order they come.
//
//   read:  numbers        the buffers of measurements, as reduce.cu reads them
//   added: range          [sample] [lowest, highest level]
//          counts         [copy | sum of levels] [block] [sample] [bin]
//          sums           [row]                  [block] [sample] [bin]
//          pair_counts    [count | sum]          [block] [sample] [2 bins]
//          pair_sums      [pair row]             [block] [sample] [2 bins]
//
//   widen_energies, a thread block a sample, first gives all levels to come bins of their own; then add_energies has thread
//   blocks in x: samples and, fastest, places | y: each term | counts of copies | counts of pairs | z: measurements and, fastest,
//   chains: atomic additions take long to come back, so that few threads with many each would wait for most of the time
#include "measuring/terms.cuh"

constexpr u32 MOST_BINS = 2 * HOST(engine.measuring.reduction.MOST_BINS);
constexpr u32 WARPS = THREADS / 32;

struct Energies {
    const Term* terms;
    const double *scales, *constants;  // [term][2][place], [term][place]
    const int2* pairs;                 // the copies of each pair
    long long *range, *counts, *sums, *pair_counts, *pair_sums;
    Source energy;
    double inverse;  // of the unit of levels
    size_t term_count, samples, places, copies, pair_count, bins, blocks, rows, pair_rows;

    __device__ __forceinline__ long long level(const u64* numbers, size_t sample, size_t copy, size_t place) const {
        return (long long)rint(energy.of(numbers, sample, copy, place) * inverse);
    }
};
CHECK_STRUCT(Energies, engine.measuring.cuda_reduction.ENERGIES);

// The smallest shift at which levels from low to high have bins of their own.
__device__ __forceinline__ u32 shift_of(long long low, long long high, size_t bins) {
    u32 shift = 0;
    while ((high >> shift) - (low >> shift) >= (long long)bins) ++shift;
    return shift;
}

__device__ __forceinline__ void add(long long* sum, long long value) { atomicAdd((u64*)sum, (u64)value); }

// Adds bins of a sample in sums[row][block][sample][bin] that share one of a larger shift; `room` is in shared memory.
__device__ __forceinline__ void widen(long long* sums, size_t rows, const Energies& to, size_t sample, size_t bins, long long low,
                                      long long high, u32 shift, u32 wider, u64* room) {
    for (size_t row = 0; row < rows * to.blocks; ++row) {
        long long* const own = sums + (row * to.samples + sample) * bins;
        for (u32 i = threadIdx.x; i < bins; i += THREADS) room[i] = 0;
        __syncthreads();
        for (long long number = (low >> shift) + threadIdx.x; number <= high >> shift; number += THREADS)
            atomicAdd(room + ((number >> (wider - shift)) & (bins - 1)), (u64)__ldcg(own + (number & (bins - 1))));
        __syncthreads();
        for (u32 i = threadIdx.x; i < bins; i += THREADS) own[i] = (long long)room[i];
        __syncthreads();
    }
}

// Gives the levels of `count` measurements, `size` words apart, bins of their own; `number` came before.
__global__ __launch_bounds__(THREADS) void widen_energies(const u64* numbers, size_t size, u32 count, Energies to, u64 number) {
    __shared__ u64 room[MOST_BINS];
    __shared__ long long lowest[WARPS], highest[WARPS];
    const size_t sample = blockIdx.x, replicas = to.copies * to.places;
    long long low = to.level(numbers, sample, 0, 0), high = low;
    for (u32 k = 0; k < count; ++k)
        for (size_t i = threadIdx.x; i < replicas; i += THREADS) {
            const long long level = to.level(numbers + k * size, sample, i / to.places, i % to.places);
            low = min(low, level), high = max(high, level);
        }
#pragma unroll
    for (u32 mask = 16; mask; mask /= 2) {
        low = min(low, __shfl_xor_sync(~0u, low, mask));
        high = max(high, __shfl_xor_sync(~0u, high, mask));
    }
    if (!(threadIdx.x % 32)) lowest[threadIdx.x / 32] = low, highest[threadIdx.x / 32] = high;
    __syncthreads();
    for (u32 w = 0; w < WARPS; ++w) low = min(low, lowest[w]), high = max(high, highest[w]);
    long long* const range = to.range + 2 * sample;
    if (number) {
        const long long old_low = range[0], old_high = range[1];
        low = min(low, old_low), high = max(high, old_high);
        const u32 shift = shift_of(old_low, old_high, to.bins), wider = shift_of(low, high, to.bins);
        if (wider > shift) {
            widen(to.counts, to.copies + 1, to, sample, to.bins, old_low, old_high, shift, wider, room);
            widen(to.sums, to.rows, to, sample, to.bins, old_low, old_high, shift, wider, room);
            if (to.pair_rows) {
                const long long pair_low = 2 * old_low, pair_high = 2 * old_high;
                widen(to.pair_counts, 2, to, sample, 2 * to.bins, pair_low, pair_high, shift, wider, room);
                widen(to.pair_sums, to.pair_rows, to, sample, 2 * to.bins, pair_low, pair_high, shift, wider, room);
            }
        }
    }
    __syncthreads();
    if (!threadIdx.x) range[0] = low, range[1] = high;
}

// Adds each of the measurements, `size` words apart, to its block of 2^shift; `number` came before. Moments are in units of 1 / scale, and
// each thread has every `chains`-th chain.
__global__ __launch_bounds__(THREADS) void add_energies(const u64* numbers, size_t size, u32 chains, Energies to, u64 number, u32 shift,
                                                        double scale) {
    const size_t column = blockIdx.x * (size_t)THREADS + threadIdx.x;
    const size_t sample = column / to.places, place = column % to.places;
    if (column >= to.samples * to.places) return;
    const size_t begin = blockIdx.z % chains, mine = blockIdx.z / chains, block = to.blocks > 1 ? number + mine >> shift : 0;
    numbers += mine * size;
    const u32 narrow = shift_of(to.range[2 * sample], to.range[2 * sample + 1], to.bins);
    const size_t block_of_sample = block * to.samples + sample, row = to.blocks * to.samples;
    const auto bin_of = [&](size_t rows, long long level, size_t bins) {
        return (rows * row + block_of_sample) * bins + ((level >> narrow) & (bins - 1));
    };
    const auto of_copy = [&](size_t copy) { return to.level(numbers, sample, copy, place); };
    const auto of_pair = [&](size_t p) { return of_copy(to.pairs[p].x) + of_copy(to.pairs[p].y); };
    if (blockIdx.y == to.term_count) {
        for (size_t copy = begin; copy < to.copies; copy += chains) {
            const long long level = of_copy(copy);
            add(to.counts + bin_of(copy, level, to.bins), 1);
            add(to.counts + bin_of(to.copies, level, to.bins), level);
        }
        return;
    }
    if (blockIdx.y > to.term_count) {
        for (size_t p = begin; p < to.pair_count; p += chains) {
            const long long level = of_pair(p);
            add(to.pair_counts + bin_of(0, level, 2 * to.bins), 1);
            add(to.pair_counts + bin_of(1, level, 2 * to.bins), level);
        }
        return;
    }
    const Term& term = to.terms[blockIdx.y];
    if (term.row < 0 && term.pair_row < 0) return;
    const double factor = to.scales[blockIdx.y * 2 * to.places + place], constant = to.constants[blockIdx.y * to.places + place];
    for (size_t chain = begin; chain < term.chains; chain += chains) {
        const double x = factor * term.sources[0].of(numbers, sample, chain, place);
        const long long value = (long long)rint(power_of(x + constant, (int)term.power) * scale);
        if (term.row >= 0)
            add(to.sums + bin_of(term.row + (term.own >= 0 ? chain : 0), of_copy(chain), to.bins), value);
        else
            add(to.pair_sums + bin_of(term.pair_row, of_pair(chain), 2 * to.bins), value);
    }
}

// Halves sums, rounding down.
__global__ __launch_bounds__(THREADS) void halve_sums(long long* sums, size_t size) {
    const size_t i = blockIdx.x * (size_t)THREADS + threadIdx.x;
    if (i < size) sums[i] >>= 1;
}
