// A measurement of a ladder added up on the device, with the operations and in the order of
// spinsim/engine/measuring/cpu_reduction.py, so that all sums have the bits that they have on a host.
//
//   read:  numbers    the buffer of a measurement, laid out by spinsim/engine/measuring/cuda.py; a Source finds in it
//                     x(sample, chain, place) = sum over elements of numbers[first + sample * of_sample + chain * of_chain
//                                                                           + place * of_place + element]
//                     where a chain is a copy or a pair of copies
//   added: block_sums        [term]          [block]              [sample]                  [place]
//          copy_sums         [own term]                           [sample] [copy]           [place]
//          coldest_sums      [judged term]     [coldest block]    [sample] [chain]
//          level_sums        [followed term] [level block][level] [sample]                  [place]
//          level_squares     [followed term] [level block][level] [sample]                  [place]
//          level_open        [followed term]              [level] [sample]                  [place]
//          first_value       [followed term]                      [sample]                  [place]
//          walk_sums                           [walk block]       [sample] [replica]
//          walk_squares                                           [sample]
//          counts of a histogram                                  [sample]                  [place] [cell]
//
//   thread blocks in y: each term | each histogram | the walks;   in x: samples and, fastest, places
#include "measuring/terms.cuh"

constexpr u32 LEVELS = HOST(engine.measuring.reduction.LEVELS);
constexpr int CONNECTED = HOST(engine.measuring.reduction.CONNECTED);
constexpr u32 HISTOGRAMS = HOST(engine.measuring.cuda_reduction.MOST_HISTOGRAMS);

struct Histogram {
    u32* counts;
    size_t first, values, cells;
};
CHECK_STRUCT(Histogram, engine.measuring.cuda_reduction.HISTOGRAM);

// All that is added to, and sizes; `place` is the first word of the replicas' places, int [sample][replica].
struct Sums {
    const Term* terms;
    const double *scales, *constants;  // [term][2][place], [term][place]
    const int2* pairs;                 // the copies of each pair
    double *block_sums, *copy_sums, *coldest_sums, *level_sums, *level_squares, *level_open, *first_value;
    double* walk_sums;
    long long* walk_squares;
    size_t term_count, histogram_count, samples, places, copies, pair_count, most_chains, blocks, coldest_blocks, level_blocks,
        place;
    Histogram histograms[HISTOGRAMS];
};
CHECK_STRUCT(Sums, engine.measuring.cuda_reduction.SUMS);

// The connected square of the overlaps of one sample and place; loads of the same numbers again come from the nearest cache.
template <typename Overlap>
__device__ __forceinline__ double connected_square(const Sums& to, double scale, const Overlap& overlap) {
    const double copies = (double)to.copies;
    double squares = 0, rows = 0, whole = 0;
    for (int copy = 0; copy < to.copies; ++copy) {
        double row = 0;
        for (u32 p = 0; p < to.pair_count; ++p)
            if (to.pairs[p].x == copy || to.pairs[p].y == copy) row += overlap(p);
        rows += row * row;
        whole += row;
    }
    for (u32 p = 0; p < to.pair_count; ++p) {
        const double q = overlap(p);
        squares += q * q;
    }
    squares *= 2.0;
    const double sharing = rows - squares, apart = whole * whole - 2.0 * squares - 4.0 * sharing;
    const double choices = copies * (copies - 1.0) * (copies - 2.0) * (copies - 3.0);
    const double total = (copies - 2.0) * (copies - 3.0) * squares - 2.0 * (copies - 3.0) * sharing + apart;
    return total / choices * scale;
}

// Adds a value to sums of 1, 2, 4, ... consecutive ones, `number` of which came before; levels are `stride` apart. A sum whose
// other half is yet to come waits in `open`.
__device__ __forceinline__ void follow(double c, u64 number, double* sums, double* squares, size_t stride, double* open) {
#pragma unroll 1
    for (u32 level = 0; level < LEVELS; ++level) {
        sums[level * stride] += c;
        squares[level * stride] += c * c;
        if (!(number >> level & 1)) {
            open[level * stride] = c;
            return;
        }
        c = open[level * stride] + c;
    }
}

// Adds a term of a sample at a place. Chains come in turn, as sums depend on their order.
__device__ __forceinline__ void add_term(const u64* numbers, const Sums& to, u32 number_of_term, size_t sample, size_t place,
                                         u64 number, u64 block, u64 coldest_block) {
    const Term& term = to.terms[number_of_term];
    const size_t columns = to.samples * to.places, column = sample * to.places + place;
    const int power = (int)term.power;
    const bool follows = term.followed >= 0, has_own = term.own >= 0, has_two = term.count > 1;
    const double* const scales = to.scales + number_of_term * 2 * to.places + place;
    const double scale = scales[0], other_scale = scales[to.places];
    const double constant = to.constants[number_of_term * to.places + place];
    double* const to_block = to.block_sums + (number_of_term * to.blocks + block) * columns + column;
    double* to_coldest = nullptr;
    if (term.judged >= 0 && !place)
        to_coldest = to.coldest_sums + ((term.judged * to.coldest_blocks + coldest_block) * to.samples + sample) * to.most_chains;
    double *to_own = nullptr, *sums = nullptr, *squares = nullptr, *open = nullptr, *to_first = nullptr, first = 0;
    if (has_own) to_own = to.copy_sums + ((term.own * to.samples + sample) * to.copies) * to.places + place;
    if (follows) {
        const size_t levels = ((term.followed * to.level_blocks + (to.level_blocks > 1 ? block : 0)) * LEVELS) * columns + column;
        sums = to.level_sums + levels, squares = to.level_squares + levels;
        open = to.level_open + term.followed * LEVELS * columns + column;
        to_first = to.first_value + term.followed * columns + column;
        if (number) first = *to_first;
    }
    double total = *to_block, added = 0;
#pragma unroll 1
    for (u32 chain = 0; chain < term.chains; ++chain) {
        double y;
        if (power == CONNECTED) {
            y = connected_square(to, scale, [&](u32 p) { return term.sources[0].of(numbers, sample, p, place); });
        } else {
            double x = scale * term.sources[0].of(numbers, sample, chain, place);
            if (has_two) x = x + other_scale * term.sources[1].of(numbers, sample, chain, place);
            y = power_of(x + constant, power);
        }
        total = total + y;
        added = added + y;
        if (has_own) to_own[chain * to.places] += y;
        if (to_coldest) to_coldest[chain] += y;
    }
    *to_block = total;
    if (follows) {
        if (!number) *to_first = first = added;
        follow(added - first, number, sums, squares, columns, open);
    }
}

// Counts the overlaps of a sample's pairs at a place; no other thread has its cells, but atomics do not wait for what was there.
__device__ __forceinline__ void count_overlaps(const u64* numbers, const Sums& to, const Histogram& histogram, size_t sample,
                                               size_t place) {
    const long long values = histogram.values, cells = histogram.cells;
    u32* const counts = histogram.counts + (sample * to.places + place) * cells;
    for (u32 p = 0; p < to.pair_count; ++p) {
        const long long overlap = numbers[histogram.first + (sample * to.pair_count + p) * to.places + place];
        atomicAdd(counts + (overlap + values - 1) / 2 * cells / values, 1u);
    }
}

// Adds 2 place - places + 1 of all replicas to a block, and its squares: a warp takes 32 replicas of a sample and adds their squares
// up, as integers may come in any order.
__device__ __forceinline__ void add_walks(const u64* numbers, const Sums& to, u64 block) {
    const size_t replicas = to.copies * to.places, of_sample = (replicas + 31) / 32;
    const int* const places = (const int*)(numbers + to.place);
    const u32 lane = threadIdx.x % 32;
    for (size_t w = (blockIdx.x * (size_t)THREADS + threadIdx.x) / 32; w < to.samples * of_sample;
         w += (size_t)gridDim.x * (THREADS / 32)) {
        const size_t sample = w / of_sample, replica = w % of_sample * 32 + lane, at = sample * replicas + replica;
        const bool is_there = replica < replicas;
        const long long c = is_there ? 2 * (long long)places[at] - (long long)to.places + 1 : 0;
        if (is_there) to.walk_sums[block * to.samples * replicas + at] += (double)c;
        long long squares = c * c;
#pragma unroll
        for (u32 mask = 16; mask; mask /= 2) squares += __shfl_xor_sync(~0u, squares, mask);
        if (!lane) atomicAdd((u64*)to.walk_squares + sample, (u64)squares);
    }
}

// Adds `count` measurements, `size` words apart and in turn, to blocks of 2^shift each; `number` came before. All of a thread's sums are
// its own, so that it need not wait for others between two measurements.
__global__ __launch_bounds__(THREADS) void add_measurements(const u64* numbers, size_t size, u32 count, Sums to, u64 number,
                                                            u32 block_shift, u32 coldest_shift, u32 walk_shift) {
    const size_t column = blockIdx.x * (size_t)THREADS + threadIdx.x;
    const size_t sample = column / to.places, place = column % to.places;
    const bool is_there = column < to.samples * to.places;
#pragma unroll 1
    for (u32 k = 0; k < count; ++k, numbers += size, ++number) {
        if (blockIdx.y == to.term_count + to.histogram_count)
            add_walks(numbers, to, number >> walk_shift);
        else if (is_there && blockIdx.y < to.term_count)
            add_term(numbers, to, blockIdx.y, sample, place, number, number >> block_shift, number >> coldest_shift);
        else if (is_there)
            count_overlaps(numbers, to, to.histograms[blockIdx.y - to.term_count], sample, place);
    }
}

// Adds neighbouring blocks to each other in sums[row][block][column]: the first half holds the results, the other half is emptied.
// A thread has all blocks of a column, and reads each before it is overwritten.
template <typename Number>
__global__ __launch_bounds__(THREADS) void merge_blocks(Number* sums, size_t rows, size_t blocks, size_t columns) {
    const size_t i = blockIdx.x * (size_t)THREADS + threadIdx.x;
    if (i >= rows * columns) return;
    Number* const own = sums + i / columns * blocks * columns + i % columns;
    for (size_t b = 0; b < blocks / 2; ++b) own[b * columns] = own[2 * b * columns] + own[(2 * b + 1) * columns];
    for (size_t b = blocks / 2; b < blocks; ++b) own[b * columns] = 0;
}
