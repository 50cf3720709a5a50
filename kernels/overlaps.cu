// At how many sites or bonds copies at equal temperatures differ, in segments, and the modes that follow from layers:
// spinsim/engine/correlations.py on the GPU.
#include "slab.cuh"
#include "bit_transpose.cuh"
#include "unpacked.cuh"

constexpr u32 THREADS = 256, WARPS = THREADS / 32;
constexpr u32 COLUMN = 33;         // words of a tile's column of 32 replicas in shared memory; the last one is 0
constexpr u32 NOBODY = 32;         // the first column's zero: a magnetisation is the overlap with it
constexpr u32 COMPARED = 1024;     // that a thread block takes
constexpr u32 STRETCHES = 4;       // of the segments in shared memory: warps take a stretch for 32 pairs at a time

// Pair q * temperatures + t: the replicas of copies[q].x and copies[q].y at temperature t. Past the `count` pairs: each
// replica alone, in the order of `holder`, its partner -1.
struct Pairs {
    const int* holder;   // [sample][copy][temperature]
    const int2* copies;  // [q]
    size_t replicas, temperatures, count;

    __device__ __forceinline__ int2 of(u32 sample, u32 pair) const {
        const int* const held = holder + (size_t)sample * replicas;
        if (pair >= count) return make_int2(held[pair - count], -1);
        const u32 q = pair / (u32)temperatures, t = pair - q * (u32)temperatures;
        return make_int2(held[copies[q].x * temperatures + t], held[copies[q].y * temperatures + t]);
    }
};

// `count` items, places of sites (`ends` 1) or pairs of places (2), in segments of `size`; sums[segment][compared] become
// the items in which the first `compared` of Pairs differ. Of layers that hold their sites in the same order, links[layer]
// [pair] become the bonds to the next one that differ, after the last one the first's where `periodic`. `shares` thread
// blocks take them in turn.
struct Items {
    const int* places;
    u32 *sums, *links;  // of the launch's first sample, the next one's are segments * compared or pairs further
    size_t ends, count, size, segments, compared, shares, periodic;
};

struct Parts { Items part[4]; };

// A word for each replica of a column, from 32 items or fewer, to to[0] ... to[31].
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

// What two replicas of a tile's words differ in, and where one of them is NOBODY the other's set bits.
struct Couple {
    u32 one, other;

    __device__ __forceinline__ u32 in(const u32* tile) const { return tile[one] ^ tile[other]; }
};

// Sums of a segment's `height` tiles, `stride` words apart, and of the bonds to the next segment's.
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
                                            u32 share, u32 sample, const Pairs& pairs) {
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
    const u32 room = tiles / deep, beside = items.links ? 1 : 0;  // groups in shared memory, the next one among them
    const u32 at_once = room >= groups ? groups : max(1u, room > beside ? room - beside : 1);
    const u32 highest = room >= min(groups, at_once + beside) ? deep : tiles / (1 + beside);
    const u32 each = (groups + (u32)items.shares - 1) / (u32)items.shares, last = min(groups, (share + 1) * each);
    u32* const sums = items.sums + (size_t)blockIdx.z * segments * all + begin;
    u32* const links = items.links + (size_t)blockIdx.z * segments * of_copies + begin;
    for (u32 group = share * each; group < last; group += at_once) {
        const u32 now = min(at_once, last - group), fetched = now < groups ? now + beside : now;
        for (u32 t = 0; t < deep; t += highest) {  // once, but for groups that need more room
            const u32 height = min(highest, deep - t);
            for (u32 c = threadIdx.x; c < fetched * height * columns; c += THREADS) {
                const u32 tile = c / columns, own = tile / height, whose = group + own;
                const u32 from = (whose < groups ? whose : whose - groups) * length, first = from + 32 * (t + tile - own * height);
                replicas.fill(c - tile * columns, items, first, min(min(from + length, count), first + 32), words + c * COLUMN);
            }
            __syncthreads();
            for (u32 unit = threadIdx.x / 32; unit < chunks * STRETCHES; unit += WARPS) {
                const u32 q = unit / STRETCHES * 32 + threadIdx.x % 32, stretch = unit % STRETCHES;
                if (q >= compared) continue;
                const Couple couple = {who[q] & 0xffff, who[q] >> 16};
                const bool has_links = beside && begin + q < of_copies;
                const u32 stop = now * (stretch + 1) / STRETCHES;
                for (u32 own = now * stretch / STRETCHES; own < stop; ++own) {
                    const u32* const tile = words + own * height * stride;
                    const u32* const after = group + own + 1 == groups && now == groups ? words : tile + height * stride;
                    u32 segment = (group + own) * together;
                    if (together == 1) {
                        const bool linked = has_links && (segment + 1 < segments || items.periodic);
                        uint2 found = compare_tiles(couple, tile, linked ? after : nullptr, height, stride);
                        u32* const sum = sums + (size_t)segment * all + q;
                        if (t) found.x += *sum;  // what this thread wrote before
                        *sum = found.x;
                        if (!has_links) continue;
                        u32* const link = links + (size_t)segment * of_copies + q;
                        if (t) found.y += *link;
                        *link = found.y;
                        continue;
                    }
                    const u32 differing = couple.in(tile), beyond = beside ? couple.in(after) : 0;
                    for (u32 k = 0; k < together && segment < segments; ++k, ++segment) {
                        const u32 mine = differing >> k * size & mask;
                        sums[(size_t)segment * all + q] = __popc(mine);
                        if (!has_links) continue;
                        const bool is_last = segment + 1 == segments, is_inside = k + 1 < together && !is_last;
                        const u32 next = (is_inside ? differing >> (k + 1) * size : beyond) & mask;
                        links[(size_t)segment * of_copies + q] = is_last && !items.periodic ? 0 : __popc(mine ^ next);
                    }
                }
            }
            __syncthreads();
        }
    }
}

// The part that a thread block works on, and its share of it.
__device__ __forceinline__ const Items& part_of(const Parts& parts, u32& share) {
    u32 k = 0;
    for (; share >= parts.part[k].shares; ++k) share -= parts.part[k].shares;
    return parts.part[k];
}

// Replica-packed: parts and their shares in x. `first`: the launch's first sample.
template <u32 COLUMNS>
__global__ __launch_bounds__(THREADS, 3) void differing_replicas(const u32* state, u32 sites, u32 blocks, u32 tiles, u32 first,
                                                                 Parts parts, Pairs pairs) {
    u32 share = blockIdx.x;
    const Items& items = part_of(parts, share);
    const u32 sample = first + blockIdx.z;
    const PackedReplicas replicas = {state + (size_t)sample * blocks * sites * 4, sites};
    count_items<COLUMNS>(replicas, 4 * blocks, tiles, items, share, sample, pairs);
}

// Unpacked: likewise.
__global__ __launch_bounds__(THREADS, 3) void differing_spins(const signed char* state, u32 sites, u32 width, u32 tiles,
                                                              u32 first, Parts parts, Pairs pairs) {
    u32 share = blockIdx.x;
    const Items& items = part_of(parts, share);
    const u32 sample = first + blockIdx.z;
    const UnpackedReplicas replicas = {state + (size_t)sample * sites * width, width};
    count_items<0>(replicas, (width + 31) / 32, tiles, items, share, sample, pairs);
}

// What becomes of a part's sums: totals[sample][pair] less twice them, likewise link_totals of links, and, of a layer each,
// with cosines and sines of `wave`, modes[sample][compared][axis]; any of them may be missing.
struct Outcome {
    const u32 *sums, *links;
    size_t segments, compared, size;
    u64 *totals, *link_totals;
    const double* wave;
    double* modes;
};

struct Outcomes { Outcome part[4]; };

// Compared in x, parts in y, samples in z; the order of engine/cpu/overlaps.py's squared_modes.
__global__ __launch_bounds__(THREADS) void finish_sums(Outcomes outcomes, u32 axes, u32 pairs, u32 first) {
    const Outcome& part = outcomes.part[blockIdx.y];
    const u32 q = blockIdx.x * THREADS + threadIdx.x, all = part.compared, segments = part.segments;
    if (q >= all) return;
    const size_t sample = first + blockIdx.z;
    const u32* const sums = part.sums + (size_t)blockIdx.z * segments * all + q;
    u64 total = 0;
    double real = 0, imaginary = 0;
#pragma unroll 8
    for (u32 x = 0; x < segments; ++x) {
        const u32 differing = sums[(size_t)x * all];
        total += differing;
        if (part.wave) {
            const double value = (double)((long long)part.size - 2 * (long long)differing);
            real = __dadd_rn(real, __dmul_rn(value, part.wave[x]));
            imaginary = __dadd_rn(imaginary, __dmul_rn(value, part.wave[segments + x]));
        }
    }
    if (part.totals && q < pairs) atomicAdd(part.totals + sample * pairs + q, 0 - 2 * total);
    if (part.wave)
        part.modes[(sample * all + q) * axes + blockIdx.y] =
            __dadd_rn(__dmul_rn(real, real), __dmul_rn(imaginary, imaginary));
    if (!part.links || q >= pairs) return;
    const u32* const links = part.links + (size_t)blockIdx.z * segments * pairs + q;
    total = 0;
#pragma unroll 8
    for (u32 x = 0; x < segments; ++x) total += links[(size_t)x * pairs];
    atomicAdd(part.link_totals + sample * pairs + q, 0 - 2 * total);
}

// Two site-packed lattices where they differ, or one alone.
struct Differing {
    const uint4 *one, *other;

    __device__ __forceinline__ uint4 operator[](size_t i) const {
        const uint4 a = one[i];
        if (!other) return a;
        const uint4 b = other[i];
        return make_uint4(a.x ^ b.x, a.y ^ b.y, a.z ^ b.z, a.w ^ b.w);
    }
};

__device__ __forceinline__ Differing lattices_of(const uint4* state, size_t words, u32 sample, const Pairs& pairs, u32 pair) {
    const int2 both = pairs.of(sample, pair);
    const uint4* const lattices = state + sample * pairs.replicas * words;
    return {lattices + both.x * words, both.y < 0 ? nullptr : lattices + both.y * words};
}

__device__ __forceinline__ u32 set_bits(const uint4& v) { return __popc(v.x) + __popc(v.y) + __popc(v.z) + __popc(v.w); }

// Site-packed: a pair in x, shares of its `words` of 128 sites in y, samples in z. same[sample][pair], all sites at first,
// becomes those where they agree less those where they differ.
__global__ __launch_bounds__(THREADS) void differing_lattices(const uint4* state, u32 words, Pairs pairs, u64* same) {
    const u32 sample = blockIdx.z;
    const Differing lattice = lattices_of(state, words, sample, pairs, blockIdx.x);
    u32 count = 0;
    for (u32 i = blockIdx.y * THREADS + threadIdx.x; i < words; i += gridDim.y * THREADS) count += set_bits(lattice[i]);
    count = __reduce_add_sync(~0u, count);
    if (threadIdx.x % 32 == 0) atomicAdd(same + sample * pairs.count + blockIdx.x, 0 - 2 * (u64)count);
}

// Likewise bonds, each from its site of colour 0: a pair in x, shares of its groups in y, samples in z.
template <int DIMENSION>
__global__ __launch_bounds__(THREADS) void differing_bonds(const uint4* state, Slab slab, Pairs pairs, u64* same) {
    const u32 sample = blockIdx.z, layer = slab.layer(DIMENSION), groups = layer * slab.layers(DIMENSION);
    const Differing lattice = lattices_of(state, 2 * groups, sample, pairs, blockIdx.x);
    const auto other = [&](u32 g) { return lattice[(size_t)groups + g]; };
    const auto before = [&](u32 g) { return other(groups - layer + g); };
    u32 count = 0;
    for (u32 g = blockIdx.y * THREADS + threadIdx.x; g < groups; g += gridDim.y * THREADS) {
        uint4 near[2 * DIMENSION];
        neighbours<DIMENSION>(slab, g, other, before, other, near);
        const uint4 own = lattice[g];
#pragma unroll
        for (int k = 0; k < 2 * DIMENSION; ++k) {
            const uint4 n = near[k];
            count += set_bits(make_uint4(own.x ^ n.x, own.y ^ n.y, own.z ^ n.z, own.w ^ n.w));
        }
    }
    count = __reduce_add_sync(~0u, count);
    if (threadIdx.x % 32 == 0) atomicAdd(same + sample * pairs.count + blockIdx.x, 0 - 2 * (u64)count);
}

// Site-packed sums of layers along y and, in three dimensions, z: a warp a row. Compared in x, shares in y, samples in z;
// sums[layer][compared] of the launch's first sample, whose next one's are as far as there are.
__global__ __launch_bounds__(THREADS) void layers_of_rows(const uint4* state, Slab slab, u32 first, Pairs pairs, u32* along_y,
                                                          u32* along_z) {
    const u32 sample = first + blockIdx.z, rows = slab.height * slab.depth, groups = rows * slab.width, all = gridDim.x;
    const Differing lattice = lattices_of(state, 2 * (size_t)groups, sample, pairs, blockIdx.x);
    u32* const in_y = along_y + (size_t)blockIdx.z * slab.height * all + blockIdx.x;
    u32* const in_z = along_z ? along_z + (size_t)blockIdx.z * slab.depth * all + blockIdx.x : nullptr;
    for (u32 row = blockIdx.y * WARPS + threadIdx.x / 32; row < rows; row += gridDim.y * WARPS) {
        u32 count = 0;
        for (u32 q = threadIdx.x % 32; q < 2 * slab.width; q += 32) {
            const u32 colour = q >= slab.width;
            count += set_bits(lattice[(size_t)colour * groups + row * slab.width + q - colour * slab.width]);
        }
        count = __reduce_add_sync(~0u, count);
        if (threadIdx.x % 32) continue;
        const u32 z = row / slab.height;
        atomicAdd(in_y + (size_t)(row - z * slab.height) * all, count);
        if (in_z) atomicAdd(in_z + (size_t)z * all, count);
    }
}

// Site-packed sums of layers along x. A thread takes a column of 32-bit words of one colour, in rows of equal parity, which
// hold the same x: 32 rows at a time are turned into a word for each x. It takes every `stripes`-th such tile of rows, so
// that few threads add to the same sums. Grid and sums as above.
__global__ __launch_bounds__(THREADS) void layers_of_columns(const uint4* state, Slab slab, u32 first, Pairs pairs,
                                                             u32* along_x, u32 stripes) {
    const u32 sample = first + blockIdx.z, words = 4 * slab.width, half = slab.height / 2, rows = half * slab.depth;
    const size_t groups = (size_t)2 * rows * slab.width;
    const int2 both = pairs.of(sample, blockIdx.x);
    const u32* const lattices = (const u32*)(state + sample * pairs.replicas * 2 * groups);
    const u32 *const one = lattices + both.x * 8 * groups, *const other = lattices + max(both.y, 0) * 8 * groups;
    const u32 all = gridDim.x, columns = 4 * words, tiles = (rows + 31) / 32;
    u32* const sums = along_x + (size_t)blockIdx.z * 64 * words * all + blockIdx.x;
    for (u32 i = blockIdx.y * THREADS + threadIdx.x; i < columns * stripes; i += gridDim.y * THREADS) {
        const u32 stripe = i / columns, column = i - stripe * columns, kind = column / words, word = column - kind * words;
        const u32 colour = kind / 2, parity = kind % 2;
        u32 count[32] = {};
        for (u32 tile = stripe; tile < tiles; tile += stripes) {
            u32 a[32];
#pragma unroll
            for (u32 k = 0; k < 32; ++k) {
                const u32 row = 32 * tile + k, z = row / half, y = 2 * (row - z * half) + ((z + parity) & 1);
                const size_t at = 4 * (colour * groups + (size_t)(y + slab.height * z) * slab.width) + word;
                a[k] = row < rows ? one[at] ^ (both.y < 0 ? 0 : other[at]) : 0;
            }
            transpose(a);
#pragma unroll
            for (u32 b = 0; b < 32; ++b) count[b] += __popc(a[b]);
        }
#pragma unroll
        for (u32 b = 0; b < 32; ++b)
            if (count[b]) atomicAdd(sums + (size_t)(2 * (32 * word + b) + ((parity + colour) & 1)) * all, count[b]);
    }
}
