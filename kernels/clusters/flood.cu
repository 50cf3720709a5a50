// Wolff and seeded moves on lattices by flood: words of replicas grow over open bonds with AND and OR until nothing changes. A block of
// threads has 32 replicas of a sample; a thread keeps the open bonds of a run of sites along each axis in registers, and threads that
// share a row exchange what leaves their runs. Rows are padded, so that few threads of a warp read one bank.
#include "clusters/fortuin_kasteleyn.cuh"

constexpr int FLOODING = HOST(engine.moves.fortuin_kasteleyn.cuda.FLOODING), RUN = HOST(engine.moves.fortuin_kasteleyn.cuda.RUN);
constexpr u32 MOST_AXES = 3;

struct Axis { u32 length, stride, parts, rows; };  // threads share each row in so many parts
// Rows along each axis: row r of axis a begins at begin[a][r].
struct Lines {
    Axis axis[MOST_AXES];
    const u32* begin;
    u32 most, row, size;  // the most rows of an axis; sites of a row, behind which there is padding; words of all sites
    __device__ __forceinline__ u32 at(u32 site) const { return site + site / row; }
};
CHECK_STRUCT(Lines, engine.moves.fortuin_kasteleyn.cuda.LINES);

// Passes on what is reached along a row that one thread has, a ring, once up and once down: `open` are the bonds behind sites.
template <int N>
__device__ __forceinline__ void pass_on(u32 (&r)[N], const u32 (&open)[N]) {
    r[0] |= r[N - 1] & open[N - 1];
#pragma unroll
    for (int k = 1; k < N; ++k) r[k] |= r[k - 1] & open[k - 1];
    r[N - 1] |= r[0] & open[N - 1];
#pragma unroll
    for (int k = N - 2; k >= 0; --k) r[k] |= r[k + 1] & open[k];
}

// Does the same along a row that `parts` threads have, `step` lanes from each other, until it is done; `through` is what comes in
// at one end of the calling thread's part and leaves at the other.
template <int N>
__device__ __forceinline__ void pass_on(u32 (&r)[N], const u32 (&open)[N], u32 through, u32 part, u32 parts, u32 step) {
    const u32 lane = threadIdx.x % WIDTH, last = (lane + (parts - 1 - part) * step) % WIDTH, first = (lane - part * step) % WIDTH;
    const u32 after = (lane + step) % WIDTH, before = (lane - step) % WIDTH;
#pragma unroll
    for (int k = 1; k < N; ++k) r[k] |= r[k - 1] & open[k - 1];
    u32 out = r[N - 1] & open[N - 1], all = through;
    for (u32 by = 1; by < parts; by *= 2) {
        const u32 theirs = __shfl_sync(ALL, out, (lane - by * step) % WIDTH), too = __shfl_sync(ALL, all, (lane - by * step) % WIDTH);
        if (part >= by) out |= theirs & all, all &= too;
    }
    u32 around = __shfl_sync(ALL, out, last), come = __shfl_sync(ALL, out, before), free = __shfl_sync(ALL, all, before);
    r[0] |= part ? come | (free & around) : around;
#pragma unroll
    for (int k = 1; k < N; ++k) r[k] |= r[k - 1] & open[k - 1];
#pragma unroll
    for (int k = N - 2; k >= 0; --k) r[k] |= r[k + 1] & open[k];
    out = r[0], all = through;
    for (u32 by = 1; by < parts; by *= 2) {
        const u32 theirs = __shfl_sync(ALL, out, (lane + by * step) % WIDTH), too = __shfl_sync(ALL, all, (lane + by * step) % WIDTH);
        if (part + by < parts) out |= theirs & all, all &= too;
    }
    around = __shfl_sync(ALL, out, first), come = __shfl_sync(ALL, out, after), free = __shfl_sync(ALL, all, after);
    r[N - 1] |= (part + 1 < parts ? come | (free & around) : around) & open[N - 1];
#pragma unroll
    for (int k = N - 2; k >= 0; --k) r[k] |= r[k + 1] & open[k];
}

// The calling thread's run of sites along each axis, with the bonds behind them. Past its last site all is open and nothing there.
// SIDE is that of a lattice whose sides are equal and whose runs are whole, 0 of others.
template <int AXES, int SIDE>
struct Runs {
    static constexpr int N = SIDE && SIDE < RUN ? SIDE : RUN;
    const Lines& lines;
    u32 open[AXES][N], through[AXES], first[AXES], count[AXES], part[AXES];

    __device__ __forceinline__ u32 parts(int a) const { return SIDE ? SIDE / N : lines.axis[a].parts; }
    __device__ __forceinline__ u32 stride(int a) const {
        return SIDE == 0 ? lines.axis[a].stride : a == 0 ? 1 : a == 1 ? SIDE + 1 : (SIDE + 1) * SIDE;
    }
    __device__ __forceinline__ bool has(int a, u32 k) const { return SIDE ? count[a] > 0 : k < count[a]; }

    // `opened` has the bonds along each axis, site by site, WORDS words apart; `room` is that of a word for each site.
    __device__ __forceinline__ Runs(const Lines& lines, const u32* opened, u32 sites, u32* room) : lines(lines) {
        const u32 lane = threadIdx.x % WIDTH, warp = threadIdx.x / WIDTH;
#pragma unroll
        for (int a = 0; a < AXES; ++a) {
            for (u32 i = threadIdx.x; i < sites; i += blockDim.x) room[lines.at(i)] = opened[(size_t)(a * sites + i) * WORDS];
            __syncthreads();
            const Axis axis = lines.axis[a];
            const u32 rows = WIDTH / axis.parts, row = warp * rows + lane % rows, run = (axis.length + axis.parts - 1) / axis.parts;
            part[a] = lane / rows;
            const bool is_there = part[a] < axis.parts && row < axis.rows && part[a] * run < axis.length;
            count[a] = is_there ? min(run, axis.length - part[a] * run) : 0;
            first[a] = is_there ? lines.begin[a * lines.most + row] + part[a] * run * axis.stride : 0;
            through[a] = ALL;
#pragma unroll
            for (int k = 0; k < N; ++k) {
                open[a][k] = has(a, k) ? room[first[a] + k * stride(a)] : ALL;
                through[a] &= open[a][k];
            }
            __syncthreads();
        }
    }

    __device__ __forceinline__ void flood(u32* reached) const {
        for (int changed = 1; changed;) {
            changed = 0;
#pragma unroll
            for (int a = 0; a < AXES; ++a) {
                u32 r[N], old[N], news = 0;
#pragma unroll
                for (int k = 0; k < N; ++k) r[k] = old[k] = has(a, k) ? reached[first[a] + k * stride(a)] : 0;
                if (SIDE && SIDE <= N)
                    pass_on(r, open[a]);
                else
                    pass_on(r, open[a], through[a], part[a], parts(a), WIDTH / parts(a));
#pragma unroll
                for (int k = 0; k < N; ++k) news |= has(a, k) ? r[k] ^ old[k] : 0;
                if (news) {
                    changed = 1;
#pragma unroll
                    for (int k = 0; k < N; ++k)
                        if (has(a, k)) reached[first[a] + k * stride(a)] = r[k];
                }
                if (a + 1 < AXES) __syncthreads();
            }
            changed = __syncthreads_or(changed);
        }
    }
};

// Flips clusters of 32 replicas of a sample: block (word of replicas, sample). SIDE is as for Runs.
template <int AXES, int SIDE>
__global__ __launch_bounds__(FLOODING) void flood_clusters(Batch batch, Bonds bonds, Sites sites, Lines lines, u64 time, Key key) {
    extern __shared__ u32 in_shared[];
    const u32 sample = blockIdx.y, word = blockIdx.x, thread = threadIdx.x, inner = AXES * sites.count;
    const size_t row = (size_t)sample * batch.blocks + word / WORDS;
    u32 *const reached = in_shared, *const room = reached + lines.size;
    u32* const spins = (u32*)(batch.state + row * sites.count) + word % WORDS;
    const u32* const opened = batch.opened + row * bonds.columns * LANES + word % WORDS;
    const u32* const chosen = batch.chosen + row * sites.columns * LANES + word % WORDS;
    const Runs<AXES, SIDE> runs(lines, opened, sites.count, room);

    for (u32 i = thread; i < sites.count; i += blockDim.x) reached[lines.at(i)] = batch.move == WOLFF ? 0 : chosen[(size_t)i * WORDS];
    __syncthreads();
    if (batch.move == WOLFF && thread < WIDTH && WIDTH * word + thread < batch.replicas) {
        const HalfSweep when = counter_half_sweep(time, STREAM_CLUSTERS);
        const u32 own = draw_own(WIDTH * word + thread, batch.first_sample + sample, when, key).x;
        atomicOr(reached + lines.at(__umulhi(own, sites.count)), 1u << thread);
    }
    __syncthreads();
    runs.flood(reached);

    // Clusters with the ghost stay as they are.
    if (bonds.count > inner) {
        for (u32 i = thread; i < sites.count; i += blockDim.x) {
            room[lines.at(i)] = reached[lines.at(i)];
            reached[lines.at(i)] = opened[(size_t)(inner + i) * WORDS];
        }
        __syncthreads();
        runs.flood(reached);
    }
    const u32 left = batch.replicas - WIDTH * word, used = left >= WIDTH ? ALL : (1u << left) - 1;
    for (u32 i = thread; i < sites.count; i += blockDim.x) {
        const u32 flips = bonds.count > inner ? room[lines.at(i)] & ~reached[lines.at(i)] : reached[lines.at(i)];
        if (flips & used) spins[(size_t)sites.place[i] * WORDS] ^= flips & used;
    }
}
