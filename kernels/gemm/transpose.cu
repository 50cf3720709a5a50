// B = A^T for elements of 4 or 8 bytes; A of `rows` x `columns`, both row-major.
#include "gemm/gemm.cuh"

using namespace products;

// A thread an element: reads along rows, and writes down a column.
template <typename T, int TILE, int THREAD_ROWS>
__global__ __launch_bounds__(TILE* THREAD_ROWS) void transpose_naive(Matrix<T> a, Output<T> b, Size size) {
    const Corner corner = corner_of<TILE, TILE>(blockIdx.x, size);
    const long long j = corner.j + threadIdx.x % TILE;
#pragma unroll
    for (int r = 0; r < TILE; r += THREAD_ROWS) {
        const long long i = corner.i + threadIdx.x / TILE + r;
        if (i < size.m && j < size.n) b.at[j * b.row + i] = a.get(i, j);
    }
}

// Through shared memory: reads and writes both run along rows; one element of padding spreads a column over all banks.
template <typename T, int TILE, int THREAD_ROWS>
__global__ __launch_bounds__(TILE* THREAD_ROWS) void transpose_tiled(Matrix<T> a, Output<T> b, Size size) {
    static_assert(TILE % 32 == 0 && TILE % THREAD_ROWS == 0, "warps lie along rows");
    __shared__ T tile[TILE][TILE + 1];
    const Corner corner = corner_of<TILE, TILE>(blockIdx.x, size);
    const int x = threadIdx.x % TILE, y = threadIdx.x / TILE;
#pragma unroll
    for (int r = 0; r < TILE; r += THREAD_ROWS)
        if (corner.i + y + r < size.m && corner.j + x < size.n) tile[y + r][x] = a.get(corner.i + y + r, corner.j + x);
    __syncthreads();
#pragma unroll
    for (int r = 0; r < TILE; r += THREAD_ROWS)
        if (corner.j + y + r < size.n && corner.i + x < size.m)
            b.at[(corner.j + y + r) * b.row + corner.i + x] = tile[x][y + r];
}
