// Rung 7: a level between block and thread: a warp's lanes share a compact tile and thus read fewer distinct addresses.
#include "gemm/warp_tile.cuh"

using namespace products;

template <typename T, int TILE_M, int TILE_N, int TILE_K, int WARP_M, int WARP_N, int THREAD_M, int THREAD_N>
__global__ __launch_bounds__(TILE_M / WARP_M * (TILE_N / WARP_N) * 32, 2) void gemm_warptile(
    Matrix<T> a, Matrix<T> b, Output<T> c, Size size, T alpha, T beta) {
    using Warp = WarpTile<T, TILE_M, TILE_N, WARP_M, WARP_N, THREAD_M, THREAD_N>;
    __shared__ T lines_a[TILE_K][TILE_M + Vector<T>::SIZE], lines_b[TILE_K][TILE_N + Vector<T>::SIZE];
    const Part part(size);
    const Corner corner = corner_of<TILE_M, TILE_N>(blockIdx.x, size);
    const Warp warp;
    T sum[THREAD_M][THREAD_N] = {};
    for (long long p0 = part.first; p0 < part.end; p0 += TILE_K) {
        load_lines<TILE_M, TILE_K, Warp::THREADS>(lines_a, a, corner.i, p0, size.m, part.end);
        load_lines<TILE_N, TILE_K, Warp::THREADS>(lines_b, b.transposed(), corner.j, p0, size.n, part.end);
        __syncthreads();
#pragma unroll
        for (int p = 0; p < TILE_K; ++p) {
            T x[THREAD_M], y[THREAD_N];
            warp.read(x, y, lines_a[p], lines_b[p]);
            outer_product(sum, x, y);
        }
        __syncthreads();
    }
    c = of_part(c, size);
    warp.finish(c, corner, size, sum, alpha, beta);
}
