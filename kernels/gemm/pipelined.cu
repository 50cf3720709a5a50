// Rung 8: later tiles are copied while this one is multiplied, and the next line is read while this one is in use.
#include "gemm/warp_tile.cuh"
#include "synchronisation/async_copy.cuh"

using namespace products;

// One operand's way into shared memory: as load_lines, but asynchronous, a tile after the other.
template <typename T, int TILE, int TILE_K, int THREADS>
struct LineCopier {
    static constexpr int SIZE = Vector<T>::SIZE, WIDTH = TILE + SIZE;
    static constexpr int VECTORS = TILE * TILE_K / SIZE / THREADS, ELEMENTS = TILE * TILE_K / THREADS;
    // Wide copies run along a line; single elements are taken ACROSS lines at a time, whose writes meet in no bank.
    static constexpr int LINE = TILE / SIZE, ACROSS = 8;
    static_assert(TILE * TILE_K % (SIZE * THREADS) == 0 && TILE_K % ACROSS == 0, "the same for every thread");
    static_assert(THREADS % LINE == 0 || LINE % THREADS == 0, "whole lines at a time");
    static constexpr int BATCH = THREADS / ACROSS, PER_LINE = TILE / BATCH;  // rows at a time
    static_assert(TILE % BATCH == 0, "whole batches");

    Matrix<T> x;
    int left, rows;  // lines from this thread's first on; of the tile, rows from this thread's first
    bool wide;

    __device__ __forceinline__ LineCopier(const Matrix<T>& whole, long long i0, long long height, const Part& part)
        : x(whole) {
        wide = whole.row == 1 && height % SIZE == 0 && on_vectors(whole.at, whole.column);
        const int i = wide ? threadIdx.x % LINE * SIZE : threadIdx.x / ACROSS;
        const int p = wide ? threadIdx.x / LINE : threadIdx.x % ACROSS;
        x.at += (i0 + i) * x.row + (part.first + p) * x.column;
        rows = (int)max(-(long long)TILE, min((long long)TILE, height - i0 - i));
        left = part.depth() - p;
    }

    __device__ __forceinline__ void copy(T* lines) {
        if (wide) {
            constexpr int STEP = THREADS / LINE;
            T* const to = lines + threadIdx.x / LINE * WIDTH + threadIdx.x % LINE * SIZE;
#pragma unroll
            for (int e = 0; e < VECTORS; ++e)
                copy_async<16>(to + e * STEP * WIDTH, x.at + e * STEP * x.column, rows > 0 && e * STEP < left);
        } else {
            T* const to = lines + threadIdx.x % ACROSS * WIDTH + threadIdx.x / ACROSS;
#pragma unroll
            for (int e = 0; e < ELEMENTS; ++e) {
                const int i = e % PER_LINE * BATCH, p = e / PER_LINE * ACROSS;
                copy_async<sizeof(T)>(to + p * WIDTH + i, x.at + i * x.row + p * x.column, i < rows && p < left);
            }
        }
        x.at += TILE_K * x.column;
        left -= TILE_K;
    }
};

template <typename T, int TILE_M, int TILE_N, int TILE_K, int WARP_M, int WARP_N, int THREAD_M, int THREAD_N, int STAGES>
__global__ __launch_bounds__(TILE_M / WARP_M * (TILE_N / WARP_N) * 32) void gemm_pipelined(
    Matrix<T> a, Matrix<T> b, Output<T> c, Size size, T alpha, T beta) {
    using Warp = WarpTile<T, TILE_M, TILE_N, WARP_M, WARP_N, THREAD_M, THREAD_N>;
    using CopierA = LineCopier<T, TILE_M, TILE_K, Warp::THREADS>;
    using CopierB = LineCopier<T, TILE_N, TILE_K, Warp::THREADS>;
    constexpr int STAGE_A = TILE_K * CopierA::WIDTH, STAGE_B = TILE_K * CopierB::WIDTH;
    static_assert(STAGES >= 2 && TILE_K % 2 == 0, "one tile in use, another on its way; two sets of registers");
    extern __shared__ uint4 shared[];
    T* const lines_a = reinterpret_cast<T*>(shared);
    T* const lines_b = lines_a + STAGES * STAGE_A;
    const Part part(size);
    const Corner corner = corner_of<TILE_M, TILE_N>(blockIdx.x, size);
    const Warp warp;
    CopierA copier_a(a, corner.i, size.m, part);
    CopierB copier_b(b.transposed(), corner.j, size.n, part);
    const int tiles = (part.depth() + TILE_K - 1) / TILE_K;
    const auto copy = [&](int stage) {  // past the last tile it copies zeros, so that groups can be counted
        copier_a.copy(lines_a + stage * STAGE_A);
        copier_b.copy(lines_b + stage * STAGE_B);
        commit_copies();
    };
    for (int stage = 0; stage < STAGES - 1; ++stage) copy(stage);
    wait_for_copies<STAGES - 2>();
    __syncthreads();
    T sum[THREAD_M][THREAD_N] = {}, x[2][THREAD_M], y[2][THREAD_N];
    warp.read(x[0], y[0], lines_a, lines_b);
    int reading = 0, writing = STAGES - 1;
    for (int tile = 0; tile < tiles; ++tile) {
#pragma unroll
        for (int p = 0; p < TILE_K; ++p) {
            if (p == TILE_K - 1) {  // the next line is the next tile's first
                wait_for_copies<STAGES - 2>();
                __syncthreads();
                reading = reading + 1 == STAGES ? 0 : reading + 1;
            }
            const int next = (p + 1) % TILE_K;
            warp.read(x[next % 2], y[next % 2], lines_a + reading * STAGE_A + next * CopierA::WIDTH,
                      lines_b + reading * STAGE_B + next * CopierB::WIDTH);
            if (p == 0) {  // all threads have passed the barrier since they last read this stage
                copy(writing);
                writing = writing + 1 == STAGES ? 0 : writing + 1;
            }
            outer_product(sum, x[p % 2], y[p % 2]);
        }
    }
    wait_for_copies<0>();
    c = of_part(c, size);
    warp.finish(c, corner, size, sum, alpha, beta);
}
