// Open bonds of Fortuin-Kasteleyn moves, 128 replicas a thread, and the flips of sites whose clusters have been found.
#include "bits/transpose.cuh"
#include "clusters/fortuin_kasteleyn.cuh"
#include "random/acceptance.cuh"

constexpr int FEW = HOST(engine.moves.fortuin_kasteleyn.cuda.FEW_LEVELS), PLANES = HOST(engine.moves.fortuin_kasteleyn.clusters.PLANES);
constexpr u32 TAIL = HOST(engine.moves.fortuin_kasteleyn.clusters.TAIL), COIN = HOST(engine.moves.fortuin_kasteleyn.move.COIN);
constexpr u32 SEEDS = HOST(engine.moves.fortuin_kasteleyn.move.SEEDS), MOST_PLANES = 32;
static_assert(PLANES == 8, "two calls hold the first planes");

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
template <bool IS_FEW>
__device__ __forceinline__ void open_bond(const Bonds& bonds, u32 e, u32 sample, const Lanes& lanes, const When& when, u32 (&open)[WORDS]) {
    const int k = bonds.level[sample * bonds.level_stride + e];
    if (k < 0) {
        for (u32& word : open) word = 0;
        return;
    }
    const u32 flip = 0u - bonds.negative[sample * bonds.negative_stride + e];
    const Prefix prefix = philox_prefix(bonds.number[e], when.word1, when.time.word2, when.key);
    u32 undecided[WORDS];
#pragma unroll
    for (u32 w = 0; w < WORDS; ++w) {
        u32 plane[PLANES], always;
        if constexpr (IS_FEW) {
#pragma unroll
            for (int p = 0; p < PLANES; ++p) plane[p] = word_of(lanes.level[k].plane[p], w);
            always = word_of(lanes.level[k].always, w);
        } else {
            always = planes_of(bonds, k, lanes, w, plane);
        }
        const u32 there = ~(open[w] ^ flip) & ~always;
        u32 closed = 0, left = there;
#pragma unroll
        for (int call = PLANES / 4 - 1; call >= 0; --call) {  // from the last bits to the first, which count most
            const uint4 random = philox_finish<MOST_ROUNDS>(prefix, when.time.word3 | (4 * call + w), when.key);
#pragma unroll
            for (int q = 3; q >= 0; --q) {
                const u32 threshold = plane[4 * call + q], drawn = word_of(random, q);
                closed = (threshold & ~drawn) | (closed & ~(threshold ^ drawn));
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
        const u64 whole = IS_FEW ? lanes.level[k].threshold[lane] : threshold_of(bonds, k, lanes, lane).value;
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
    for (u32 i = thread; bonds.levels <= FEW && i < LANES * bonds.levels; i += blockDim.x) {
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

// Fills `opened` and, but for Wolff moves, `chosen`, of bonds of few sizes or of any, turned or not: block (part of the columns, block of
// replicas, sample), a warp a column. A block turns a group of columns at a time, of which a replica gets the words that lie side by side.
template <bool IS_FEW, bool ARE_TURNED>
__global__ __launch_bounds__(THREADS, 5) void choose(Batch batch, Bonds bonds, Sites sites, Ladder ladder, u64 time, Key key) {
    constexpr u32 STRIDE = LANES + WORDS;  // of columns in shared memory: two threads that write words of one replica read other banks
    __shared__ Lanes lanes;
    __shared__ u32 turned[ARE_TURNED ? 2 : 1][ARE_TURNED ? GROUP * STRIDE : 1];  // by turns, so that threads wait for each other once
    const u32 sample = blockIdx.z, block = blockIdx.y, lane = threadIdx.x % WIDTH, warp = threadIdx.x / WIDTH;
    const size_t row = (size_t)sample * batch.blocks + block;
    const uint4* const state = batch.state + row * sites.count;
    const When when{counter_block(batch.first_sample + sample, block), counter_half_sweep(time, STREAM_CLUSTERS), key};
    const auto spins = [&](u32 place) { return place < sites.count ? state[place] : make_uint4(ALL, ALL, ALL, ALL); };
    lay_lanes(lanes, bonds, ladder, sample, block, batch.replicas);
    if (batch.move == SEEDED) lay_wants(lanes, sites.most, batch.first_sample + sample, block, when);
    __syncthreads();
    const u32 columns = bonds.columns + (batch.move == WOLFF ? 0 : sites.columns);
    bool is_second = false;
    for (u32 first = blockIdx.x * GROUP; first < columns; first += gridDim.x * GROUP, is_second = !is_second) {
        const bool is_bond = first < bonds.columns;
        const u32 begin = is_bond ? first : first - bonds.columns, i = (begin + warp) * WIDTH + lane, site = is_bond ? 0 : sites.site[i];
        u32 words[WORDS] = {};
        if (is_bond) {
            const uint2 at = bonds.places[i];
            const uint4 one = spins(at.x), other = spins(at.y);
            words[0] = one.x ^ other.x, words[1] = one.y ^ other.y, words[2] = one.z ^ other.z, words[3] = one.w ^ other.w;
            open_bond<IS_FEW>(bonds, i, sample, lanes, when, words);
        } else if (site < sites.count && batch.move == SEEDED) {
            sow(site, lanes, when, words);
        } else if (site < sites.count) {
            const uint4 coins = when.draw(site, COIN);
            words[0] = coins.x, words[1] = coins.y, words[2] = coins.z, words[3] = coins.w;
        }
        const u32 all = is_bond ? bonds.columns : sites.columns;
        u32* const to = (is_bond ? batch.opened : batch.chosen) + row * all * LANES;
        __syncwarp();
        if constexpr (ARE_TURNED) {
            u32* const group = turned[is_second];
#pragma unroll
            for (u32 w = 0; w < WORDS; ++w) group[warp * STRIDE + WIDTH * w + lane] = transpose_across(words[w]);
            __syncthreads();
            const u32 replica = threadIdx.x / 2, part = threadIdx.x % 2 * 4;
            const u32* const from = group + part * STRIDE + replica;
            *(uint4*)(to + replica * all + begin + part) = make_uint4(from[0], from[STRIDE], from[2 * STRIDE], from[3 * STRIDE]);
        } else {
            ((uint4*)to)[i] = make_uint4(words[0], words[1], words[2], words[3]);
        }
    }
}

// Flips sites by what `chosen`, turned, has in the end: block (part of the columns, block of replicas, sample), a warp four columns.
__global__ __launch_bounds__(THREADS) void flip_sites(Batch batch, Sites sites) {
    const u32 sample = blockIdx.z, block = blockIdx.y, lane = threadIdx.x % WIDTH, warps = blockDim.x / WIDTH;
    const size_t row = (size_t)sample * batch.blocks + block;
    const u32 left = min(LANES, batch.replicas - LANES * block);
    const u32* const chosen = batch.chosen + row * sites.columns * LANES;
    for (u32 begin = (blockIdx.x * warps + threadIdx.x / WIDTH) * 4; begin < sites.columns; begin += gridDim.x * warps * 4) {
        uint4 of_word[WORDS];
#pragma unroll
        for (u32 w = 0; w < WORDS; ++w) {
            const u32 replica = WIDTH * w + lane;
            of_word[w] = replica < left ? *(const uint4*)(chosen + replica * sites.columns + begin) : make_uint4(0, 0, 0, 0);
        }
#pragma unroll
        for (u32 k = 0; k < 4; ++k) {
            u32 flips[WORDS];
#pragma unroll
            for (u32 w = 0; w < WORDS; ++w) flips[w] = transpose_across(word_of(of_word[w], k));
            const u32 place = sites.place[(begin + k) * WIDTH + lane];
            if (place >= sites.count || !(flips[0] | flips[1] | flips[2] | flips[3])) continue;
            uint4& spins = batch.state[row * sites.count + place];
            const uint4 old = spins;
            spins = make_uint4(old.x ^ flips[0], old.y ^ flips[1], old.z ^ flips[2], old.w ^ flips[3]);
        }
    }
}
