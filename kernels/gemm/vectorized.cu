// Rung 6: 16 bytes an access, the tile of A transposed in shared memory, thread tiles split so that no bank is wanted twice.
#include "gemm/vectors.cuh"

using namespace products;

template <typename T, int TILE_M, int TILE_N, int TILE_K, int SIDE>
__global__ __launch_bounds__(TILE_M* TILE_N / SIDE / SIDE, 2) void gemm_vectorized(
    Matrix<T> a, Matrix<T> b, Output<T> c, Size size, T alpha, T beta) {
    constexpr int THREADS = TILE_M * TILE_N / SIDE / SIDE, LANES_M = TILE_M / SIDE, LANES_N = TILE_N / SIDE;
    static_assert(TILE_M % SIDE == 0 && TILE_N % SIDE == 0 && THREADS % 32 == 0, "whole threads and warps");
    __shared__ T lines_a[TILE_K][TILE_M + Vector<T>::SIZE], lines_b[TILE_K][TILE_N + Vector<T>::SIZE];
    const Part part(size);
    const Corner corner = corner_of<TILE_M, TILE_N>(blockIdx.x, size);
    const int lane_m = threadIdx.x / LANES_N, lane_n = threadIdx.x % LANES_N;
    T sum[SIDE][SIDE] = {};
    for (long long p0 = part.first; p0 < part.end; p0 += TILE_K) {
        load_lines<TILE_M, TILE_K, THREADS>(lines_a, a, corner.i, p0, size.m, part.end);
        load_lines<TILE_N, TILE_K, THREADS>(lines_b, b.transposed(), corner.j, p0, size.n, part.end);
        __syncthreads();
#pragma unroll
        for (int p = 0; p < TILE_K; ++p) {
            T x[SIDE], y[SIDE];
            read_vectors<T, SIDE, LANES_M>(x, lines_a[p], lane_m);
            read_vectors<T, SIDE, LANES_N>(y, lines_b[p], lane_n);
            outer_product(sum, x, y);
        }
        __syncthreads();
    }
    c = of_part(c, size);
    finish_tile<T, SIDE, SIDE, LANES_M, LANES_N>(c, corner.i, corner.j, size, lane_m, lane_n, sum, alpha, beta);
}
