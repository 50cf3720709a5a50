// Rung 3: a block keeps a square tile of A and of B in shared memory, so that an element is fetched once for TILE uses.
#include "gemm/gemm.cuh"

using namespace products;

template <typename T, int TILE>
__global__ __launch_bounds__(TILE* TILE, 2) void gemm_block2d(
    Matrix<T> a, Matrix<T> b, Output<T> c, Size size, T alpha, T beta) {
    static_assert(TILE == 16 || TILE == 32, "a block has TILE x TILE threads");
    __shared__ T tile_a[TILE][TILE], tile_b[TILE][TILE];
    const Part part(size);
    const Corner corner = corner_of<TILE, TILE>(blockIdx.x, size);
    const int i = threadIdx.x / TILE, j = threadIdx.x % TILE;
    T sum = 0;
    for (long long p0 = part.first; p0 < part.end; p0 += TILE) {
        load_tile<TILE, TILE, TILE * TILE>(tile_a, a, corner.i, p0, size.m, part.end);
        load_tile<TILE, TILE, TILE * TILE>(tile_b, b, p0, corner.j, part.end, size.n);
        __syncthreads();
#pragma unroll
        for (int p = 0; p < TILE; ++p) sum = multiply_add(tile_a[i][p], tile_b[p][j], sum);
        __syncthreads();
    }
    c = of_part(c, size);
    finish(c, corner.i + i, corner.j + j, size, sum, alpha, beta);
}
