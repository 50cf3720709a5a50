// The sum over p divided among blocks: their matrices are added to C in an order that depends on their number alone.
#include "gemm/gemm.cuh"

using namespace products;

constexpr int THREADS = HOST(gemm.product.THREADS);

// C = alpha (sum of partial[part], each of m x n) + beta C. `groups` threads share an element, a power of two: each adds up
// to EACH parts in turn, every `groups`-th one; then half of the sums are added to the other half until one is left.
template <typename T, int EACH>
__global__ __launch_bounds__(THREADS) void gemm_parts(
    const T* partial, Output<T> c, Size size, int parts, int groups, T alpha, T beta) {
    __shared__ T sums[THREADS];
    const int width = THREADS / groups, group = threadIdx.x / width;
    const long long elements = size.m * size.n, element = (long long)blockIdx.x * width + threadIdx.x % width;
    T sum = 0;
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
        const int part = e * groups + group;
        if (part < parts && element < elements) sum = multiply_add(T(1), partial[part * elements + element], sum);
    }
    sums[threadIdx.x] = sum;
    for (int apart = THREADS / 2; apart >= width; apart /= 2) {
        __syncthreads();
        if (threadIdx.x < apart) sums[threadIdx.x] = sum = multiply_add(T(1), sums[threadIdx.x + apart], sum);
    }
    if (threadIdx.x < width && element < elements)
        finish(c, element / size.n, element % size.n, size, sum, alpha, beta);
}
