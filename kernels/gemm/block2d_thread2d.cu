// Rung 5: a thread computes a square of elements as a sum of outer products of registers: SIDE^2 operations for 2 SIDE reads.
#include "gemm/gemm.cuh"

using namespace products;

template <typename T, int TILE_M, int TILE_N, int TILE_K, int SIDE>
__global__ __launch_bounds__(TILE_M* TILE_N / SIDE / SIDE, 8 / sizeof(T)) void gemm_block2d_thread2d(
    Matrix<T> a, Matrix<T> b, Output<T> c, Size size, T alpha, T beta) {
    constexpr int THREADS = TILE_M * TILE_N / SIDE / SIDE;
    static_assert(TILE_M % SIDE == 0 && TILE_N % SIDE == 0 && THREADS % 32 == 0, "whole threads and warps");
    __shared__ T tile_a[TILE_M][TILE_K], tile_b[TILE_K][TILE_N];
    const Part part(size);
    const Corner corner = corner_of<TILE_M, TILE_N>(blockIdx.x, size);
    const int i = threadIdx.x / (TILE_N / SIDE) * SIDE, j = threadIdx.x % (TILE_N / SIDE) * SIDE;
    T sum[SIDE][SIDE] = {};
    for (long long p0 = part.first; p0 < part.end; p0 += TILE_K) {
        load_tile<TILE_M, TILE_K, THREADS>(tile_a, a, corner.i, p0, size.m, part.end);
        load_tile<TILE_K, TILE_N, THREADS>(tile_b, b, p0, corner.j, part.end, size.n);
        __syncthreads();
#pragma unroll
        for (int p = 0; p < TILE_K; ++p) {
            T x[SIDE], y[SIDE];
#pragma unroll
            for (int r = 0; r < SIDE; ++r) x[r] = tile_a[i + r][p], y[r] = tile_b[p][j + r];
#pragma unroll
            for (int r = 0; r < SIDE; ++r)
#pragma unroll
                for (int s = 0; s < SIDE; ++s) sum[r][s] = multiply_add(x[r], y[s], sum[r][s]);
        }
        __syncthreads();
    }
    c = of_part(c, size);
#pragma unroll
    for (int r = 0; r < SIDE; ++r)
#pragma unroll
        for (int s = 0; s < SIDE; ++s) finish(c, corner.i + i + r, corner.j + j + s, size, sum[r][s], alpha, beta);
}
