// Rung 4: a thread computes RESULTS elements below each other and uses each element of B, once read, for all of them.
#include "gemm/gemm.cuh"

using namespace products;

template <typename T, int TILE_M, int TILE_N, int TILE_K, int RESULTS>
__global__ __launch_bounds__(TILE_M* TILE_N / RESULTS, 2) void gemm_block2d_thread1d(
    Matrix<T> a, Matrix<T> b, Output<T> c, Size size, T alpha, T beta) {
    constexpr int THREADS = TILE_M * TILE_N / RESULTS;
    static_assert(TILE_M % RESULTS == 0 && TILE_N % 32 == 0 && THREADS <= 1024, "warps lie along rows");
    __shared__ T tile_a[TILE_M][TILE_K], tile_b[TILE_K][TILE_N];
    const Part part(size);
    const Corner corner = corner_of<TILE_M, TILE_N>(blockIdx.x, size);
    const int i = threadIdx.x / TILE_N * RESULTS, j = threadIdx.x % TILE_N;
    T sum[RESULTS] = {};
    for (long long p0 = part.first; p0 < part.end; p0 += TILE_K) {
        load_tile<TILE_M, TILE_K, THREADS>(tile_a, a, corner.i, p0, size.m, part.end);
        load_tile<TILE_K, TILE_N, THREADS>(tile_b, b, p0, corner.j, part.end, size.n);
        __syncthreads();
#pragma unroll
        for (int p = 0; p < TILE_K; ++p) {
            const T y = tile_b[p][j];
#pragma unroll
            for (int r = 0; r < RESULTS; ++r) sum[r] = multiply_add(tile_a[i + r][p], y, sum[r]);
        }
        __syncthreads();
    }
    c = of_part(c, size);
#pragma unroll
    for (int r = 0; r < RESULTS; ++r) finish(c, corner.i + i + r, corner.j + j, size, sum[r], alpha, beta);
}
