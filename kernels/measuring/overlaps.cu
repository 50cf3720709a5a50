// At how many sites or bonds replica-packed or unpacked copies at equal temperatures differ, in segments, and the modes that
// follow from layers: spinsim/engine/measuring/correlations.py on the GPU.
#include "bits/transpose.cuh"
#include "measuring/pairs.cuh"

constexpr u32 THREADS = HOST(engine.measuring.cuda_comparison.THREADS), WARPS = THREADS / 32;
constexpr u32 BLOCKS = HOST(engine.measuring.cuda_comparison.BLOCKS);  // of a multiprocessor
// Words of a tile's column of 32 replicas in shared memory; the last one is 0.
constexpr u32 COLUMN = HOST(engine.measuring.cuda_comparison.COLUMN);
constexpr u32 NOBODY = COLUMN - 1;  // the first column's zero: a magnetisation is the overlap with it
constexpr u32 COMPARED = HOST(engine.measuring.cuda_comparison.COMPARED);  // that a thread block takes
constexpr u32 PARTS = HOST(engine.measuring.cuda_comparison.PARTS);  // of a launch
constexpr u32 AT_ONCE = 8;  // segments whose sums are asked for together
constexpr u32 STRETCHES = 4;  // of the segments in shared memory: warps take a stretch for 32 pairs at a time

// `count` items, places of sites (`ends` 1) or pairs of places (2), in segments of `size`, of which `shares` thread blocks take
// theirs in turn. The items in which the first `compared` of Pairs differ are written to sums[segment][compared] or, where that
// is null, taken from a total: that of links where `are_bonds`, else of overlaps. Where segments are `linked` layers that hold
// their sites in the same order, bonds to the next layer that differ are taken from the total of links, after the last layer
// those to the first where `periodic`.
struct Items {
    const int* places;
    u32* sums;  // of the launch's first sample, the next one's are segments * compared further
    size_t ends, count, size, segments, compared, shares, are_bonds, linked, periodic;
};
CHECK_STRUCT(Items, engine.measuring.cuda_comparison.ITEMS);

// overlap[sample][pair] and links[sample][pair]: what they are where nothing differs, from which twice what does is taken.
struct Totals {
    u64 *overlap, *links;

    __device__ __forceinline__ Totals behind(size_t words) const { return {overlap + words, links + words}; }

    static __device__ __forceinline__ void add_to(u64* total, u32 differing) {
        if (differing) atomicAdd(total, 0 - 2 * (u64)differing);
    }
};
CHECK_STRUCT(Totals, engine.measuring.cuda_comparison.TOTALS);

struct Parts { Items part[PARTS]; };
CHECK_STRUCT(Parts, engine.measuring.cuda_comparison.COUNTED_PARTS);

// Writes a word for each replica of a column, from 32 items or fewer, to to[0] ... to[31].
struct PackedReplicas {
    const u32* words;  // [block][place][4]
    u32 sites;

    __device__ __forceinline__ void fill(u32 column, const Items& items, u32 first, u32 stop, u32* to) const {
        const u32* const of_column = words + (size_t)(column / 4) * 4 * sites + column % 4;
        const auto at = [&](int place) { return of_column[(size_t)4 * (u32)place]; };
        u32 a[32];
        if (items.ends == 2) {
            const int2* const bonds = (const int2*)items.places;
#pragma unroll
            for (int i = 0; i < 32; ++i) {
                a[i] = 0;
                if (first + i < stop) a[i] = at(bonds[first + i].x) ^ at(bonds[first + i].y);
            }
        } else if (stop - first == 32 && first % 4 == 0) {  // most: four places at once
            const int4* const places = (const int4*)(items.places + first);
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                const int4 four = places[i];
                a[4 * i] = at(four.x), a[4 * i + 1] = at(four.y), a[4 * i + 2] = at(four.z), a[4 * i + 3] = at(four.w);
            }
        } else {
#pragma unroll
            for (int i = 0; i < 32; ++i) a[i] = first + i < stop ? at(items.places[first + i]) : 0;
        }
        transpose(a);
#pragma unroll
        for (int i = 0; i < 32; ++i) to[i] = a[i];
    }
};

struct UnpackedReplicas {
    const signed char* spins;  // [site][width]
    u32 width;

    __device__ __forceinline__ void fill(u32 column, const Items& items, u32 first, u32 stop, u32* to) const {
        const signed char* const of_column = spins + 32 * column;
        const u32 replicas = min(32u, width - 32 * column);  // a multiple of 4
        for (u32 r = 0; r < replicas; r += 4) {
            u32 a[4] = {};
            for (u32 i = first; i < stop; ++i) {
                const bool is_bond = items.ends == 2;
                const int one = items.places[is_bond ? (size_t)2 * i : i];
                u32 four = *(const u32*)(of_column + (size_t)one * width + r);
                if (is_bond) four ^= ~*(const u32*)(of_column + (size_t)items.places[(size_t)2 * i + 1] * width + r);
#pragma unroll
                for (int k = 0; k < 4; ++k) a[k] |= (~four >> (8 * k + 7) & 1) << (i - first);  // the sign of a byte
            }
#pragma unroll
            for (int k = 0; k < 4; ++k) to[r + k] = a[k];
        }
    }
};

// Returns what two replicas of a tile's words differ in, and where one of them is NOBODY the other's set bits.
struct Couple {
    u32 one, other;

    __device__ __forceinline__ u32 in(const u32* tile) const { return tile[one] ^ tile[other]; }
};

// Adds up a segment's `height` tiles, `stride` words apart, and of the bonds to the next segment's.
__device__ __forceinline__ uint2 compare_tiles(Couple couple, const u32* tile, const u32* next, u32 height, u32 stride) {
    uint2 sums = make_uint2(0, 0);
    if (next) {
#pragma unroll 4
        for (u32 k = 0; k < height; ++k) {
            const u32 differing = couple.in(tile + k * stride);
            sums.x += __popc(differing), sums.y += __popc(differing ^ couple.in(next + k * stride));
        }
    } else {
#pragma unroll 4
        for (u32 k = 0; k < height; ++k) sums.x += __popc(couple.in(tile + k * stride));
    }
    return sums;
}

// Groups of segments, one segment or as many short ones as 32 items hold, are turned into words in shared memory, `tiles`
// of 32 items at once; then warps compare 32 pairs at a time. COMPARED of Pairs in y, samples in z. COLUMNS: of 32
// replicas, 0 for any number.
template <u32 COLUMNS, typename Replicas>
__device__ __forceinline__ void count_items(const Replicas& replicas, u32 any_columns, u32 tiles, const Items& items,
                                            u32 share, u32 sample, const Totals& totals, const Pairs& pairs) {
    extern __shared__ u32 words[];  // [tile][column][COLUMN]
    const u32 columns = COLUMNS ? COLUMNS : any_columns, stride = columns * COLUMN;
    u32* const who = words + tiles * stride;
    const u32 begin = blockIdx.y * COMPARED, all = items.compared, of_copies = pairs.count;
    if (begin >= all) return;
    const u32 compared = min(COMPARED, all - begin), chunks = (compared + 31) / 32;
    const auto word_of = [](int replica) { return replica < 0 ? NOBODY : (u32)replica + (u32)replica / 32; };
    for (u32 q = threadIdx.x; q < compared; q += THREADS) {
        const int2 pair = pairs.of(sample, begin + q);
        who[q] = word_of(pair.x) | word_of(pair.y) << 16;
    }
    for (u32 t = threadIdx.x; t < tiles; t += THREADS) words[t * stride + NOBODY] = 0;
    const u32 size = items.size, segments = items.segments, count = items.count;
    const u32 together = size < 32 ? 32 / size : 1, length = together * size, deep = (length + 31) / 32;
    const u32 groups = (segments + together - 1) / together, mask = size < 32 ? (1u << size) - 1 : ~0u;
    const u32 room = tiles / deep, ahead = items.linked ? 1 : 0;  // groups in shared memory, the next one among them
    const u32 at_once = room >= groups ? groups : max(1u, room > ahead ? room - ahead : 1);
    const u32 highest = room >= min(groups, at_once + ahead) ? deep : tiles / (1 + ahead);
    const u32 each = (groups + (u32)items.shares - 1) / (u32)items.shares, last = min(groups, (share + 1) * each);
    u32* const sums = items.sums ? items.sums + (size_t)blockIdx.z * segments * all + begin : nullptr;
    const size_t first_total = (size_t)sample * of_copies + begin;
    for (u32 group = share * each; group < last; group += at_once) {
        const u32 now = min(at_once, last - group), fetched = now < groups ? now + ahead : now;
        for (u32 t = 0; t < deep; t += highest) {  // once, but for groups that need more room
            const u32 height = min(highest, deep - t);
            for (u32 c = threadIdx.x; c < fetched * height * columns; c += THREADS) {
                const u32 tile = c / columns, own = tile / height, whose = group + own;
                const u32 from = (whose < groups ? whose : whose - groups) * length;
                const u32 first = from + 32 * (t + tile - own * height);
                replicas.fill(c - tile * columns, items, first, min(min(from + length, count), first + 32), words + c * COLUMN);
            }
            __syncthreads();
            for (u32 unit = threadIdx.x / 32; unit < chunks * STRETCHES; unit += WARPS) {
                const u32 q = unit / STRETCHES * 32 + threadIdx.x % 32, stretch = unit % STRETCHES;
                if (q >= compared) continue;
                const Couple couple = {who[q] & 0xffff, who[q] >> 16};
                const bool has_links = ahead && begin + q < of_copies;
                const u32 stop = now * (stretch + 1) / STRETCHES;
                uint2 all_counts = make_uint2(0, 0);
                for (u32 own = now * stretch / STRETCHES; own < stop; ++own) {
                    const u32* const tile = words + own * height * stride;
                    const u32* const after = group + own + 1 == groups && now == groups ? words : tile + height * stride;
                    u32 segment = (group + own) * together;
                    if (together == 1) {
                        const bool linked = has_links && (segment + 1 < segments || items.periodic);
                        uint2 counts = compare_tiles(couple, tile, linked ? after : nullptr, height, stride);
                        all_counts.x += counts.x, all_counts.y += counts.y;
                        if (!sums) continue;
                        u32* const sum = sums + (size_t)segment * all + q;
                        *sum = t ? *sum + counts.x : counts.x;  // to what this thread wrote before
                        continue;
                    }
                    const u32 differing = couple.in(tile), beyond = ahead ? couple.in(after) : 0;
                    for (u32 k = 0; k < together && segment < segments; ++k, ++segment) {
                        const u32 mine = differing >> k * size & mask, count = __popc(mine);
                        all_counts.x += count;
                        if (sums) sums[(size_t)segment * all + q] = count;
                        const bool is_last = segment + 1 == segments, is_inside = k + 1 < together && !is_last;
                        if (!has_links || (is_last && !items.periodic)) continue;
                        const u32 next = (is_inside ? differing >> (k + 1) * size : beyond) & mask;
                        all_counts.y += __popc(mine ^ next);
                    }
                }
                if (!sums) Totals::add_to((items.are_bonds ? totals.links : totals.overlap) + first_total + q, all_counts.x);
                if (has_links) Totals::add_to(totals.links + first_total + q, all_counts.y);
            }
            __syncthreads();
        }
    }
}

// Says which part a thread block works on, and its share of it.
__device__ __forceinline__ const Items& part_of(const Parts& parts, u32& share) {
    u32 k = 0;
    for (; share >= parts.part[k].shares; ++k) share -= parts.part[k].shares;
    return parts.part[k];
}

// Compares replica-packed copies: parts and their shares in x, samples of Successive in z.
template <u32 COLUMNS>
__global__ __launch_bounds__(THREADS, BLOCKS) void differing_replicas(
    const u32* state, u32 sites, u32 blocks, u32 tiles, Successive which, Parts parts, Totals totals, Pairs pairs) {
    u32 share = blockIdx.x;
    const Items& items = part_of(parts, share);
    const PackedReplicas replicas = {state + (size_t)which.state() * blocks * sites * 4, sites};
    const size_t skipped = which.skipped();
    count_items<COLUMNS>(replicas, 4 * blocks, tiles, items, share, which.sample(), totals.behind(skipped),
                         pairs_behind(pairs, skipped));
}

// Compares unpacked copies likewise.
__global__ __launch_bounds__(THREADS, BLOCKS) void differing_spins(
    const signed char* state, u32 sites, u32 width, u32 tiles, Successive which, Parts parts, Totals totals, Pairs pairs) {
    u32 share = blockIdx.x;
    const Items& items = part_of(parts, share);
    const UnpackedReplicas replicas = {state + (size_t)which.state() * sites * width, width};
    const size_t skipped = which.skipped();
    count_items<0>(replicas, (width + 31) / 32, tiles, items, share, which.sample(), totals.behind(skipped),
                   pairs_behind(pairs, skipped));
}

// Says what becomes of the sums of a part: totals[sample][pair] less twice them; of a layer each, with cosines and sines of
// `wave`, modes[sample][compared][axis]; of slices, which may be layers too, powers[sample][compared][2], sums of second and
// fourth powers; of pairs in time in_time[sample][replica][segment], each sum by itself. Any of them may be missing.
struct Outcome {
    const u32* sums;
    size_t segments, compared, size;
    u64* totals;
    const double* wave;
    double* modes;
    long long *powers, *in_time;

    __device__ __forceinline__ Outcome behind(size_t words) const {
        Outcome moved = *this;
        if (totals) moved.totals += words;
        if (modes) moved.modes += words;
        if (powers) moved.powers += words;
        if (in_time) moved.in_time += words;
        return moved;
    }
};
CHECK_STRUCT(Outcome, engine.measuring.cuda_comparison.OUTCOME);

struct Outcomes { Outcome part[PARTS]; };
CHECK_STRUCT(Outcomes, engine.measuring.cuda_comparison.OUTCOMES);

// What a column of sums adds up to.
struct Moments {
    u32 total = 0;
    long long second = 0, fourth = 0;
    double real = 0, imaginary = 0;

    // Adds segments from x on, AT_ONCE of them or, unless FULL, as many as are there.
    template <bool FULL>
    __device__ __forceinline__ void add(const Outcome& part, const u32* sums, u32 x) {
        const u32 segments = part.segments, all = part.compared;
        u32 differing[AT_ONCE];
#pragma unroll
        for (u32 k = 0; k < AT_ONCE; ++k) differing[k] = FULL || x + k < segments ? __ldg(sums + (size_t)(x + k) * all) : 0;
        if (part.totals) {
#pragma unroll
            for (u32 k = 0; k < AT_ONCE; ++k) total += differing[k];
        }
        if (part.powers) {
#pragma unroll
            for (u32 k = 0; k < AT_ONCE; ++k) {
                const long long value = (long long)part.size - 2 * (long long)differing[k], square = value * value;
                if (FULL || x + k < segments) second += square, fourth += square * square;
            }
        }
        if (part.wave) {
            const double *const cosines = part.wave + x, *const sines = cosines + segments;
#pragma unroll
            for (u32 k = 0; k < AT_ONCE; ++k) {
                if (!FULL && x + k >= segments) break;
                const double value = (double)((long long)part.size - 2 * (long long)differing[k]);
                real = __dadd_rn(real, __dmul_rn(value, __ldg(cosines + k)));
                imaginary = __dadd_rn(imaginary, __dmul_rn(value, __ldg(sines + k)));
            }
        }
    }
};

// Compared in x, parts in y, samples of Successive in z; the order of squared_modes in
// spinsim/engine/measuring/cpu_comparison.py.
__global__ __launch_bounds__(THREADS) void finish_sums(Outcomes outcomes, u32 axes, u32 pairs, Successive which) {
    const Outcome part = outcomes.part[blockIdx.y].behind(which.skipped());
    const u32 q = blockIdx.x * THREADS + threadIdx.x, all = part.compared, segments = part.segments;
    if (q >= all) return;
    const size_t sample = which.sample();
    const u32* const sums = part.sums + (size_t)blockIdx.z * segments * all + q;
    if (part.in_time) {
        if (q < pairs) return;
        long long* const values = part.in_time + (sample * (all - pairs) + q - pairs) * segments;
        for (u32 x = 0; x < segments; ++x) values[x] = (long long)part.size - 2 * (long long)sums[(size_t)x * all];
        return;
    }
    Moments moments;
    u32 x = 0;
#pragma unroll 1
    for (; x + AT_ONCE <= segments; x += AT_ONCE) moments.add<true>(part, sums, x);
    if (x < segments) moments.add<false>(part, sums, x);
    if (part.powers) part.powers[2 * (sample * all + q)] = moments.second, part.powers[2 * (sample * all + q) + 1] = moments.fourth;
    if (part.totals && q < pairs) Totals::add_to(part.totals + sample * pairs + q, moments.total);
    if (part.wave)
        part.modes[(sample * all + q) * axes + blockIdx.y] =
            __dadd_rn(__dmul_rn(moments.real, moments.real), __dmul_rn(moments.imaginary, moments.imaginary));
}
