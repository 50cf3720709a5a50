// What every rung of the matrix product shares: C = alpha A B + beta C with A of m x k, B of k x n, C of m x n.
#pragma once

namespace products {

struct Size {
    long long m, n, k;
};
CHECK_STRUCT(Size, gemm.operands.SIZE);

// Element (i, j) stands at at[i * row + j * column], and one of the strides is 1: transposing exchanges them.
template <typename T>
struct Matrix {
    const T* at;
    long long row, column;

    __device__ __forceinline__ T get(long long i, long long j) const { return at[i * row + j * column]; }
    __device__ __forceinline__ Matrix transposed() const { return {at, column, row}; }
};
CHECK_STRUCT(Matrix<double>, gemm.operands.MATRIX);

// Row-major.
template <typename T>
struct Output {
    T* at;
    long long row;
};
CHECK_STRUCT(Output<double>, gemm.operands.OUTPUT);

// One rounding; written as such because kernels are compiled without contraction.
__device__ __forceinline__ float multiply_add(float x, float y, float z) { return __fmaf_rn(x, y, z); }
__device__ __forceinline__ double multiply_add(double x, double y, double z) { return __fma_rn(x, y, z); }
__device__ __forceinline__ int multiply_add(int x, int y, int z) {  // modulo 2^32, as NumPy does
    return (int)((unsigned)x * (unsigned)y + (unsigned)z);
}

// C is not read where beta is 0: it may hold anything then.
template <typename T>
__device__ __forceinline__ T blend(T sum, const T* old, T alpha, T beta) {
    const T scaled = multiply_add(alpha, sum, T(0));
    return beta == T(0) ? scaled : multiply_add(beta, *old, scaled);
}

template <typename T>
__device__ __forceinline__ void finish(const Output<T>& c, long long i, long long j, const Size& size, T sum, T alpha,
                                       T beta) {
    if (i >= size.m || j >= size.n) return;
    T* const place = c.at + i * c.row + j;
    *place = blend(sum, place, alpha, beta);
}

// Where the sum over p is divided among blocks, blockIdx.y says which part of it a block adds up. Parts begin at multiples of
// PART_STEP, so that they lie on vectors where the whole does.
constexpr int PART_STEP = HOST(gemm.product.STEP);

struct Part {
    long long first, end;

    __device__ __forceinline__ Part(const Size& size) {
        const long long unit = PART_STEP * gridDim.y, length = (size.k + unit - 1) / unit * PART_STEP;
        first = blockIdx.y * length;
        end = min(first + length, size.k);
    }
    __device__ __forceinline__ int depth() const { return (int)(end - first); }
};

// Where the result of a part goes: parts are matrices without gaps, one behind the other. To be asked for when all is added
// up, since registers are scarce before.
template <typename T>
__device__ __forceinline__ Output<T> of_part(const Output<T>& c, const Size& size) {
    return {c.at + blockIdx.y * size.m * size.n, c.row};
}

struct Corner {
    long long i, j;
};

// First element of a block's tile. Blocks that run together take eight rows of tiles, a column after the other, and so
// find in the second-level cache what their neighbours have read.
template <int TILE_M, int TILE_N>
__device__ __forceinline__ Corner corner_of(long long block, const Size& size) {
    const long long rows = (size.m + TILE_M - 1) / TILE_M, columns = (size.n + TILE_N - 1) / TILE_N;
    const long long first = block / (8 * columns) * 8, height = min(8ll, rows - first), inside = block % (8 * columns);
    return {(first + inside % height) * TILE_M, inside / height * TILE_N};
}

// A tile of `x`, whose first element is (i0, j0), into shared memory by all threads, zero beyond the edge. Threads side by
// side take what lies side by side in memory.
template <int ROWS, int COLUMNS, int THREADS, typename T>
__device__ __forceinline__ void load_tile(T (&tile)[ROWS][COLUMNS], const Matrix<T>& x, long long i0, long long j0,
                                          long long rows, long long columns) {
    static_assert(ROWS * COLUMNS % THREADS == 0, "every thread takes the same number of elements");
    const bool along_row = x.column == 1;
    const T* const from = x.at + i0 * x.row + j0 * x.column;
    const int height = (int)min((long long)ROWS, rows - i0), width = (int)min((long long)COLUMNS, columns - j0);
#pragma unroll
    for (int e = 0; e < ROWS * COLUMNS / THREADS; ++e) {
        const int place = e * THREADS + threadIdx.x;
        const int i = along_row ? place / COLUMNS : place % ROWS, j = along_row ? place % COLUMNS : place / ROWS;
        tile[i][j] = i < height && j < width ? from[i * x.row + j * x.column] : T(0);
    }
}

}  // namespace products
