// Factors of the bits that tell parts of a vector from each other, and the flip of all spins: spinsim/transfer_matrix/vectors.py.
#include "bits/types.cuh"

constexpr int THREADS = HOST(transfer_matrix.vectors.MIX_THREADS);

// The buffer has 2^TOP parts, each with a chunk and the one that mirrors it. The flip takes an amplitude of a part to the
// mirrored place of the part whose number is the complement.
template <int TOP>
__global__ __launch_bounds__(THREADS) void across(double* buffer, u64 chunk, double ratio, double flip) {
    constexpr int PARTS = 1 << TOP;
    for (u64 i = (u64)blockIdx.x * THREADS + threadIdx.x; i < chunk; i += (u64)gridDim.x * THREADS) {
        double* const first = buffer + i;
        double* const mirror = buffer + 2 * chunk - 1 - i;
        double v[PARTS], w[PARTS];
#pragma unroll
        for (int j = 0; j < PARTS; ++j) v[j] = first[j * 2 * chunk], w[j] = mirror[j * 2 * chunk];
#pragma unroll
        for (int b = 0; b < TOP; ++b) {
#pragma unroll
            for (int j = 0; j < PARTS; ++j) {
                const int h = j ^ 1 << b;
                if (h < j) continue;
                const double x = v[j], y = w[j];
                v[j] = fma(ratio, v[h], x), v[h] = fma(ratio, x, v[h]);
                w[j] = fma(ratio, w[h], y), w[h] = fma(ratio, y, w[h]);
            }
        }
#pragma unroll
        for (int j = 0; j < PARTS; ++j) {
            first[j * 2 * chunk] = fma(flip, w[PARTS - 1 - j], v[j]);
            mirror[j * 2 * chunk] = fma(flip, v[PARTS - 1 - j], w[j]);
        }
    }
}
