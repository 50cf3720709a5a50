// Fortuin-Kasteleyn moves of replica-packed words: spinsim/engine/moves/fortuin_kasteleyn/move.py says which clusters flip.
//
//   state[sample][block][place][4]   spins: bit b of word w is replica 128 block + 32 w + b
//   reached[at], leaders[at]         of one sample and 32 replicas, a lane each: what a flood has reached, which sites lead
//   opened[bond]                     which lanes have a bond open; along axes those of an axis stand together, opened[axis][at]
//
// A block of threads has 32 replicas of a sample. Open bonds are found first. Floods then let words grow over them with AND
// and OR until nothing changes. On lattices that fit, a thread keeps the open bonds of a run of sites along each axis in
// registers, and threads that share a row exchange what leaves their runs; rows are padded, so that no two threads of a
// warp read one bank. Any other graph grows colour by colour.
#include "random/acceptance.cuh"

constexpr u32 STREAM_CLUSTERS = HOST(rng.Stream.FORTUIN_KASTELEYN);
constexpr int THREADS = HOST(engine.moves.fortuin_kasteleyn.cuda.THREADS), RUN = HOST(engine.moves.fortuin_kasteleyn.cuda.RUN);
constexpr int FEW = HOST(engine.moves.fortuin_kasteleyn.cuda.FEW_LEVELS), PLANES = HOST(engine.moves.fortuin_kasteleyn.bonds.PLANES);
constexpr u32 TAIL = HOST(engine.moves.fortuin_kasteleyn.bonds.TAIL), COIN = HOST(engine.moves.fortuin_kasteleyn.move.COIN);
constexpr u32 OWN = HOST(engine.moves.fortuin_kasteleyn.move.OWN), SEEDS = HOST(engine.moves.fortuin_kasteleyn.move.SEEDS);
constexpr u32 SWENDSEN_WANG = HOST(engine.moves.fortuin_kasteleyn.bonds.SWENDSEN_WANG);
constexpr u32 WOLFF = HOST(engine.moves.fortuin_kasteleyn.bonds.WOLFF);
constexpr u32 MOST_AXES = 3, LANES = 32, WORDS = 4, ALL = ~0u, MOST_PLANES = 32;
static_assert(PLANES == 8, "two calls hold the first planes");

// Bonds as spinsim/engine/moves/fortuin_kasteleyn/bonds.py has them, those to the ghost from `inner` on.
struct Bonds {
    const int2* ends;
    const u32* number;
    const u8* negative;
    const int* level;
    const double* costs;
    const u8* terms;
    size_t negative_stride, level_stride;  // 0 where all samples share them
    u32 count, inner, levels;
};
CHECK_STRUCT(Bonds, engine.moves.fortuin_kasteleyn.cuda.BONDS);

struct Sites {
    const u32 *place, *rank;     // of each site
    u32 count, bits, most, row;  // bits of ranks; the largest k of seeds; sites of a padded row, 0 where none are
    u32 size;                    // words of all sites with their padding
};
CHECK_STRUCT(Sites, engine.moves.fortuin_kasteleyn.cuda.SITES);

// Neighbours of site order[q] by slot: near[slot][q] over bond[slot][q].
struct Graph {
    const u32 *order, *near, *bond, *colour_start;
    const unsigned short* degree;
    u32 colours;
};
CHECK_STRUCT(Graph, engine.moves.fortuin_kasteleyn.cuda.GRAPH);

struct Axis { u32 length, stride, parts, rows; };  // threads share each row in so many parts
// Rows along each axis: row r of axis a begins at begin[a][r].
struct Lines {
    Axis axis[MOST_AXES];
    const u32* begin;
    u32 most;
};
CHECK_STRUCT(Lines, engine.moves.fortuin_kasteleyn.cuda.LINES);

// Replicas at their temperatures: holder[sample][copy][temperature], beta[temperature][term] times the quantum.
struct Ladder {
    const int* holder;
    const double* beta;
    u32 copies, temperatures, terms;
};
CHECK_STRUCT(Ladder, engine.moves.fortuin_kasteleyn.cuda.LADDER);

__device__ __forceinline__ u32 word_of(const uint4& v, u32 w) { return w == 0 ? v.x : w == 1 ? v.y : w == 2 ? v.z : v.w; }

// Whose bonds of a size stay closed: thresholds of the lanes, their first bits as planes, lanes for which none opens.
struct Level {
    u64 threshold[LANES];
    u32 plane[PLANES], always;
};

// What the lanes of a block have.
struct Lanes {
    double beta[2][LANES];
    Level level[FEW];
    u32 wants[MOST_PLANES + 1];  // lanes that want a plane of seeds
};

struct When {
    u32 word1, w;  // counter word 1; the word of a block of 128 replicas
    HalfSweep time;
    const Key& key;
    __device__ __forceinline__ uint4 draw(u32 group, u32 plane) const {
        return philox<MOST_ROUNDS>(group, word1, time.word2, time.word3 | plane, key);
    }
};

__device__ __forceinline__ Threshold threshold_of(const Bonds& bonds, u32 level, const Lanes& lanes, u32 lane) {
    return exp_threshold(-__dmul_rn(lanes.beta[bonds.terms[level]][lane], bonds.costs[level]));
}

// Returns the lanes that have bond e open, whose ends differ for lanes `differ`.
__device__ __noinline__ u32 open_bond(const Bonds& bonds, u32 e, u32 differ, u32 sample, const Lanes& lanes, const When& when) {
    const int k = bonds.level[sample * bonds.level_stride + e];
    if (k < 0) return 0;
    const bool is_few = bonds.levels <= FEW;
    const Level& level = lanes.level[is_few ? k : 0];
    u32 plane[PLANES], always = 0;
    if (is_few) {
#pragma unroll
        for (int p = 0; p < PLANES; ++p) plane[p] = level.plane[p];
        always = level.always;
    } else {
#pragma unroll
        for (int p = 0; p < PLANES; ++p) plane[p] = 0;
        for (u32 lane = 0; lane < LANES; ++lane) {
            const Threshold t = threshold_of(bonds, k, lanes, lane);
            always |= (u32)t.always << lane;
#pragma unroll
            for (int p = 0; p < PLANES; ++p) plane[p] |= (u32)(t.value >> (63 - p) & 1) << lane;
        }
    }
    const u32 there = ~(differ ^ (0u - bonds.negative[sample * bonds.negative_stride + e])) & ~always;
    const u32 number = bonds.number[e];
    const Prefix prefix = philox_prefix(number, when.word1, when.time.word2, when.key);
    u32 closed = 0, undecided = there;
#pragma unroll
    for (int call = 0; call < PLANES / 4; ++call) {
        if (!undecided) break;
        const uint4 random = philox_finish<MOST_ROUNDS>(prefix, when.time.word3 | (4 * call + when.w), when.key);
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            const u32 threshold = plane[4 * call + q], drawn = word_of(random, q);
            closed |= undecided & threshold & ~drawn;
            undecided &= ~(threshold ^ drawn);
        }
    }
    for (; undecided; undecided &= undecided - 1) {
        const u32 lane = __ffs(undecided) - 1;
        const uint4 random = philox_finish<MOST_ROUNDS>(prefix, when.time.word3 | (TAIL + LANES * when.w + lane), when.key);
        const u64 whole = is_few ? level.threshold[lane] : threshold_of(bonds, k, lanes, lane).value;
        closed |= (u32)(((u64)random.x << 32 | random.y) < whole << PLANES) << lane;
    }
    return there & ~closed;
}

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
    const u32 lane = threadIdx.x % LANES, last = (lane + (parts - 1 - part) * step) % LANES, first = (lane - part * step) % LANES;
    const u32 after = (lane + step) % LANES, before = (lane - step) % LANES;
#pragma unroll
    for (int k = 1; k < N; ++k) r[k] |= r[k - 1] & open[k - 1];
    u32 out = r[N - 1] & open[N - 1], all = through;
    for (u32 by = 1; by < parts; by *= 2) {
        const u32 theirs = __shfl_sync(ALL, out, (lane - by * step) % LANES), too = __shfl_sync(ALL, all, (lane - by * step) % LANES);
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
        const u32 theirs = __shfl_sync(ALL, out, (lane + by * step) % LANES), too = __shfl_sync(ALL, all, (lane + by * step) % LANES);
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

    __device__ __forceinline__ Runs(const Lines& lines, const u32* opened, u32 size) : lines(lines) {
        const u32 lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
#pragma unroll
        for (int a = 0; a < AXES; ++a) {
            const Axis axis = lines.axis[a];
            const u32 rows = LANES / axis.parts, row = warp * rows + lane % rows, run = (axis.length + axis.parts - 1) / axis.parts;
            part[a] = lane / rows;
            const bool is_there = part[a] < axis.parts && row < axis.rows && part[a] * run < axis.length;
            count[a] = is_there ? min(run, axis.length - part[a] * run) : 0;
            first[a] = is_there ? lines.begin[a * lines.most + row] + part[a] * run * axis.stride : 0;
            through[a] = ALL;
#pragma unroll
            for (int k = 0; k < N; ++k) {
                open[a][k] = has(a, k) ? opened[a * size + first[a] + k * stride(a)] : ALL;
                through[a] &= open[a][k];
            }
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
                    pass_on(r, open[a], through[a], part[a], parts(a), LANES / parts(a));
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

// Any graph. Sites of one colour have no bonds between them, so that a colour reads what no thread writes.
struct Colours {
    const Graph& graph;
    const u32* opened;
    u32 sites;

    __device__ __forceinline__ void flood(u32* reached) const {
        for (int changed = 1; changed;) {
            changed = 0;
            for (u32 colour = 0; colour < graph.colours; ++colour) {
                for (u32 q = graph.colour_start[colour] + threadIdx.x; q < graph.colour_start[colour + 1]; q += blockDim.x) {
                    const u32 i = graph.order[q], before = reached[i];
                    u32 joined = before;
                    for (u32 slot = 0; slot < graph.degree[q]; ++slot)
                        joined |= reached[graph.near[(size_t)slot * sites + q]] & opened[graph.bond[(size_t)slot * sites + q]];
                    if (joined == before) continue;
                    reached[i] = joined;
                    changed = 1;
                }
                if (colour + 1 < graph.colours) __syncthreads();
            }
            changed = __syncthreads_or(changed);
        }
    }
};

// Flips clusters of 32 replicas of a sample: block (word of replicas, sample). Words of sites and bonds lie in shared memory if
// they fit, else in scratch. AXES is 0 for any graph, SIDE as for Runs.
template <int AXES, int SIDE, bool SHARED>
__global__ __launch_bounds__(THREADS) void flip_clusters(u32* state, u32 blocks, u32 replicas, Bonds bonds, Sites sites, Graph graph,
                                                         Lines lines, Ladder ladder, u32* scratch, u32 kind, u32 first_sample,
                                                         u64 time, Key key) {
    extern __shared__ u32 in_shared[];
    __shared__ Lanes lanes;
    const u32 sample = blockIdx.y, word = blockIdx.x, thread = threadIdx.x, lane = thread % LANES, warp = thread / LANES;
    const u32 inner = AXES ? AXES * sites.size : bonds.inner;
    u32* const reached = SHARED ? in_shared : scratch + ((size_t)sample * gridDim.x + word) * (2 * sites.size + inner);
    u32 *const leaders = reached + sites.size, *const opened = leaders + sites.size;
    u32* const spins = state + ((size_t)sample * blocks + word / WORDS) * sites.count * WORDS + word % WORDS;
    const When when{counter_block(first_sample + sample, word / WORDS), word % WORDS, counter_half_sweep(time, STREAM_CLUSTERS), key};
    const u32 used = replicas - LANES * word >= LANES ? ALL : (1u << (replicas - LANES * word)) - 1;
    const auto at = [&](u32 i) { return AXES ? i + i / sites.row : i; };

    // Temperatures of the lanes, 0 of those not in use, whose bonds stay closed; thresholds.
    if (thread < 2 * LANES) lanes.beta[thread / LANES][lane] = 0;
    __syncthreads();
    const int* const holder = ladder.holder + (size_t)sample * replicas;
    for (u32 c = thread; c < ladder.copies * ladder.temperatures; c += blockDim.x) {
        const u32 r = holder[c], t = c % ladder.temperatures;
        if (r / LANES != word) continue;
        lanes.beta[0][r % LANES] = ladder.beta[t * ladder.terms];
        lanes.beta[1][r % LANES] = ladder.beta[t * ladder.terms + ladder.terms - 1];
    }
    __syncthreads();
    for (u32 k = warp; k < bonds.levels && bonds.levels <= FEW; k += blockDim.x / LANES) {
        const Threshold t = threshold_of(bonds, k, lanes, lane);
        lanes.level[k].threshold[lane] = t.value;
        const u32 always = __ballot_sync(ALL, t.always);
        if (lane == 0) lanes.level[k].always = always;
        for (int p = 0; p < PLANES; ++p) {
            const u32 plane = __ballot_sync(ALL, (int)(t.value >> (63 - p) & 1));
            if (lane == 0) lanes.level[k].plane[p] = plane;
        }
    }

    // Open bonds.
    for (u32 i = thread; i < sites.count; i += blockDim.x) reached[at(i)] = spins[(size_t)sites.place[i] * WORDS];
    __syncthreads();
    for (u32 e = thread; e < bonds.inner; e += blockDim.x) {
        const int2 ends = bonds.ends[e];
        const u32 differ = reached[at(ends.x)] ^ reached[at(ends.y)];
        opened[AXES ? e / sites.count * sites.size + at(e % sites.count) : e] = open_bond(bonds, e, differ, sample, lanes, when);
    }
    __syncthreads();

    const auto flip = [&](const auto& growth) {
        const auto draw_own = [&] {
            const u32 block = counter_block(first_sample + sample, 0);
            return philox<MOST_ROUNDS>(LANES * word + lane, block, when.time.word2, when.time.word3 | OWN, key);
        };
        if (kind == SWENDSEN_WANG) {
            // The leaders: a bit of their rank at a time, from the highest.
            for (u32 i = thread; i < sites.count; i += blockDim.x) leaders[at(i)] = ALL;
            for (u32 bit = sites.bits; bit-- > 0;) {
                for (u32 i = thread; i < sites.count; i += blockDim.x) reached[at(i)] = sites.rank[i] >> bit & 1 ? 0 : leaders[at(i)];
                __syncthreads();
                growth.flood(reached);
                for (u32 i = thread; i < sites.count; i += blockDim.x)
                    if (sites.rank[i] >> bit & 1) leaders[at(i)] &= ~reached[at(i)];
            }
            for (u32 i = thread; i < sites.count; i += blockDim.x)
                reached[at(i)] = leaders[at(i)] & word_of(when.draw(i, COIN), when.w);
        } else if (kind == WOLFF) {
            for (u32 i = thread; i < sites.count; i += blockDim.x) reached[at(i)] = 0;
            __syncthreads();
            if (warp == 0 && used >> lane & 1) atomicXor(reached + at(__umulhi(draw_own().x, sites.count)), 1u << lane);
        } else {
            const u32 k = 1 + __umulhi(draw_own().y, sites.most);
            for (u32 plane = warp; plane < MOST_PLANES + 1; plane += blockDim.x / LANES) {
                const u32 want = __ballot_sync(ALL, k > plane);
                if (lane == 0) lanes.wants[plane] = want;
            }
            __syncthreads();
            for (u32 i = thread; i < sites.count; i += blockDim.x) {
                u32 seeds = used;
                for (u32 plane = 0; seeds & lanes.wants[plane]; ++plane)
                    seeds &= word_of(when.draw(i, SEEDS + plane), when.w) | ~lanes.wants[plane];
                reached[at(i)] = seeds;
            }
        }
        __syncthreads();
        growth.flood(reached);

        // Clusters with the ghost stay as they are.
        if (bonds.count > bonds.inner) {
            for (u32 i = thread; i < sites.count; i += blockDim.x) {
                leaders[at(i)] = reached[at(i)];
                const u32 differ = ~spins[(size_t)sites.place[i] * WORDS];
                reached[at(i)] = open_bond(bonds, bonds.inner + i, differ, sample, lanes, when);
            }
            __syncthreads();
            growth.flood(reached);
        }
        for (u32 i = thread; i < sites.count; i += blockDim.x) {
            const u32 flips = bonds.count > bonds.inner ? leaders[at(i)] & ~reached[at(i)] : reached[at(i)];
            spins[(size_t)sites.place[i] * WORDS] ^= flips & used;
        }
    };
    if constexpr (AXES > 0)
        flip(Runs<AXES, SIDE>(lines, opened, sites.size));
    else
        flip(Colours{graph, opened, sites.count});
}
