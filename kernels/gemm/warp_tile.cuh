// How a block's tile is shared out: to warps, and within a warp to its lanes.
#pragma once
#include "gemm/vectors.cuh"

namespace products {

template <typename T, int TILE_M, int TILE_N, int WARP_M, int WARP_N, int THREAD_M, int THREAD_N>
struct WarpTile {
    static constexpr int LANES_M = WARP_M / THREAD_M, LANES_N = WARP_N / THREAD_N;
    static constexpr int THREADS = TILE_M / WARP_M * (TILE_N / WARP_N) * 32;
    static_assert(TILE_M % WARP_M == 0 && TILE_N % WARP_N == 0, "whole warps");
    static_assert(WARP_M % THREAD_M == 0 && WARP_N % THREAD_N == 0 && LANES_M * LANES_N == 32, "a warp has 32 lanes");

    int i, j, lane_m, lane_n;  // the warp's first element in the block's tile, the lane's place in the warp

    __device__ __forceinline__ WarpTile() {
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        i = warp / (TILE_N / WARP_N) * WARP_M;
        j = warp % (TILE_N / WARP_N) * WARP_N;
        lane_m = lane / LANES_N;
        lane_n = lane % LANES_N;
    }

    // Row p of the lines of A and of B.
    __device__ __forceinline__ void read(T (&x)[THREAD_M], T (&y)[THREAD_N], const T* line_a, const T* line_b) const {
        read_vectors<T, THREAD_M, LANES_M>(x, line_a + i, lane_m);
        read_vectors<T, THREAD_N, LANES_N>(y, line_b + j, lane_n);
    }

    __device__ __forceinline__ void finish(const Output<T>& c, const Corner& corner, const Size& size,
                                           const T (&sum)[THREAD_M][THREAD_N], T alpha, T beta) const {
        finish_tile<T, THREAD_M, THREAD_N, LANES_M, LANES_N>(c, corner.i + i, corner.j + j, size, lane_m, lane_n, sum,
                                                             alpha, beta);
    }
};

}  // namespace products
