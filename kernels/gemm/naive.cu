// Rung 1: a thread an element, neighbouring threads in neighbouring rows, so that a warp reads 32 rows at once.
#include "gemm/gemm.cuh"

using namespace products;

template <typename T, int TILE>
__global__ __launch_bounds__(TILE* TILE, 2) void gemm_naive(
    Matrix<T> a, Matrix<T> b, Output<T> c, Size size, T alpha, T beta) {
    const Part part(size);
    const Corner corner = corner_of<TILE, TILE>(blockIdx.x, size);
    const long long i = corner.i + threadIdx.x % TILE, j = corner.j + threadIdx.x / TILE;
    if (i >= size.m || j >= size.n) return;
    T sum = 0;
    for (long long p = part.first; p < part.end; ++p) sum = multiply_add(a.get(i, p), b.get(p, j), sum);
    c = of_part(c, size);
    finish(c, i, j, size, sum, alpha, beta);
}
