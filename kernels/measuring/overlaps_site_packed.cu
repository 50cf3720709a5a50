// At how many sites or bonds site-packed copies at equal temperatures differ: all of them, and layer by layer.
#include "bits/transpose.cuh"
#include "measuring/pairs.cuh"
#include "packing/any_rows.cuh"

constexpr u32 THREADS = HOST(engine.measuring.cuda_comparison.THREADS), WARPS = THREADS / 32;

// Reads two site-packed lattices where they differ, or one alone.
struct Differing {
    const uint4 *one, *other;

    __device__ __forceinline__ uint4 operator[](size_t i) const {
        const uint4 a = one[i];
        if (!other) return a;
        const uint4 b = other[i];
        return make_uint4(a.x ^ b.x, a.y ^ b.y, a.z ^ b.z, a.w ^ b.w);
    }
};

__device__ __forceinline__ Differing lattices_of(const uint4* state, size_t words, const Successive& which, const Pairs& pairs, u32 pair) {
    const int2 both = pairs_behind(pairs, which.skipped()).of(which.sample(), pair);
    const uint4* const lattices = state + which.state() * pairs.replicas * words;
    return {lattices + both.x * words, both.y < 0 ? nullptr : lattices + both.y * words};
}

__device__ __forceinline__ u32 set_bits(const uint4& v) { return __popc(v.x) + __popc(v.y) + __popc(v.z) + __popc(v.w); }

// Site-packed: a pair in x, shares of its `words` of 128 sites in y, samples of Successive in z. same[sample][pair], all sites at
// first, becomes those where they agree less those where they differ.
__global__ __launch_bounds__(THREADS) void differing_lattices(const uint4* state, u32 words, Successive which, Pairs pairs, u64* same) {
    const Differing lattice = lattices_of(state, words, which, pairs, blockIdx.x);
    u32 count = 0;
    for (u32 i = blockIdx.y * THREADS + threadIdx.x; i < words; i += gridDim.y * THREADS) count += set_bits(lattice[i]);
    count = __reduce_add_sync(~0u, count);
    if (threadIdx.x % 32 == 0) atomicAdd(same + which.skipped() + which.sample() * pairs.count + blockIdx.x, 0 - 2 * (u64)count);
}

// Likewise bonds, each from its site of colour 0: a pair in x, shares of its groups in y, samples in z.
template <int DIMENSION, typename Geometry>
__global__ __launch_bounds__(THREADS) void differing_bonds(const uint4* state, Geometry geometry, u32 layer, Successive which, Pairs pairs,
                                                           u64* same) {
    const u32 groups = groups_of(geometry);
    const Differing lattice = lattices_of(state, 2 * groups, which, pairs, blockIdx.x);
    const auto other = [&](u32 g) { return lattice[(size_t)groups + g]; };
    const auto before = [&](u32 g) { return other(groups - layer + g); };
    u32 count = 0;
    for (u32 g = blockIdx.y * THREADS + threadIdx.x; g < groups; g += gridDim.y * THREADS) {
        uint4 near[2 * DIMENSION];
        neighbours<DIMENSION>(geometry, g, other, before, other, near);
        const uint4 own = lattice[g], used = used_lanes(geometry, g);
#pragma unroll
        for (int k = 0; k < 2 * DIMENSION; ++k) count += set_bits(both(differing(own, near[k]), used));
    }
    count = __reduce_add_sync(~0u, count);
    if (threadIdx.x % 32 == 0) atomicAdd(same + which.skipped() + which.sample() * pairs.count + blockIdx.x, 0 - 2 * (u64)count);
}

// Says where rows of 32-bit words are: of a slab they fill words.
__device__ __forceinline__ u32 words_in_row(const Slab& slab) { return 4 * slab.width; }
template <typename Words>
__device__ __forceinline__ u32 lanes_of_row(const Slab& slab, u32 row, u32 i, const Words& words) {
    return words((size_t)row * 4 * slab.width + i / 32);
}
__device__ __forceinline__ u32 side_of(const Slab& slab) { return 256 * slab.width; }
__device__ __forceinline__ u32 side_of(const AnyRows& rows) { return 2 * rows.width; }

// Reads 32-bit words of one colour where two lattices differ, or of one alone.
struct DifferingWords {
    const u32 *one, *other;
    __device__ __forceinline__ DifferingWords(const Differing& lattice, size_t first)
        : one((const u32*)(lattice.one + first)), other(lattice.other ? (const u32*)(lattice.other + first) : nullptr) {}
    __device__ __forceinline__ u32 operator()(size_t i) const { return other ? one[i] ^ other[i] : one[i]; }
};

// Site-packed sums of layers along y and, in three dimensions, z: a warp a row. Compared in x, shares in y, samples of Successive in z;
// sums[layer][compared] of the launch's first sample, whose next one's are as far as there are.
template <typename Geometry>
__global__ __launch_bounds__(THREADS) void layers_of_rows(const uint4* state, Geometry geometry, Successive which, Pairs pairs,
                                                          u32* along_y, u32* along_z) {
    const u32 rows = geometry.height * geometry.depth, groups = groups_of(geometry), all = gridDim.x;
    const Differing lattice = lattices_of(state, 2 * (size_t)groups, which, pairs, blockIdx.x);
    const DifferingWords zero(lattice, 0), one(lattice, groups);
    u32* const in_y = along_y + (size_t)blockIdx.z * geometry.height * all + blockIdx.x;
    u32* const in_z = along_z ? along_z + (size_t)blockIdx.z * geometry.depth * all + blockIdx.x : nullptr;
    for (u32 row = blockIdx.y * WARPS + threadIdx.x / 32; row < rows; row += gridDim.y * WARPS) {
        u32 count = 0;
        for (u32 word = threadIdx.x % 32; word < words_in_row(geometry); word += 32)
            count += __popc(lanes_of_row(geometry, row, 32 * word, zero)) + __popc(lanes_of_row(geometry, row, 32 * word, one));
        count = __reduce_add_sync(~0u, count);
        if (threadIdx.x % 32) continue;
        const u32 z = row / geometry.height;
        atomicAdd(in_y + (size_t)(row - z * geometry.height) * all, count);
        if (in_z) atomicAdd(in_z + (size_t)z * all, count);
    }
}

// Site-packed sums of layers along x. A thread takes a column of 32-bit words of one colour, in rows of equal parity, which
// hold the same x: 32 rows at a time are turned into a word for each x. It takes every `stripes`-th such tile of rows, so
// that few threads add to the same sums. Grid and sums as above.
template <typename Geometry>
__global__ __launch_bounds__(THREADS) void layers_of_columns(const uint4* state, Geometry geometry, Successive which, Pairs pairs,
                                                             u32* along_x, u32 stripes) {
    const u32 words = words_in_row(geometry), half = geometry.height / 2, rows = half * geometry.depth;
    const size_t groups = groups_of(geometry);
    const Differing lattice = lattices_of(state, 2 * groups, which, pairs, blockIdx.x);
    const u32 all = gridDim.x, columns = 4 * words, tiles = (rows + 31) / 32, side = side_of(geometry);
    u32* const sums = along_x + (size_t)blockIdx.z * side * all + blockIdx.x;
    for (u32 i = blockIdx.y * THREADS + threadIdx.x; i < columns * stripes; i += gridDim.y * THREADS) {
        const u32 stripe = i / columns, column = i - stripe * columns, kind = column / words, word = column - kind * words;
        const u32 colour = kind / 2, parity = kind % 2;
        const DifferingWords of_colour(lattice, colour * groups);
        u32 count[32] = {};
        for (u32 tile = stripe; tile < tiles; tile += stripes) {
            u32 a[32];
#pragma unroll
            for (u32 k = 0; k < 32; ++k) {
                const u32 row = 32 * tile + k, z = row / half, y = 2 * (row - z * half) + ((z + parity) & 1);
                a[k] = row < rows ? lanes_of_row(geometry, y + geometry.height * z, 32 * word, of_colour) : 0;
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
