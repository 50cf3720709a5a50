// A small square factor times a very wide matrix, its mirror, and both at once on 64 x 64 tiles. The factor stays in
// registers; panels of the wide matrix stream through shared memory while earlier ones are multiplied.
#include "gemm/mma.cuh"
#include "gemm/vectors.cuh"
#include "synchronisation/async_copy.cuh"

using namespace products;

constexpr int LEFT_PADDING = HOST(gemm.special.LEFT_PADDING), RIGHT_PADDING = HOST(gemm.special.RIGHT_PADDING);

// Lane 4 g + t takes its steps of eight in the order p = 2 t, 2 t + 1 (mma.cuh: columns t and t + 4 of A), so that what it
// has of a product's result is what it needs as the next product's operand.

// Rows 16 strip + (g, g + 8) of a SIDE x SIDE factor, all of its columns.
template <int SIDE>
struct Strip {
    double at[SIDE / 8][4];

    __device__ __forceinline__ Strip(const Matrix<double>& factor, int strip) {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
        for (int p = 0; p < SIDE / 8; ++p)
#pragma unroll
            for (int e = 0; e < 4; ++e) at[p][e] = factor.get(16 * strip + g + e % 2 * 8, 8 * p + 2 * t + e / 2);
    }
};

// sum[s] += A B[s] over eight steps, by instructions of 4 STEPS steps.
template <int STEPS, int N>
__device__ __forceinline__ void multiply_eight(double (&sum)[N][4], const double (&a)[4], const double (&b)[N][2]) {
    if constexpr (STEPS == 1) {
#pragma unroll
        for (int h = 0; h < 2; ++h)
#pragma unroll
            for (int s = 0; s < N; ++s) mma<1, true>(sum[s], {a[2 * h], a[2 * h + 1]}, {b[s][h]});
    } else {
#pragma unroll
        for (int s = 0; s < N; ++s) mma<2, true>(sum[s], a, b[s]);
    }
}

// LINES x LENGTH elements with a distance of PITCH in shared memory, from `height` x `width` ones `stride` apart.
template <int LINES, int LENGTH, int PITCH, int THREADS>
__device__ __forceinline__ void copy_panel(double* to, const double* from, long long stride, int height, int width,
                                           bool wide, int thread) {
    constexpr int PAIRS = LENGTH / 2, STEP = THREADS / PAIRS;
    static_assert(THREADS % PAIRS == 0 && LINES % STEP == 0 && PITCH % 2 == 0, "whole lines at a time");
    const int line = thread / PAIRS, place = thread % PAIRS * 2;
#pragma unroll
    for (int e = 0; e < LINES; e += STEP) {
        double* const there = to + (line + e) * PITCH + place;
        const double* const here = from + (line + e) * stride + place;
        if (wide) {
            copy_async<16>(there, here, line + e < height && place < width);
        } else {
            copy_async<8>(there, here, line + e < height && place < width);
            copy_async<8>(there + 1, here + 1, line + e < height && place + 1 < width);
        }
    }
}

__device__ __forceinline__ void store_pair(double* to, double first, double second, int width, bool wide) {
    if (wide && width >= 2) {
        *reinterpret_cast<double2*>(to) = {first, second};
    } else {
        if (width > 0) to[0] = first;
        if (width > 1) to[1] = second;
    }
}

// Goes through the panels blockIdx.x, blockIdx.x + gridDim.x, ..., of which STAGES - 1 are on their way at any time.
template <int STAGES, int STAGE_SIZE, typename Copy, typename Multiply>
__device__ __forceinline__ void stream(double* stages, long long panels, const Copy& copy, const Multiply& multiply) {
    static_assert(STAGES >= 2, "one panel in use, another on its way");
    long long coming = blockIdx.x;
    const auto begin = [&](int stage) {
        if (coming < panels) copy(coming, stages + stage * STAGE_SIZE);
        commit_copies();
        coming += gridDim.x;
    };
#pragma unroll
    for (int stage = 0; stage < STAGES - 1; ++stage) begin(stage);
    int reading = 0, writing = STAGES - 1;
    for (long long panel = blockIdx.x; panel < panels; panel += gridDim.x) {
        wait_for_copies<STAGES - 2>();
        __syncthreads();  // the panel is there, and the one before it has been used
        begin(writing);
        multiply(panel, stages + reading * STAGE_SIZE);
        reading = reading + 1 == STAGES ? 0 : reading + 1;
        writing = writing + 1 == STAGES ? 0 : writing + 1;
    }
    wait_for_copies<0>();
}

// y[h] = factor x[h] for `batch` matrices x[h] of SIDE x width; a panel has WIDTH columns, GROUPS of warps share them.
template <int SIDE, int WIDTH, int GROUPS, int STAGES, int STEPS>
__global__ __launch_bounds__(SIDE / 16 * GROUPS * 32, 256 / (SIDE / 16 * GROUPS * 32)) void left_factor(
    Matrix<double> factor, const double* x, double* y, long long batch, long long width) {
    constexpr int THREADS = SIDE / 16 * GROUPS * 32, PITCH = WIDTH + LEFT_PADDING, OWN = WIDTH / GROUPS;
    static_assert(SIDE % 16 == 0 && WIDTH % 8 == 0 && OWN % 8 == 0, "whole tiles of the tensor cores");
    extern __shared__ uint4 shared[];
    const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const int strip = warp / GROUPS, first = warp % GROUPS * OWN;
    const Strip<SIDE> rows(factor, strip);
    const long long across = (width + WIDTH - 1) / WIDTH;
    const bool wide = on_vectors(x, width) && on_vectors(y, width);
    const auto copy = [&](long long panel, double* stage) {
        const long long j = panel % across * WIDTH;
        copy_panel<SIDE, WIDTH, PITCH, THREADS>(stage, x + panel / across * SIDE * width + j, width, SIDE,
                                                (int)min((long long)WIDTH, width - j), wide, threadIdx.x);
    };
    const auto multiply = [&](long long panel, const double* stage) {
        double sum[OWN / 8][4] = {};
#pragma unroll
        for (int p = 0; p < SIDE / 8; ++p) {
            double b[OWN / 8][2];
#pragma unroll
            for (int e = 0; e < OWN / 4; ++e) b[e / 2][e % 2] = stage[(8 * p + 2 * t + e % 2) * PITCH + first + e / 2 * 8 + g];
            multiply_eight<STEPS>(sum, rows.at[p], b);
        }
        const long long j = panel % across * WIDTH + first + 2 * t;
        double* const to = y + panel / across * SIDE * width + (16 * strip + g) * width + j;
#pragma unroll
        for (int s = 0; s < OWN / 8; ++s) {
            const int left = (int)min(2ll, width - j - 8 * s);
            store_pair(to + 8 * s, sum[s][0], sum[s][1], left, wide);
            store_pair(to + 8 * s + 8 * width, sum[s][2], sum[s][3], left, wide);
        }
    };
    stream<STAGES, SIDE * PITCH>(reinterpret_cast<double*>(shared), batch * across, copy, multiply);
}

// y = x factor for x of height x SIDE, computed as y^T = factor^T x^T; a panel has HEIGHT rows, GROUPS of warps share them.
template <int SIDE, int HEIGHT, int GROUPS, int STAGES, int STEPS>
__global__ __launch_bounds__(SIDE / 16 * GROUPS * 32, 256 / (SIDE / 16 * GROUPS * 32)) void right_factor(
    Matrix<double> factor, const double* x, double* y, long long height) {
    constexpr int THREADS = SIDE / 16 * GROUPS * 32, PITCH = SIDE + RIGHT_PADDING, OWN = HEIGHT / GROUPS;
    static_assert(SIDE % 16 == 0 && HEIGHT % 8 == 0 && OWN % 8 == 0, "whole tiles of the tensor cores");
    extern __shared__ uint4 shared[];
    const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const int strip = warp / GROUPS, first = warp % GROUPS * OWN;
    const Strip<SIDE> rows(factor.transposed(), strip);
    const bool wide = on_vectors(x, SIDE);
    const auto copy = [&](long long panel, double* stage) {
        copy_panel<HEIGHT, SIDE, PITCH, THREADS>(stage, x + panel * HEIGHT * SIDE, SIDE,
                                                 (int)min((long long)HEIGHT, height - panel * HEIGHT), SIDE, wide,
                                                 threadIdx.x);
    };
    const auto multiply = [&](long long panel, const double* stage) {
        double sum[OWN / 8][4] = {};
#pragma unroll
        for (int p = 0; p < SIDE / 8; ++p) {
            double b[OWN / 8][2];
#pragma unroll
            for (int s = 0; s < OWN / 8; ++s) read_vectors<double, 2, 1>(b[s], stage + (first + 8 * s + g) * PITCH + 8 * p, t);
            multiply_eight<STEPS>(sum, rows.at[p], b);
        }
        const long long i = panel * HEIGHT + first + 2 * t;
        double* const to = y + i * SIDE + 16 * strip + g;
#pragma unroll
        for (int s = 0; s < OWN / 8; ++s)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                if (i + 8 * s + e % 2 < height) to[(8 * s + e % 2) * SIDE + e / 2 * 8] = sum[s][e];
    };
    stream<STAGES, HEIGHT * PITCH>(reinterpret_cast<double*>(shared), (height + HEIGHT - 1) / HEIGHT, copy, multiply);
}

// Both factors as A of mma.cuh, in the order of lanes: [sixteen rows][eight steps][half][lane].
template <int SIDE>
struct Pieces {
    static constexpr int PARTS = SIDE / 8, SIZE = SIDE / 16 * PARTS * 2 * 32;
    double2* at;

    __device__ __forceinline__ void lay(const Matrix<double>& factor) const {
        for (int place = threadIdx.x; place < SIZE; place += blockDim.x) {
            const int lane = place % 32, piece = place / 32;
            const int i = piece / 2 / PARTS * 16 + lane / 4, p = piece / 2 % PARTS * 8 + lane % 4 * 2 + piece % 2;
            at[place] = {factor.get(i, p), factor.get(i + 8, p)};
        }
    }
    template <int STEPS>
    __device__ __forceinline__ void read(double (&a)[2 * STEPS], int strip, int first_part) const {
#pragma unroll
        for (int s = 0; s < STEPS; ++s) {
            const double2 pair = at[(strip * PARTS + first_part) * 64 + s * 32 + threadIdx.x % 32];
            a[2 * s] = pair.x, a[2 * s + 1] = pair.y;
        }
    }
};

// THREADS threads take part in one of a block's 16 barriers: they wait for all of them, or say only that they are there.
template <int THREADS>
__device__ __forceinline__ void wait_at(int barrier) {
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(THREADS) : "memory");
}
template <int THREADS>
__device__ __forceinline__ void arrive_at(int barrier) {
    asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "n"(THREADS) : "memory");
}

// A place in shared memory for a tile of SIDE x SIDE. Pairs of elements are exchanged within a row so that the rows 2 t, which
// the lanes of half a warp read at once, lie in different banks.
template <int SIDE>
struct TilePlace {
    double* at;

    __device__ __forceinline__ void copy(const double* from, int thread, int threads, bool wide) const {
        for (int pair = thread; pair < SIDE * SIDE / 2; pair += threads) {
            const int row = pair / (SIDE / 2), column = pair % (SIDE / 2) * 2;
            double* const to = at + row * SIDE + (column ^ row / 2 % 4 * 4);
            if (wide) {
                copy_async<16>(to, from + 2 * pair, true);
            } else {
                copy_async<8>(to, from + 2 * pair, true);
                copy_async<8>(to + 1, from + 2 * pair + 1, true);
            }
        }
    }
    // Rows 8 part + 2 t and the next of all columns, as parts `first` and `first + 1` of B.
    template <int STEPS>
    __device__ __forceinline__ void read(double (&b)[SIDE / 8][STEPS], int part, int first) const {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        const double* const from = at + (8 * part + 2 * t) * SIDE + (g ^ t % 2 * 4);
#pragma unroll
        for (int s = 0; s < SIDE / 8; ++s)
#pragma unroll
            for (int e = 0; e < 2; ++e) b[s][first + e] = from[e * SIDE + 8 * (s ^ t / 2)];
    }
};

// y[h] = left x[h] right for `batch` tiles of SIDE x SIDE, CHUNK columns of y at a time. Groups of warps take the block's tiles
// in turns, each warp 16 rows of its group's tile. What the first product leaves in a lane is what the second needs as B:
// y^T = right^T (left x)^T. The second needs no x: PLACES, fewer than two a group, suffice to copy a tile while the group
// computes the one before.
template <int SIDE, int CHUNK, int GROUPS, int PLACES, int STEPS>
__global__ __launch_bounds__(SIDE / 16 * GROUPS * 32, 1) void both_factors(
    Matrix<double> left, Matrix<double> right, const double* x, double* y, int batch) {
    constexpr int THREADS = SIDE / 16 * 32, PARTS = SIDE / 8, TOGETHER = STEPS / 2;  // parts of an instruction
    static_assert(SIDE % 16 == 0 && SIDE % CHUNK == 0 && CHUNK % 16 == 0, "whole tiles of the tensor cores");
    static_assert(STEPS == 2 || STEPS == 4, "m16n8k8 or m16n8k16");
    static_assert(PLACES > GROUPS && PLACES % GROUPS != 0, "room for a tile on its way; places change groups");
    static_assert(1 + GROUPS + PLACES <= 16, "barriers of a block");
    extern __shared__ uint4 shared[];
    const Pieces<SIDE> of_left = {reinterpret_cast<double2*>(shared)}, of_right = {of_left.at + Pieces<SIDE>::SIZE};
    double* const places = reinterpret_cast<double*>(of_right.at + Pieces<SIDE>::SIZE);
    const int group = threadIdx.x / THREADS, thread = threadIdx.x % THREADS, strip = thread / 32;
    const int g = thread % 32 / 4, t = thread % 4, of_group = 1 + group, of_places = 1 + GROUPS;  // barriers
    const bool wide = on_vectors(x, SIDE);
    const auto copy = [&](int place, bool used, int tile) {
        if (tile < batch) {
            if (used) wait_at<2 * THREADS>(of_places + place);  // for the group that had a tile there
            TilePlace<SIDE>{places + place * SIDE * SIDE}.copy(x + (long long)tile * SIDE * SIDE, thread, THREADS, wide);
        }
        commit_copies();
    };
    int tile = blockIdx.x + gridDim.x * group;
    copy(group, false, tile);
    of_left.lay(left);
    of_right.lay(right.transposed());
    __syncthreads();
    bool used = false;
    for (int place = group; tile < batch; tile += GROUPS * gridDim.x) {
        const int next = place + GROUPS - (place + GROUPS >= PLACES ? PLACES : 0);
        used |= next < place;
        copy(next, used, tile + GROUPS * gridDim.x);
        wait_for_copies<1>();
        wait_at<THREADS>(of_group);
        double once[PARTS][4] = {};  // left x: this strip's rows
#pragma unroll
        for (int p = 0; p < PARTS; p += TOGETHER) {
            double a[2 * STEPS], b[PARTS][STEPS];
            of_left.template read<STEPS>(a, strip, p);
#pragma unroll
            for (int h = 0; h < TOGETHER; ++h) TilePlace<SIDE>{places + place * SIDE * SIDE}.read(b, p + h, 2 * h);
#pragma unroll
            for (int s = 0; s < PARTS; ++s) mma<STEPS, true>(once[s], a, b[s]);
        }
        if (tile + PLACES * gridDim.x < batch) arrive_at<2 * THREADS>(of_places + place);
        double* const to = y + (long long)tile * SIDE * SIDE + (16 * strip + 2 * t) * SIDE + g;
#pragma unroll
        for (int j = 0; j < SIDE; j += CHUNK) {
            double sum[CHUNK / 16][2][4] = {};  // columns of y; its rows g and g + 8 of the strip
#pragma unroll
            for (int p = 0; p < PARTS; p += TOGETHER) {
                double b[2][STEPS];
#pragma unroll
                for (int e = 0; e < 2 * STEPS; ++e) b[e / STEPS][e % STEPS] = once[p + e % STEPS / 2][e / STEPS * 2 + e % 2];
#pragma unroll
                for (int s = 0; s < CHUNK / 16; ++s) {
                    double a[2 * STEPS];
                    of_right.template read<STEPS>(a, j / 16 + s, p);
                    mma<STEPS, true>(sum[s][0], a, b[0]);
                    mma<STEPS, true>(sum[s][1], a, b[1]);
                }
            }
#pragma unroll
            for (int e = 0; e < CHUNK / 2; ++e)
                to[(e / 4 % 2 * 8 + e % 2) * SIDE + j + e / 8 * 16 + e / 2 % 2 * 8] = sum[e / 8][e / 4 % 2][e % 4];
        }
        place = next;
    }
    wait_for_copies<0>();
}
