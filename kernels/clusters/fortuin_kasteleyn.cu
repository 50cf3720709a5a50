// Fortuin-Kasteleyn moves of replica-packed words: spinsim/engine/moves/fortuin_kasteleyn/move.py says which clusters flip.
//
//   state[sample][block][place][4]         spins: bit b of word w is replica 128 block + 32 w + b
//   opened[sample][block][column][lane]    of 32 bonds of one of 128 replicas those that are open
//   chosen[sample][block][column][lane]    of 32 labels of a replica those chosen; after join_* those whose sites flip
//
// Labels are sites in the order in which they lead, the first one's the largest: the largest label of a cluster is its leader's, and
// the ghost, which never flips, has the largest of all, the number of sites. Bonds are in order of the smaller label that they join.
// 1. choose draws open bonds and the coins or seeds of sites, 128 replicas a thread, and turns them: a word is then 32 bonds or labels.
// 2. join_in_shared finds the clusters of a replica by union-find, a warp a replica, its labels in shared memory; join_in_memory does it
// for more labels than fit, a block a replica. 3. flip_sites turns back what flips.
#include "bits/transpose.cuh"
#include "random/acceptance.cuh"

constexpr u32 STREAM_CLUSTERS = HOST(rng.Stream.FORTUIN_KASTELEYN);
constexpr int THREADS = HOST(engine.moves.fortuin_kasteleyn.cuda.THREADS), MOST_WARPS = HOST(engine.moves.fortuin_kasteleyn.cuda.MOST_WARPS);
constexpr int JOINING = HOST(engine.moves.fortuin_kasteleyn.cuda.JOINING);
constexpr int FEW = HOST(engine.moves.fortuin_kasteleyn.cuda.FEW_LEVELS), PLANES = HOST(engine.moves.fortuin_kasteleyn.bonds.PLANES);
constexpr u32 TAIL = HOST(engine.moves.fortuin_kasteleyn.bonds.TAIL), COIN = HOST(engine.moves.fortuin_kasteleyn.move.COIN);
constexpr u32 OWN = HOST(engine.moves.fortuin_kasteleyn.move.OWN), SEEDS = HOST(engine.moves.fortuin_kasteleyn.move.SEEDS);
constexpr u32 SWENDSEN_WANG = HOST(engine.moves.fortuin_kasteleyn.move.SWENDSEN_WANG);
constexpr u32 WOLFF = HOST(engine.moves.fortuin_kasteleyn.move.WOLFF);
constexpr u32 SEEDED = HOST(engine.moves.fortuin_kasteleyn.move.SEEDED);
constexpr u32 LANES = 128, WIDTH = 32, WORDS = 4, ALL = ~0u, MOST_PLANES = 32;
static_assert(PLANES == 8, "two calls hold the first planes");

typedef unsigned short u16;

// Bonds as spinsim/engine/moves/fortuin_kasteleyn/bonds.py has them, in the order above; places are those of their ends.
struct Bonds {
    const uint2* places;   // the ghost's is the number of sites
    const u32* number;
    const u8* negative;
    const int* level;
    const double* costs;
    const u8* terms;
    const u32* pairs;      // the labels that each joins, the smaller one in the lower half, where they fit; whole columns
    const uint2* labels;   // the same where they do not
    const u32* starts;     // of each column, the bonds with which a smaller label begins
    size_t negative_stride, level_stride;  // 0 where all samples share them
    u32 count, columns, levels;
};
CHECK_STRUCT(Bonds, engine.moves.fortuin_kasteleyn.cuda.BONDS);

struct Sites {
    const u32 *site, *place;     // of each label
    const u32 *label;            // of each site
    u32 count, columns, most;    // the largest k of seeds
};
CHECK_STRUCT(Sites, engine.moves.fortuin_kasteleyn.cuda.SITES);

// Replicas at their temperatures: holder[sample][copy][temperature], beta[temperature][term] times the quantum.
struct Ladder {
    const int* holder;
    const double* beta;
    u32 copies, temperatures, terms;
};
CHECK_STRUCT(Ladder, engine.moves.fortuin_kasteleyn.cuda.LADDER);

// The rows of words of all samples and blocks.
struct Batch {
    uint4* state;
    u32 *opened, *chosen;
    u32 blocks, replicas, move, first_sample;
};
CHECK_STRUCT(Batch, engine.moves.fortuin_kasteleyn.cuda.BATCH);

__device__ __forceinline__ u32 word_of(const uint4& v, u32 w) { return w == 0 ? v.x : w == 1 ? v.y : w == 2 ? v.z : v.w; }

// Whose bonds of a size stay closed: thresholds of the lanes, their first bits as planes, lanes for which none opens.
struct Level {
    uint4 plane[PLANES], always;
    u64 threshold[LANES];
};

// What the lanes of a block have.
struct Lanes {
    double beta[2][LANES];
    Level level[FEW];
    u32 wants[MOST_PLANES + 1][WORDS];  // lanes that want a plane of seeds
};

struct When {
    u32 word1;
    HalfSweep time;
    const Key& key;
    __device__ __forceinline__ uint4 draw(u32 group, u32 plane) const {
        return philox<MOST_ROUNDS>(group, word1, time.word2, time.word3 | plane, key);
    }
};

__device__ __forceinline__ Threshold threshold_of(const Bonds& bonds, u32 level, const Lanes& lanes, u32 lane) {
    return exp_threshold(-__dmul_rn(lanes.beta[bonds.terms[level]][lane], bonds.costs[level]));
}

// Returns the first bits of thresholds of a word of lanes as planes, and the lanes for which no bond opens.
__device__ __noinline__ u32 planes_of(const Bonds& bonds, u32 level, const Lanes& lanes, u32 w, u32 (&plane)[PLANES]) {
    u32 always = 0;
    for (u32& bits : plane) bits = 0;
    for (u32 b = 0; b < WIDTH; ++b) {
        const Threshold t = threshold_of(bonds, level, lanes, WIDTH * w + b);
        always |= (u32)t.always << b;
#pragma unroll
        for (int p = 0; p < PLANES; ++p) plane[p] |= (u32)(t.value >> (63 - p) & 1) << b;
    }
    return always;
}

// Sets the lanes that have bond e open; `open` holds those whose ends differ.
__device__ __forceinline__ void open_bond(const Bonds& bonds, u32 e, u32 sample, const Lanes& lanes, const When& when, u32 (&open)[WORDS]) {
    const int k = bonds.level[sample * bonds.level_stride + e];
    const bool is_few = bonds.levels <= FEW;
    const u32 flip = 0u - bonds.negative[sample * bonds.negative_stride + e];
    const Prefix prefix = philox_prefix(bonds.number[e], when.word1, when.time.word2, when.key);
    u32 undecided[WORDS];
#pragma unroll
    for (u32 w = 0; w < WORDS; ++w) {
        u32 plane[PLANES], always = ALL;
        if (k >= 0 && is_few) {
#pragma unroll
            for (int p = 0; p < PLANES; ++p) plane[p] = word_of(lanes.level[k].plane[p], w);
            always = word_of(lanes.level[k].always, w);
        } else if (k >= 0) {
            always = planes_of(bonds, k, lanes, w, plane);
        }
        const u32 there = ~(open[w] ^ flip) & ~always;
        u32 closed = 0, left = there;
#pragma unroll
        for (int call = 0; call < PLANES / 4; ++call) {
            if (!left) break;
            const uint4 random = philox_finish<MOST_ROUNDS>(prefix, when.time.word3 | (4 * call + w), when.key);
#pragma unroll
            for (int q = 0; q < 4; ++q) {
                const u32 threshold = plane[4 * call + q], drawn = word_of(random, q);
                closed |= left & threshold & ~drawn;
                left &= ~(threshold ^ drawn);
            }
        }
        open[w] = there & ~closed;
        undecided[w] = left;
    }
    // Those whose first bits are those of the threshold draw further ones, one after the other.
    while (undecided[0] | undecided[1] | undecided[2] | undecided[3]) {
        const u32 w = undecided[0] ? 0 : undecided[1] ? 1 : undecided[2] ? 2 : 3;
        const u32 bits = undecided[0] ? undecided[0] : undecided[1] ? undecided[1] : undecided[2] ? undecided[2] : undecided[3];
        const u32 bit = bits & (0u - bits), lane = WIDTH * w + __ffs(bits) - 1;
        const uint4 random = philox_finish<MOST_ROUNDS>(prefix, when.time.word3 | (TAIL + lane), when.key);
        const u64 whole = is_few ? lanes.level[k].threshold[lane] : threshold_of(bonds, k, lanes, lane).value;
        const u32 closes = ((u64)random.x << 32 | random.y) < whole << PLANES ? bit : 0;
#pragma unroll
        for (u32 v = 0; v < WORDS; ++v)
            if (v == w) undecided[v] ^= bit, open[v] &= ~closes;
    }
}

// Lays the temperatures of the lanes of a block, 0 of those not in use, whose bonds stay closed, and thresholds of few sizes.
__device__ __forceinline__ void lay_lanes(Lanes& lanes, const Bonds& bonds, const Ladder& ladder, u32 sample, u32 block, u32 replicas) {
    const u32 thread = threadIdx.x;
    for (u32 i = thread; i < 2 * LANES; i += blockDim.x) lanes.beta[i / LANES][i % LANES] = 0;
    __syncthreads();
    const int* const holder = ladder.holder + (size_t)sample * replicas;
    for (u32 c = thread; c < ladder.copies * ladder.temperatures; c += blockDim.x) {
        const u32 r = holder[c], t = c % ladder.temperatures;
        if (r / LANES != block) continue;
        lanes.beta[0][r % LANES] = ladder.beta[t * ladder.terms];
        lanes.beta[1][r % LANES] = ladder.beta[t * ladder.terms + ladder.terms - 1];
    }
    __syncthreads();
    if (bonds.levels > FEW) return;
    for (u32 i = thread; i < LANES * bonds.levels; i += blockDim.x) {
        const u32 k = i / LANES, lane = i % LANES, w = lane / WIDTH;
        Level& level = lanes.level[k];
        const Threshold t = threshold_of(bonds, k, lanes, lane);
        level.threshold[lane] = t.value;
        const u32 always = __ballot_sync(ALL, t.always);
        if (lane % WIDTH == 0) (&level.always.x)[w] = always;
        for (int p = 0; p < PLANES; ++p) {
            const u32 plane = __ballot_sync(ALL, (int)(t.value >> (63 - p) & 1));
            if (lane % WIDTH == 0) (&level.plane[p].x)[w] = plane;
        }
    }
}

// Returns what a replica draws: its site in x, its k in y.
__device__ __forceinline__ uint4 draw_own(u32 replica, u32 sample, const HalfSweep& time, const Key& key) {
    return philox<MOST_ROUNDS>(replica, counter_block(sample, 0), time.word2, time.word3 | OWN, key);
}

// Lays which of the lanes of a block want each plane of seeds.
__device__ __forceinline__ void lay_wants(Lanes& lanes, u32 most, u32 sample, u32 block, const When& when) {
    for (u32 i = threadIdx.x; i < (MOST_PLANES + 1) * LANES; i += blockDim.x) {
        const u32 plane = i / LANES, lane = i % LANES;
        const u32 k = 1 + __umulhi(draw_own(LANES * block + lane, sample, when.time, when.key).y, most);
        const u32 want = __ballot_sync(ALL, k > plane);
        if (lane % WIDTH == 0) lanes.wants[plane][lane / WIDTH] = want;
    }
}

// Sets the lanes with a seed at a site.
__device__ __forceinline__ void sow(u32 site, const Lanes& lanes, const When& when, u32 (&seeds)[WORDS]) {
    for (u32& word : seeds) word = ALL;
    for (u32 plane = 0;; ++plane) {
        const u32* const wants = lanes.wants[plane];
        if (!((seeds[0] & wants[0]) | (seeds[1] & wants[1]) | (seeds[2] & wants[2]) | (seeds[3] & wants[3]))) break;
        const uint4 x = when.draw(site, SEEDS + plane);
#pragma unroll
        for (u32 w = 0; w < WORDS; ++w) seeds[w] &= word_of(x, w) | ~wants[w];
    }
}

// Fills `opened` and, but for Wolff moves, `chosen`: block (part of the columns, block of replicas, sample), a warp a column.
__global__ __launch_bounds__(THREADS) void choose(Batch batch, Bonds bonds, Sites sites, Ladder ladder, u64 time, Key key) {
    __shared__ Lanes lanes;
    const u32 sample = blockIdx.z, block = blockIdx.y, lane = threadIdx.x % WIDTH, warps = blockDim.x / WIDTH;
    const size_t row = (size_t)sample * batch.blocks + block;
    const uint4* const state = batch.state + row * sites.count;
    const When when{counter_block(batch.first_sample + sample, block), counter_half_sweep(time, STREAM_CLUSTERS), key};
    const auto spins = [&](u32 place) { return place < sites.count ? state[place] : make_uint4(ALL, ALL, ALL, ALL); };
    lay_lanes(lanes, bonds, ladder, sample, block, batch.replicas);
    if (batch.move == SEEDED) lay_wants(lanes, sites.most, batch.first_sample + sample, block, when);
    __syncthreads();
    const u32 columns = bonds.columns + (batch.move == WOLFF ? 0 : sites.columns);
    for (u32 c = blockIdx.x * warps + threadIdx.x / WIDTH; c < columns; c += gridDim.x * warps) {
        const bool is_bond = c < bonds.columns;
        const u32 column = is_bond ? c : c - bonds.columns, i = column * WIDTH + lane;
        u32 words[WORDS] = {};
        if (is_bond && i < bonds.count) {
            const uint2 at = bonds.places[i];
            const uint4 one = spins(at.x), other = spins(at.y);
            words[0] = one.x ^ other.x, words[1] = one.y ^ other.y, words[2] = one.z ^ other.z, words[3] = one.w ^ other.w;
            open_bond(bonds, i, sample, lanes, when, words);
        } else if (!is_bond && i < sites.count && batch.move == SEEDED) {
            sow(sites.site[i], lanes, when, words);
        } else if (!is_bond && i < sites.count) {
            const uint4 coins = when.draw(sites.site[i], COIN);
            words[0] = coins.x, words[1] = coins.y, words[2] = coins.z, words[3] = coins.w;
        }
        u32* const to = (is_bond ? batch.opened + row * bonds.columns * LANES : batch.chosen + row * sites.columns * LANES) + column * LANES;
        __syncwarp();
#pragma unroll
        for (u32 w = 0; w < WORDS; ++w) to[WIDTH * w + lane] = transpose_across(words[w]);
    }
}

// Flips sites by what `chosen` has in the end: block (part of the columns, block of replicas, sample), a warp a column.
__global__ __launch_bounds__(THREADS) void flip_sites(Batch batch, Sites sites) {
    const u32 sample = blockIdx.z, block = blockIdx.y, lane = threadIdx.x % WIDTH, warps = blockDim.x / WIDTH;
    const size_t row = (size_t)sample * batch.blocks + block;
    const u32 left = min(LANES, batch.replicas - LANES * block);
    for (u32 column = blockIdx.x * warps + threadIdx.x / WIDTH; column < sites.columns; column += gridDim.x * warps) {
        const u32* const from = batch.chosen + (row * sites.columns + column) * LANES;
        u32 flips[WORDS];
#pragma unroll
        for (u32 w = 0; w < WORDS; ++w) flips[w] = transpose_across(WIDTH * w + lane < left ? from[WIDTH * w + lane] : 0);
        const u32 label = column * WIDTH + lane;
        if (label >= sites.count || !(flips[0] | flips[1] | flips[2] | flips[3])) continue;
        uint4& spins = batch.state[row * sites.count + sites.place[label]];
        const uint4 old = spins;
        spins = make_uint4(old.x ^ flips[0], old.y ^ flips[1], old.z ^ flips[2], old.w ^ flips[3]);
    }
}

// Returns the bonds, of those open in a column, that hang their smaller label on the larger one at once: the first one of each label.
__device__ __forceinline__ u32 first_of(u32 open, u32 starts) {
    const u32 there = open & (0u - (starts & (0u - starts)));  // a label that has begun in an earlier column may hang already
    const u32 sum = (there | ~starts) + there, above = there | (~starts & (sum ^ there ^ (there | ~starts)));
    return there & ~(above << 1 & ~starts);
}

// The open bonds of a replica, word by word of the calling thread; the next word is on its way.
struct Words {
    const u32 *opened, *starts;
    u32 columns, column, open, start;

    __device__ __forceinline__ Words(const u32* opened, const Bonds& bonds)
        : opened(opened), starts(bonds.starts), columns(bonds.columns), column(threadIdx.x % WIDTH) { fetch(); }
    __device__ __forceinline__ void fetch() {
        if (column < columns) open = __ldg(opened + (size_t)column * LANES), start = __ldg(starts + column);
    }
    __device__ __forceinline__ bool is_left() const { return column < columns; }
    __device__ __forceinline__ void next() { column += WIDTH, fetch(); }
};

// Finds the clusters of a replica, a warp each: block (replicas of all samples). parent[label] is a larger label of the same cluster, or
// itself of a root. The threads of a warp go on together, so that nobody writes between another's reading and writing.
template <bool IN_SHARED>
__global__ __launch_bounds__(MOST_WARPS * WIDTH) void join_in_shared(Batch batch, Bonds bonds, Sites sites, u32 samples, u64 time, Key key) {
    extern __shared__ u32 in_shared[];
    const u32 lane = threadIdx.x % WIDTH, warp = threadIdx.x / WIDTH, warps = blockDim.x / WIDTH, columns = sites.columns;
    const u32* pairs = bonds.pairs;
    u32* room = in_shared;
    if (IN_SHARED) {
        for (u32 i = threadIdx.x; i < bonds.columns * WIDTH; i += blockDim.x) in_shared[i] = bonds.pairs[i];
        __syncthreads();
        pairs = in_shared, room += bonds.columns * WIDTH;
    }
    const u32 unit = blockIdx.x * warps + warp;
    if (unit >= samples * batch.replicas) return;
    const u32 sample = unit / batch.replicas, replica = unit % batch.replicas;
    const size_t row = (size_t)sample * batch.blocks + replica / LANES;
    const u32* const opened = batch.opened + row * bonds.columns * LANES + replica % LANES;
    u32* const chosen = batch.chosen + row * columns * LANES + replica % LANES;
    u32* const marks = room + warp * (17 * columns + 2);  // which leaders flip, and a word for the ghost
    u32* const twos = marks + columns + 1;                // parents, two in a word
    u16* const parent = (u16*)twos;
    for (u32 i = lane; i <= 16 * columns; i += WIDTH) twos[i] = 2 * i | (2 * i + 1) << 16;
    for (u32 i = lane; i <= columns; i += WIDTH)
        marks[i] = batch.move == SWENDSEN_WANG && i < columns ? chosen[(size_t)i * LANES] : 0;
    __syncwarp();

    // The first bond of each label hangs it at once.
    for (Words words(opened, bonds); words.is_left();) {
        const u32 column = words.column;
        u32 first = first_of(words.open, words.start);
        words.next();
        for (; first; first &= first - 1) {
            const u32 pair = pairs[column * WIDTH + __ffs(first) - 1];
            parent[pair & 0xffff] = pair >> 16;
        }
    }
    __syncwarp();

    // All others join trees (M. M. A. Patwary, J. Blair, F. Manne, SEA 2010, Rem's algorithm with splicing): the smaller of two labels
    // hangs on the larger one, which is done where it was a root; else its old parent goes on.
    Words words(opened, bonds);
    u32 one = 0, other = 0, rest = 0, column = 0;
    for (;;) {
        if (one == other) {
            while (!rest && words.is_left()) {
                column = words.column;
                rest = words.open & ~first_of(words.open, words.start);
                words.next();
            }
            if (rest) {
                const u32 pair = pairs[column * WIDTH + __ffs(rest) - 1];
                one = pair & 0xffff, other = pair >> 16, rest &= rest - 1;
            }
        }
        if (!__any_sync(ALL, one != other)) break;
        const u32 small = min(one, other), large = max(one, other), above = parent[small];
        __syncwarp();
        if (small != large && above < large) parent[small] = large;
        __syncwarp();
        // A root has got a parent now, of whichever thread wrote last: it is read again.
        if (small != large) one = above, other = large;
    }

    // Roots, from the largest labels down, whose parents are done but for those in the same column.
    const auto root_of = [&](u32 label) {
        u32 root = parent[label], above = parent[root];
        while (__any_sync(ALL, above != root)) root = above, above = parent[root];
        return root;
    };
    const auto is_marked = [&](u32 label) { return marks[label / WIDTH] >> label % WIDTH & 1; };
    if (batch.move != SWENDSEN_WANG) {
        for (u32 c = columns; c-- > 0;) {
            const u32 label = c * WIDTH + lane, root = root_of(label);
            parent[label] = root;
            __syncwarp();
            if (batch.move == SEEDED && chosen[(size_t)c * LANES] >> lane & 1) atomicOr(marks + root / WIDTH, 1u << root % WIDTH);
        }
        __syncwarp();
        if (batch.move == WOLFF && lane == 0) {
            const u32 own = draw_own(replica, batch.first_sample + sample, counter_half_sweep(time, STREAM_CLUSTERS), key).x;
            const u32 root = parent[sites.label[__umulhi(own, sites.count)]];
            marks[root / WIDTH] = 1u << root % WIDTH;
        }
        __syncwarp();
    }
    u32 kept = 0;
    for (u32 c = columns; c-- > 0;) {
        const u32 label = c * WIDTH + lane, root = root_of(label);
        __syncwarp();
        parent[label] = root;
        __syncwarp();
        const u32 flips = __ballot_sync(ALL, root != sites.count && is_marked(root));
        if (lane == c % WIDTH) kept = flips;
        if (c % WIDTH == 0 && c + lane < columns) chosen[(size_t)(c + lane) * LANES] = kept;
    }
}

// Returns the root of a label; labels on the way come nearer to it. Other threads join trees meanwhile.
__device__ __forceinline__ u32 root_of(u32* parent, u32 label) {
    for (u32 above = __ldcg(parent + label); above != label;) {
        const u32 next = __ldcg(parent + above);
        if (next == above) return above;
        parent[label] = next;
        label = next;
        above = __ldcg(parent + label);
    }
    return label;
}

// Does so for a replica of too many sites, block (replica, sample); parents and marks of roots lie in memory.
__global__ __launch_bounds__(JOINING) void join_in_memory(Batch batch, Bonds bonds, Sites sites, u32* parents, u8* marks, u32 first, u64 time, Key key) {
    const u32 sample = first + blockIdx.y, replica = blockIdx.x, lane = threadIdx.x % WIDTH;
    const size_t row = (size_t)sample * batch.blocks + replica / LANES, mine = (size_t)blockIdx.y * batch.replicas + replica;
    u32* const parent = parents + mine * (sites.count + 1);
    u8* const mark = marks + mine * (sites.count + 1);
    const u32* const opened = batch.opened + row * bonds.columns * LANES + replica % LANES;
    u32* const chosen = batch.chosen + row * sites.columns * LANES + replica % LANES;
    for (u32 label = threadIdx.x; label <= sites.count; label += blockDim.x) parent[label] = label, mark[label] = 0;
    __syncthreads();
    for (u32 e = threadIdx.x; e < bonds.count; e += blockDim.x) {
        if (!(opened[(size_t)(e / WIDTH) * LANES] >> e % WIDTH & 1)) continue;
        u32 one = root_of(parent, bonds.labels[e].x), other = root_of(parent, bonds.labels[e].y);
        while (one != other) {  // the smaller root hangs on the larger one, unless it has been hung elsewhere meanwhile
            const u32 low = min(one, other), high = max(one, other), before = atomicCAS(parent + low, low, high);
            if (before == low) break;
            one = root_of(parent, before), other = root_of(parent, high);
        }
    }
    __syncthreads();
    if (batch.move == WOLFF && threadIdx.x == 0) {
        const u32 own = draw_own(replica, batch.first_sample + sample, counter_half_sweep(time, STREAM_CLUSTERS), key).x;
        mark[root_of(parent, sites.label[__umulhi(own, sites.count)])] = 1;
    }
    for (u32 label = threadIdx.x; label < sites.count && batch.move != WOLFF; label += blockDim.x) {
        const bool is_chosen = chosen[(size_t)(label / WIDTH) * LANES] >> label % WIDTH & 1;
        if (is_chosen && (batch.move == SEEDED || __ldcg(parent + label) == label)) mark[root_of(parent, label)] = 1;
    }
    __syncthreads();
    for (u32 label = threadIdx.x; label < sites.columns * WIDTH; label += blockDim.x) {
        const u32 root = label < sites.count ? root_of(parent, label) : sites.count;
        const u32 flips = __ballot_sync(ALL, root != sites.count && __ldcg(mark + root));
        if (lane == 0) chosen[(size_t)(label / WIDTH) * LANES] = flips;
    }
}
