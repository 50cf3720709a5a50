// Fortuin-Kasteleyn moves of replica-packed words: spinsim/engine/moves/fortuin_kasteleyn/move.py says which clusters flip.
//
//   state[sample][block][place][4]   spins: bit b of word w is replica 128 block + 32 w + b
//   reached[at], leaders[at]         of one sample and 32 replicas, a lane each: what a flood has reached, which sites lead
//   opened[bond]                     which lanes have a bond open; along axes those of an axis stand together, opened[axis][at]
//
// On lattices that fit, a block of threads has 32 replicas of a sample. Open bonds are found first. Floods then let words grow over
// them with AND and OR until nothing changes: a thread keeps the open bonds of a run of sites along each axis in registers, and
// threads that share a row exchange what leaves their runs; rows are padded, so that few threads of a warp read one bank.
//
// On any other graph bonds and chosen sites are written to memory, and a block of threads finds the clusters of one replica by
// union-find: parent[label] is a smaller label of the same cluster, label 0 the ghost, 1 + r the site of rank r.
#include "random/acceptance.cuh"

constexpr u32 STREAM_CLUSTERS = HOST(rng.Stream.FORTUIN_KASTELEYN);
constexpr int THREADS = HOST(engine.moves.fortuin_kasteleyn.cuda.THREADS), RUN = HOST(engine.moves.fortuin_kasteleyn.cuda.RUN);
constexpr int FEW = HOST(engine.moves.fortuin_kasteleyn.cuda.FEW_LEVELS), PLANES = HOST(engine.moves.fortuin_kasteleyn.bonds.PLANES);
constexpr u32 TAIL = HOST(engine.moves.fortuin_kasteleyn.bonds.TAIL), COIN = HOST(engine.moves.fortuin_kasteleyn.move.COIN);
constexpr u32 OWN = HOST(engine.moves.fortuin_kasteleyn.move.OWN), SEEDS = HOST(engine.moves.fortuin_kasteleyn.move.SEEDS);
constexpr u32 SWENDSEN_WANG = HOST(engine.moves.fortuin_kasteleyn.move.SWENDSEN_WANG);
constexpr u32 WOLFF = HOST(engine.moves.fortuin_kasteleyn.move.WOLFF);
constexpr u32 SEEDED = HOST(engine.moves.fortuin_kasteleyn.move.SEEDED);
constexpr u32 MOST_AXES = 3, LANES = 32, WORDS = 4, ALL = ~0u, MOST_PLANES = 32, FLIPS = 1u << 31;
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

// Lays the temperatures of the lanes of a word, 0 of those not in use, whose bonds stay closed, and thresholds of few sizes.
__device__ __forceinline__ void lay_lanes(Lanes& lanes, const Bonds& bonds, const Ladder& ladder, u32 sample, u32 word, u32 replicas) {
    const u32 thread = threadIdx.x, lane = thread % LANES;
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
    for (u32 k = thread / LANES; k < bonds.levels && bonds.levels <= FEW; k += blockDim.x / LANES) {
        const Threshold t = threshold_of(bonds, k, lanes, lane);
        lanes.level[k].threshold[lane] = t.value;
        const u32 always = __ballot_sync(ALL, t.always);
        if (lane == 0) lanes.level[k].always = always;
        for (int p = 0; p < PLANES; ++p) {
            const u32 plane = __ballot_sync(ALL, (int)(t.value >> (63 - p) & 1));
            if (lane == 0) lanes.level[k].plane[p] = plane;
        }
    }
}

// Returns what a replica draws: its site in x, its k in y.
__device__ __forceinline__ uint4 draw_own(u32 replica, u32 sample, const When& when) {
    return philox<MOST_ROUNDS>(replica, counter_block(sample, 0), when.time.word2, when.time.word3 | OWN, when.key);
}

// Lays which of 32 replicas want each plane of seeds.
__device__ __forceinline__ void lay_wants(Lanes& lanes, u32 most, u32 sample, u32 word, const When& when) {
    const u32 lane = threadIdx.x % LANES, k = 1 + __umulhi(draw_own(LANES * word + lane, sample, when).y, most);
    for (u32 plane = threadIdx.x / LANES; plane < MOST_PLANES + 1; plane += blockDim.x / LANES) {
        const u32 want = __ballot_sync(ALL, k > plane);
        if (lane == 0) lanes.wants[plane] = want;
    }
}

// Returns the lanes, of those used, with a seed at a site.
__device__ __forceinline__ u32 seeds_at(u32 i, u32 used, const Lanes& lanes, const When& when) {
    u32 seeds = used;
    for (u32 plane = 0; seeds & lanes.wants[plane]; ++plane) seeds &= word_of(when.draw(i, SEEDS + plane), when.w) | ~lanes.wants[plane];
    return seeds;
}

__device__ __forceinline__ u32 lanes_in_use(u32 replicas, u32 word) {
    return replicas - LANES * word >= LANES ? ALL : (1u << (replicas - LANES * word)) - 1;
}

// Flips clusters of 32 replicas of a sample: block (word of replicas, sample). SIDE is as for Runs.
template <int AXES, int SIDE>
__global__ __launch_bounds__(THREADS) void flip_clusters(u32* state, u32 blocks, u32 replicas, Bonds bonds, Sites sites, Lines lines,
                                                         Ladder ladder, u32 kind, u32 first_sample, u64 time, Key key) {
    extern __shared__ u32 in_shared[];
    __shared__ Lanes lanes;
    const u32 sample = blockIdx.y, word = blockIdx.x, thread = threadIdx.x, lane = thread % LANES;
    u32 *const reached = in_shared, *const leaders = reached + sites.size, *const opened = leaders + sites.size;
    u32* const spins = state + ((size_t)sample * blocks + word / WORDS) * sites.count * WORDS + word % WORDS;
    const When when{counter_block(first_sample + sample, word / WORDS), word % WORDS, counter_half_sweep(time, STREAM_CLUSTERS), key};
    const u32 used = lanes_in_use(replicas, word);
    const auto at = [&](u32 i) { return i + i / sites.row; };
    lay_lanes(lanes, bonds, ladder, sample, word, replicas);

    // Open bonds.
    for (u32 i = thread; i < sites.count; i += blockDim.x) reached[at(i)] = spins[(size_t)sites.place[i] * WORDS];
    __syncthreads();
    for (u32 e = thread; e < bonds.inner; e += blockDim.x) {
        const int2 ends = bonds.ends[e];
        const u32 differ = reached[at(ends.x)] ^ reached[at(ends.y)];
        opened[e / sites.count * sites.size + at(e % sites.count)] = open_bond(bonds, e, differ, sample, lanes, when);
    }
    __syncthreads();
    const Runs<AXES, SIDE> runs(lines, opened, sites.size);

    if (kind == SWENDSEN_WANG) {
        // The leaders: a bit of their rank at a time, from the highest.
        for (u32 i = thread; i < sites.count; i += blockDim.x) leaders[at(i)] = ALL;
        for (u32 bit = sites.bits; bit-- > 0;) {
            for (u32 i = thread; i < sites.count; i += blockDim.x) reached[at(i)] = sites.rank[i] >> bit & 1 ? 0 : leaders[at(i)];
            __syncthreads();
            runs.flood(reached);
            for (u32 i = thread; i < sites.count; i += blockDim.x)
                if (sites.rank[i] >> bit & 1) leaders[at(i)] &= ~reached[at(i)];
        }
        for (u32 i = thread; i < sites.count; i += blockDim.x)
            reached[at(i)] = leaders[at(i)] & word_of(when.draw(i, COIN), when.w);
    } else if (kind == WOLFF) {
        for (u32 i = thread; i < sites.count; i += blockDim.x) reached[at(i)] = 0;
        __syncthreads();
        if (thread < LANES && used >> lane & 1) {
            const u32 own = draw_own(LANES * word + lane, first_sample + sample, when).x;
            atomicXor(reached + at(__umulhi(own, sites.count)), 1u << lane);
        }
    } else {
        lay_wants(lanes, sites.most, first_sample + sample, word, when);
        __syncthreads();
        for (u32 i = thread; i < sites.count; i += blockDim.x) reached[at(i)] = seeds_at(i, used, lanes, when);
    }
    __syncthreads();
    runs.flood(reached);

    // Clusters with the ghost stay as they are.
    if (bonds.count > bonds.inner) {
        for (u32 i = thread; i < sites.count; i += blockDim.x) {
            leaders[at(i)] = reached[at(i)];
            const u32 differ = ~spins[(size_t)sites.place[i] * WORDS];
            reached[at(i)] = open_bond(bonds, bonds.inner + i, differ, sample, lanes, when);
        }
        __syncthreads();
        runs.flood(reached);
    }
    for (u32 i = thread; i < sites.count; i += blockDim.x) {
        const u32 flips = bonds.count > bonds.inner ? leaders[at(i)] & ~reached[at(i)] : reached[at(i)];
        spins[(size_t)sites.place[i] * WORDS] ^= flips & used;
    }
}

// Writes the open bonds of any graph, opened[sample][word][bond], and sites whose clusters flip, chosen[sample][word][site]: the
// coins of Swendsen-Wang moves, seeds. Block (word of replicas, sample, part of the bonds and sites).
__global__ __launch_bounds__(THREADS) void choose(const u32* state, u32 blocks, u32 replicas, Bonds bonds, Sites sites, Ladder ladder,
                                                  u32* opened, u32* chosen, u32 kind, u32 first_sample, u64 time, Key key) {
    __shared__ Lanes lanes;
    const u32 sample = blockIdx.y, word = blockIdx.x, used = lanes_in_use(replicas, word), step = gridDim.z * blockDim.x;
    const size_t row = (size_t)sample * gridDim.x + word;
    const u32* const spins = state + ((size_t)sample * blocks + word / WORDS) * sites.count * WORDS + word % WORDS;
    const When when{counter_block(first_sample + sample, word / WORDS), word % WORDS, counter_half_sweep(time, STREAM_CLUSTERS), key};
    const auto spin = [&](u32 i) { return i < sites.count ? spins[(size_t)sites.place[i] * WORDS] : ALL; };
    lay_lanes(lanes, bonds, ladder, sample, word, replicas);
    if (kind == SEEDED) lay_wants(lanes, sites.most, first_sample + sample, word, when);
    __syncthreads();
    for (u32 e = blockIdx.z * blockDim.x + threadIdx.x; e < bonds.count; e += step) {
        const int2 ends = bonds.ends[e];
        opened[row * bonds.count + e] = open_bond(bonds, e, spin(ends.x) ^ spin(ends.y), sample, lanes, when);
    }
    if (kind == WOLFF) return;
    for (u32 i = blockIdx.z * blockDim.x + threadIdx.x; i < sites.count; i += step)
        chosen[row * sites.count + i] = kind == SEEDED ? seeds_at(i, used, lanes, when) : word_of(when.draw(i, COIN), when.w);
}

// Returns the root of a label; labels on the way come nearer to it. Other threads join trees meanwhile.
__device__ __forceinline__ u32 root_of(u32* parent, u32 label) {
    for (u32 above = __ldcg(parent + label) & ~FLIPS; above != label;) {
        const u32 next = __ldcg(parent + above) & ~FLIPS;
        if (next == above) return above;
        parent[label] = next;
        label = next;
        above = __ldcg(parent + label) & ~FLIPS;
    }
    return label;
}

// Flips the clusters of one replica, block (replica, sample), over bonds that `choose` has opened; labels[bond] are those it joins.
__global__ __launch_bounds__(THREADS) void flip_labelled(u32* state, u32 blocks, u32 replicas, Bonds bonds, Sites sites, const u32* opened,
                                                         const u32* chosen, const int2* labels, u32* parents, u32 first, u32 kind,
                                                         u32 first_sample, u64 time, Key key) {
    const u32 sample = first + blockIdx.y, replica = blockIdx.x, word = replica / LANES, lane = replica % LANES;
    const size_t row = (size_t)sample * ((replicas + LANES - 1) / LANES) + word;
    u32* const parent = parents + ((size_t)blockIdx.y * replicas + replica) * (sites.count + 1);
    opened += row * bonds.count, chosen += row * sites.count;
    for (u32 label = threadIdx.x; label <= sites.count; label += blockDim.x) parent[label] = label;
    __syncthreads();
    for (u32 e = threadIdx.x; e < bonds.count; e += blockDim.x) {
        if (!(opened[e] >> lane & 1)) continue;
        u32 one = root_of(parent, labels[e].x), other = root_of(parent, labels[e].y);
        while (one != other) {  // the larger root hangs on the smaller one, unless it has been hung elsewhere meanwhile
            const u32 high = max(one, other), low = min(one, other), before = atomicCAS(parent + high, high, low);
            if (before == high) break;
            one = root_of(parent, before), other = root_of(parent, low);
        }
    }
    __syncthreads();

    // Roots of clusters that flip are marked: by the coin of the leader, which they are, or where a chosen site is.
    const auto is_chosen = [&](u32 i) { return chosen[i] >> lane & 1; };
    if (kind == WOLFF) {
        if (threadIdx.x == 0) {
            const When when{0, 0, counter_half_sweep(time, STREAM_CLUSTERS), key};
            const u32 own = __umulhi(draw_own(replica, first_sample + sample, when).x, sites.count);
            atomicOr(parent + root_of(parent, 1 + sites.rank[own]), FLIPS);
        }
    } else {
        for (u32 i = threadIdx.x; i < sites.count; i += blockDim.x) {
            const u32 label = 1 + sites.rank[i];
            if (is_chosen(i) && (kind == SEEDED || (__ldcg(parent + label) & ~FLIPS) == label)) atomicOr(parent + root_of(parent, label), FLIPS);
        }
    }
    __syncthreads();
    u32* const spins = state + ((size_t)sample * blocks + word / WORDS) * sites.count * WORDS + word % WORDS;
    for (u32 i = threadIdx.x; i < sites.count; i += blockDim.x) {
        const u32 root = root_of(parent, 1 + sites.rank[i]);
        if (root && __ldcg(parent + root) & FLIPS) atomicXor(spins + (size_t)sites.place[i] * WORDS, 1u << lane);
    }
}
