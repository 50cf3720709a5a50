// Products of tall matrices with at most 64 columns, as Lanczos needs them: V^T W, summed in an order that depends on the
// shapes alone, and V Y. Elements go from memory straight to the lanes that need them (mma.cuh).
#include "gemm/mma.cuh"
#include "gemm/vectors.cuh"

using namespace products;

constexpr int PANEL = HOST(gemm.special.PANEL), COLUMNS = HOST(gemm.special.COLUMNS);
constexpr int SUM_THREADS = HOST(gemm.special.SUM_THREADS), TIMES_THREADS = HOST(gemm.special.TIMES_THREADS);
static_assert(PANEL == 16, "the tensor cores take sixteen columns of V as two tiles");

// Two neighbouring elements of a row, zeros past its end.
__device__ __forceinline__ double2 pair_of(const double* row, int column, int columns, bool wide) {
    if (wide && column + 2 <= columns) return *reinterpret_cast<const double2*>(row + column);
    return {column < columns ? row[column] : 0, column + 1 < columns ? row[column + 1] : 0};
}

// Partial sums of V^T W: partial[strip][i][j], of (16 PANELS_V) x (16 PANELS_W), over rows strip * length onwards. One warp
// takes 16 columns of V and all of W; WARPS of them share a panel of V, every fourth row each in turn.
template <int PANELS_V, int PANELS_W, int WARPS, int ROWS>
__global__ __launch_bounds__(PANELS_V* WARPS * 32, 512 / (PANELS_V * WARPS * 32)) void tall_partial(
    Output<const double> v, Output<const double> w, double* partial, long long rows, long long length, int
    columns_v, int columns_w) {
    static_assert(ROWS % 4 == 0, "the tensor cores take four rows at a time");
    constexpr int SIZE = 256 * PANELS_W;  // of a panel's sums
    __shared__ double sums[WARPS > 1 ? WARPS - 1 : 1][PANELS_V][SIZE];
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, panel = threadIdx.x / 32 % PANELS_V;
    const int group = threadIdx.x / 32 / PANELS_V, column = 16 * panel + 2 * g;
    const long long first = blockIdx.x * length, end = min(first + length, rows);
    const bool wide_v = on_vectors(v.at, v.row), wide_w = on_vectors(w.at, w.row);
    double sum[PANELS_W][2][4] = {};
    for (long long r = first + group * ROWS; r < end; r += WARPS * ROWS) {
        double2 x[ROWS / 4], z[ROWS / 4][PANELS_W];
#pragma unroll
        for (int s = 0; s < ROWS / 4; ++s) {
            const long long row = r + 4 * s + t;
            x[s] = row < end ? pair_of(v.at + row * v.row, column, columns_v, wide_v) : double2{};
#pragma unroll
            for (int q = 0; q < PANELS_W; ++q)
                z[s][q] = row < end ? pair_of(w.at + row * w.row, 16 * q + 2 * g, columns_w, wide_w) : double2{};
        }
#pragma unroll
        for (int s = 0; s < ROWS / 4; ++s)
#pragma unroll
            for (int q = 0; q < PANELS_W; ++q) {
                mma<1, true>(sum[q][0], {x[s].x, x[s].y}, {z[s][q].x});
                mma<1, true>(sum[q][1], {x[s].x, x[s].y}, {z[s][q].y});
            }
    }
    double* const out = partial + ((long long)blockIdx.x * PANELS_V + panel) * SIZE;
    // Row 2 g + e / 2 of the panel; columns 4 t + 2 (e % 2) + h of sixteen.
    const auto each = [&](const auto& use) {
#pragma unroll
        for (int q = 0; q < PANELS_W; ++q)
#pragma unroll
            for (int h = 0; h < 2; ++h)
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    use((2 * g + e / 2) * 16 * PANELS_W + 16 * q + 4 * t + e % 2 * 2 + h, sum[q][h][e]);
    };
    if (group > 0) each([&](int place, double value) { sums[group - 1][panel][place] = value; });
    __syncthreads();
    if (group == 0)
        each([&](int place, double value) {
            for (int other = 1; other < WARPS; ++other) value = __dadd_rn(value, sums[other - 1][panel][place]);
            out[place] = value;
        });
}

// V^T W = alpha (sum of the strips' partial sums) + beta C: a warp an element, lane after lane in a fixed order.
__global__ __launch_bounds__(SUM_THREADS) void tall_sum(
    const double* partial, Output<double> c, Size size, int strips, int width, int strip_size, double alpha, double
    beta) {
    const int element = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    const long long i = element / size.n, j = element % size.n;
    if (i >= size.m) return;
    double sum = 0;
    for (int strip = lane; strip < strips; strip += 32)
        sum = __dadd_rn(sum, partial[(long long)strip * strip_size + i * width + j]);
    for (int apart = 16; apart; apart /= 2) sum = __dadd_rn(sum, __shfl_down_sync(~0u, sum, apart));
    if (lane == 0) finish(c, i, j, size, sum, alpha, beta);
}

// C = alpha V Y + beta C, V of rows x p with p <= 16 PANELS, Y of p x q with q <= 64: a warp takes 16 rows at a time.
template <int PANELS>
__global__ __launch_bounds__(TIMES_THREADS, 3) void tall_times_small(
    Output<const double> v, Matrix<double> y, Output<double> c, Size size, double alpha, double beta) {
    constexpr long long WARPS = TIMES_THREADS / 32;
    constexpr int PITCH = COLUMNS + 2, STEPS = 2 * PANELS;  // of eight columns of V
    __shared__ double small[PANEL * PANELS][PITCH];   // lanes t read rows 2 t, which the pitch puts into different banks
    for (int e = threadIdx.x; e < PANEL * PANELS * COLUMNS; e += TIMES_THREADS)
        small[e / COLUMNS][e % COLUMNS] =
            e / COLUMNS < size.k && e % COLUMNS < size.n ? y.get(e / COLUMNS, e % COLUMNS) : 0;
    __syncthreads();
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const bool wide_v = on_vectors(v.at, v.row), wide_c = on_vectors(c.at, c.row);
    const long long warp = blockIdx.x * WARPS + threadIdx.x / 32, warps = gridDim.x * WARPS;
    for (long long r = 16 * warp; r < size.m; r += 16 * warps) {
        double2 x[STEPS][2];
#pragma unroll
        for (int p = 0; p < STEPS; ++p)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const long long row = r + g + 8 * h;
                x[p][h] = row < size.m ? pair_of(v.at + row * v.row, 8 * p + 2 * t, (int)size.k, wide_v) : double2{};
            }
        for (int j = 0; j < size.n; j += 16) {
            double sum[2][4] = {};
#pragma unroll
            for (int p = 0; p < STEPS; ++p)
#pragma unroll
                for (int s = 0; s < 2; ++s) {
                    const double* const from = &small[8 * p + 2 * t][j + 8 * s + g];
                    mma<2, true>(sum[s], {x[p][0].x, x[p][1].x, x[p][0].y, x[p][1].y}, {from[0], from[PITCH]});
                }
#pragma unroll
            for (int s = 0; s < 2; ++s)
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    const long long row = r + g + 8 * h, column = j + 8 * s + 2 * t;
                    const double first = sum[s][2 * h], second = sum[s][2 * h + 1];
                    if (wide_c && row < size.m && column + 2 <= size.n) {
                        double2* const place = reinterpret_cast<double2*>(c.at + row * c.row + column);
                        double2 old = {};
                        if (beta != 0) old = *place;
                        *place = {blend(first, &old.x, alpha, beta), blend(second, &old.y, alpha, beta)};
                    } else {
                        finish(c, row, column, size, first, alpha, beta);
                        finish(c, row, column + 1, size, second, alpha, beta);
                    }
                }
        }
    }
}
