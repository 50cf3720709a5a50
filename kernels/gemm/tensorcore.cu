// Rung 9: float64 on the tensor cores, tiles copied several stages ahead into swizzled shared memory.
#include "gemm/mma.cuh"
#include "gemm/vectors.cuh"
#include "synchronisation/async_copy.cuh"

using namespace products;

// A tile of SIDE rows of A (or columns of B) and TILE_K steps p, as it lies in memory: ACROSS means that rows of one p are
// neighbours, otherwise the p of one row are. Pairs of elements are exchanged within a line so that the four lines or pieces
// of 32 bytes that half a warp reads at once lie in different banks.
template <int SIDE, int TILE_K, bool ACROSS>
struct Swizzled {
    static constexpr int LENGTH = ACROSS ? SIDE : TILE_K, LINES = ACROSS ? TILE_K : SIDE, SIZE = SIDE * TILE_K;
    static_assert(LENGTH % 16 == 0, "the exchange stays within 128 bytes");

    static __device__ __forceinline__ int at(int line, int place) { return line * LENGTH + (place ^ 4 * (line & 3)); }
    static __device__ __forceinline__ int of(int i, int p) { return ACROSS ? at(p, i) : at(i, p); }
};

// One operand's way into shared memory, a tile after the other; `x` has p as its second index.
template <int SIDE, int TILE_K, bool ACROSS, int THREADS>
struct TileCopier {
    using Tile = Swizzled<SIDE, TILE_K, ACROSS>;
    static constexpr int PAIRS = Tile::LENGTH / 2, STEP = THREADS / PAIRS, COPIES = Tile::LINES / STEP;
    static_assert(THREADS % PAIRS == 0 && Tile::LINES % STEP == 0, "whole lines at a time");

    const double* at;
    long long pitch;  // from line to line
    int left, rows;   // steps p from this thread's first on; rows of the tile from this thread's first
    bool wide;

    __device__ __forceinline__ TileCopier(const Matrix<double>& x, long long i0, long long height, const Part& part) {
        const int line = threadIdx.x / PAIRS, place = threadIdx.x % PAIRS * 2;
        const int i = ACROSS ? place : line, p = ACROSS ? line : place;
        pitch = ACROSS ? x.column : x.row;
        at = x.at + (i0 + i) * x.row + (part.first + p) * x.column;
        rows = (int)max(-(long long)SIDE, min((long long)SIDE, height - i0 - i));
        left = part.depth() - p;
        wide = (ACROSS ? height : part.end) % 2 == 0 && on_vectors(x.at, pitch);
    }

    __device__ __forceinline__ void copy(double* tile) {
        const int line = threadIdx.x / PAIRS, place = threadIdx.x % PAIRS * 2;
#pragma unroll
        for (int e = 0; e < COPIES; ++e) {
            double* const to = tile + Tile::at(line + e * STEP, place);
            const double* const from = at + e * STEP * pitch;
            const bool line_inside = e * STEP < (ACROSS ? left : rows);
            const int here = ACROSS ? rows : left;  // elements of the line from this thread's first
            if (wide) {
                copy_async<16>(to, from, line_inside && here > 0);
            } else {
                copy_async<8>(to, from, line_inside && here > 0);
                copy_async<8>(to + 1, from + 1, line_inside && here > 1);
            }
        }
        at += TILE_K * (ACROSS ? pitch : 1);
        left -= TILE_K;
    }
};

// What a warp's lanes hold of 4 STEPS steps p, for the instructions of mma.cuh.
template <int WARP_M, int WARP_N, int STEPS>
struct Fragments {
    double a[WARP_M / 16][2 * STEPS], b[WARP_N / 8][STEPS];

    template <typename TileA, typename TileB>
    __device__ __forceinline__ void read(const double* tile_a, const double* tile_b, int i, int j, int p) {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
        for (int s = 0; s < STEPS; ++s) {
#pragma unroll
            for (int r = 0; r < WARP_M / 8; ++r) a[r / 2][2 * s + r % 2] = tile_a[TileA::of(i + 8 * r + g, p + 4 * s + t)];
#pragma unroll
            for (int r = 0; r < WARP_N / 8; ++r) b[r][s] = tile_b[TileB::of(j + 8 * r + g, p + 4 * s + t)];
        }
    }
};

template <int WARP_M, int WARP_N>
__device__ __forceinline__ void store_sums(const Output<double>& c, long long i, long long j, const Size& size,
                                           const double (&sum)[WARP_M / 16][WARP_N / 8][4], double alpha, double beta) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const bool wide = on_vectors(c.at, c.row);
#pragma unroll
    for (int r = 0; r < WARP_M / 8; ++r)
#pragma unroll
        for (int s = 0; s < WARP_N / 8; ++s) {
            const long long row = i + 8 * r + g, column = j + 8 * s + 2 * t;
            const double first = sum[r / 2][s][r % 2 * 2], second = sum[r / 2][s][r % 2 * 2 + 1];
            if (wide && row < size.m && column + 2 <= size.n) {
                double2* const place = reinterpret_cast<double2*>(c.at + row * c.row + column);
                double2 old = {};
                if (beta != 0) old = *place;
                *place = {blend(first, &old.x, alpha, beta), blend(second, &old.y, alpha, beta)};
            } else {
                finish(c, row, column, size, first, alpha, beta);
                finish(c, row, column + 1, size, second, alpha, beta);
            }
        }
}

template <int TILE_M, int TILE_N, int TILE_K, int WARP_M, int WARP_N, int STAGES, int STEPS, int SETS, bool HOPPER,
          bool ACROSS_A, bool ACROSS_B>
__global__ __launch_bounds__(TILE_M / WARP_M * (TILE_N / WARP_N) * 32) void gemm_tensorcore(
    Matrix<double> a, Matrix<double> b, Output<double> c, Size size, double alpha, double beta) {
    constexpr int THREADS = TILE_M / WARP_M * (TILE_N / WARP_N) * 32, PARTS = TILE_K / (4 * STEPS);
    static_assert(TILE_M % WARP_M == 0 && TILE_N % WARP_N == 0 && WARP_M % 16 == 0 && WARP_N % 8 == 0, "whole warps");
    static_assert(STAGES >= 2 && PARTS % SETS == 0, "one tile in use, another on its way; whole fragments");
    // SETS of registers: with two, one is read while another is multiplied
    static_assert(SETS == 1 || SETS == 2, "read ahead or not");
    using CopierA = TileCopier<TILE_M, TILE_K, ACROSS_A, THREADS>;
    using CopierB = TileCopier<TILE_N, TILE_K, ACROSS_B, THREADS>;
    extern __shared__ uint4 shared[];
    double* const tiles_a = reinterpret_cast<double*>(shared);
    double* const tiles_b = tiles_a + STAGES * CopierA::Tile::SIZE;
    const Part part(size);
    const Corner corner = corner_of<TILE_M, TILE_N>(blockIdx.x, size);
    const int warp = threadIdx.x / 32, i = warp / (TILE_N / WARP_N) * WARP_M, j = warp % (TILE_N / WARP_N) * WARP_N;
    CopierA copier_a(a, corner.i, size.m, part);
    CopierB copier_b(b.transposed(), corner.j, size.n, part);
    const auto copy = [&](int stage) {  // past the last tile it copies zeros, so that groups can be counted
        copier_a.copy(tiles_a + stage * CopierA::Tile::SIZE);
        copier_b.copy(tiles_b + stage * CopierB::Tile::SIZE);
        commit_copies();
    };
    Fragments<WARP_M, WARP_N, STEPS> fragments[SETS];
    const auto read = [&](int stage, int part) {
        fragments[part % SETS].template read<typename CopierA::Tile, typename CopierB::Tile>(
            tiles_a + stage * CopierA::Tile::SIZE, tiles_b + stage * CopierB::Tile::SIZE, i, j, part * 4 * STEPS);
    };
    for (int stage = 0; stage < STAGES - 1; ++stage) copy(stage);
    wait_for_copies<STAGES - 2>();
    __syncthreads();
    double sum[WARP_M / 16][WARP_N / 8][4] = {};
    if (SETS == 2) read(0, 0);
    const int tiles = (part.depth() + TILE_K - 1) / TILE_K;
    int reading = 0, writing = STAGES - 1;
    for (int tile = 0; tile < tiles; ++tile) {
#pragma unroll
        for (int part = 0; part < PARTS; ++part) {
            if (SETS == 1) read(reading, part);
            if (part == 0) {  // all threads have passed the barrier since they last read this stage
                copy(writing);
                writing = writing + 1 == STAGES ? 0 : writing + 1;
            }
            if (part == PARTS - 1) {  // what is read next is the next tile's
                wait_for_copies<STAGES - 2>();
                __syncthreads();
                reading = reading + 1 == STAGES ? 0 : reading + 1;
            }
            if (SETS == 2) read(reading, (part + 1) % PARTS);
#pragma unroll
            for (int r = 0; r < WARP_M / 16; ++r)
#pragma unroll
                for (int s = 0; s < WARP_N / 8; ++s)
                    mma<STEPS, HOPPER>(sum[r][s], fragments[part % SETS].a[r], fragments[part % SETS].b[s]);
        }
    }
    wait_for_copies<0>();
    c = of_part(c, size);
    store_sums<WARP_M, WARP_N>(c, corner.i + i, corner.j + j, size, sum, alpha, beta);
}
