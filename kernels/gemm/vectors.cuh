// Accesses of 16 bytes, and the thread tiles that are made of them.
#pragma once
#include "gemm/gemm.cuh"

namespace products {

constexpr int VECTOR_BYTES = HOST(gemm.product.VECTOR);

template <typename T>
struct alignas(VECTOR_BYTES) Vector {
    static constexpr int SIZE = VECTOR_BYTES / sizeof(T);
    T x[SIZE];
};

template <typename T>
__device__ __forceinline__ Vector<T>& vector_at(T* place) {
    return *reinterpret_cast<Vector<T>*>(place);
}
template <typename T>
__device__ __forceinline__ const Vector<T>& vector_at(const T* place) {
    return *reinterpret_cast<const Vector<T>*>(place);
}

// Whether every row, of `stride` elements, begins on 16 bytes.
template <typename T>
__device__ __forceinline__ bool on_vectors(const T* at, long long stride) {
    return (reinterpret_cast<unsigned long long>(at) | stride * sizeof(T)) % VECTOR_BYTES == 0;
}

// A thread's LENGTH rows (or columns) are vectors that stand LANES vectors apart, with those of other lanes in between:
// lanes side by side then read vectors side by side, and no two of them want one bank.
template <typename T, int LENGTH, int LANES>
__device__ __forceinline__ int place_of(int lane, int r) {
    constexpr int SIZE = Vector<T>::SIZE;
    return (r / SIZE * LANES + lane) * SIZE + r % SIZE;
}

template <typename T, int LENGTH, int LANES>
__device__ __forceinline__ void read_vectors(T (&x)[LENGTH], const T* line, int lane) {
    constexpr int SIZE = Vector<T>::SIZE;
    static_assert(LENGTH % SIZE == 0, "whole vectors");
#pragma unroll
    for (int r = 0; r < LENGTH; r += SIZE) {
        const Vector<T> v = vector_at(line + place_of<T, LENGTH, LANES>(lane, r));
#pragma unroll
        for (int s = 0; s < SIZE; ++s) x[r + s] = v.x[s];
    }
}

template <typename T, int M, int N>
__device__ __forceinline__ void outer_product(T (&sum)[M][N], const T (&x)[M], const T (&y)[N]) {
#pragma unroll
    for (int r = 0; r < M; ++r)
#pragma unroll
        for (int s = 0; s < N; ++s) sum[r][s] = multiply_add(x[r], y[s], sum[r][s]);
}

// A thread's tile into C; (i, j) is the first element of the tile that its lanes share.
template <typename T, int M, int N, int LANES_M, int LANES_N>
__device__ __forceinline__ void finish_tile(const Output<T>& c, long long i, long long j, const Size& size, int lane_m,
                                            int lane_n, const T (&sum)[M][N], T alpha, T beta) {
    constexpr int VECTOR = Vector<T>::SIZE;
    const bool wide = on_vectors(c.at, c.row);
#pragma unroll
    for (int r = 0; r < M; ++r)
#pragma unroll
        for (int s = 0; s < N; s += VECTOR) {
            const long long row = i + place_of<T, M, LANES_M>(lane_m, r), column = j + place_of<T, N, LANES_N>(lane_n, s);
            if (wide && row < size.m && column + VECTOR <= size.n) {
                Vector<T> v;
                T* const place = c.at + row * c.row + column;
                if (beta != T(0)) v = vector_at(place);
#pragma unroll
                for (int e = 0; e < VECTOR; ++e) v.x[e] = blend(sum[r][s + e], &v.x[e], alpha, beta);
                vector_at(place) = v;
            } else {
#pragma unroll
                for (int e = 0; e < VECTOR; ++e) finish(c, row, column + e, size, sum[r][s + e], alpha, beta);
            }
        }
}

// A tile of TILE_K lines, one for each p, of TILE rows of A (or columns of B) into shared memory, zero beyond the edge.
// `x` has these rows as its first index and p as its second, so B is given transposed. Where memory runs along p, a vector
// is taken apart and written down a column; one vector of padding keeps such writes from meeting in a bank.
template <int TILE, int TILE_K, int THREADS, typename T>
__device__ __forceinline__ void load_lines(T (&lines)[TILE_K][TILE + Vector<T>::SIZE], const Matrix<T>& x, long long i0,
                                           long long p0, long long rows, long long depth) {
    constexpr int SIZE = Vector<T>::SIZE, VECTORS = TILE * TILE_K / SIZE;
    static_assert(VECTORS % THREADS == 0 && TILE_K % SIZE == 0, "every thread takes the same number of vectors");
    const bool along = x.column == 1, wide = on_vectors(x.at, along ? x.row : x.column);
    const T* const from = x.at + i0 * x.row + p0 * x.column;
    const int height = (int)min((long long)TILE, rows - i0), left = (int)min((long long)TILE_K, depth - p0);
#pragma unroll
    for (int e = 0; e < VECTORS / THREADS; ++e) {
        const int place = e * THREADS + threadIdx.x;
        const int i = along ? place / (TILE_K / SIZE) : place % (TILE / SIZE) * SIZE;
        const int p = along ? place % (TILE_K / SIZE) * SIZE : place / (TILE / SIZE);
        const bool whole = i + (along ? 0 : SIZE - 1) < height && p + (along ? SIZE - 1 : 0) < left;
        Vector<T> v;
        if (wide && whole) {
            v = vector_at(from + i * x.row + p * x.column);
        } else {
#pragma unroll
            for (int s = 0; s < SIZE; ++s) {
                const int row = i + (along ? 0 : s), q = p + (along ? s : 0);
                v.x[s] = row < height && q < left ? from[row * x.row + q * x.column] : T(0);
            }
        }
        if (along) {
#pragma unroll
            for (int s = 0; s < SIZE; ++s) lines[p + s][i] = v.x[s];
        } else {
            vector_at(&lines[p][i]) = v;
        }
    }
}

}  // namespace products
