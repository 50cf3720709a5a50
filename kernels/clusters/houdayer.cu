// Houdayer moves of replica-packed words: spinsim/engine/moves/houdayer.py says which pairs, seeds and clusters there are.
//
//   state[sample][block][place][4]    spins: bit b of word w is replica 128 block + 32 w + b
//   turned[sample][replica][column]   the same squares of 32 x 32 bits on their sides: bit b is position 32 column + b
//   sown[sample][pair][column]        seeds, likewise
//
// 1. pair_copies draws pairs. 2. turn_replicas fills `turned`, so that the XOR of two of its words is the overlap of a pair at 32
// positions. 3. Clusters grow; what is flipped is left in `turned`, in the place of both replicas. On lattices whose positions
// stand in rows (houdayer_cuda.py) sow draws seeds, a warp has a pair, and a word is 32 sites (move_in_rows); on other graphs a block has 32
// pairs, a thread has sites, and a word is the pairs (move_clusters). 4. flip_replicas turns the squares back and flips the spins.
#include "bits/transpose.cuh"
#include "random/philox.cuh"

constexpr u32 STREAM_HOUDAYER = HOST(rng.Stream.HOUDAYER), ORDER = HOST(engine.moves.houdayer.ORDER);
constexpr int THREADS = HOST(engine.moves.houdayer_cuda.THREADS), COLUMNS = HOST(engine.moves.houdayer_cuda.COLUMNS);
constexpr u32 NOBODY = HOST(engine.moves.houdayer_cuda.NOBODY), SHIFT_BITS = HOST(engine.moves.houdayer_cuda.SHIFT_BITS);
constexpr int MOST_PAIRS = HOST(engine.moves.houdayer_cuda.MOST_PAIRS);  // of a block whose warps have one each
constexpr u32 LANES = 32, BLOCK = 128, MOST_PLANES = 32, PLANES_A_CALL = 4;

// Holds the pairs of all samples, [sample][pair], and those of replicas, [sample][replica].
struct Pairs {
    u32 *one, *other, *halvings, *of_replica;
    u64* keys;
    u32 count, replicas;
};
CHECK_STRUCT(Pairs, engine.moves.houdayer_cuda.PAIRS);

// Holds the spins both ways. place_of and site_at are [position]: NOBODY, where a column has no site. Rows of columns are
// `stride` apart.
struct Squares {
    uint4* state;
    u32* turned;
    const u32 *place_of, *site_at;
    u32 sites, columns, stride, blocks, in_field;

    __device__ __forceinline__ u32* of(u32 sample, u32 replica) const {
        return turned + ((size_t)sample * blocks * BLOCK + replica) * stride;
    }
};
CHECK_STRUCT(Squares, engine.moves.houdayer_cuda.SQUARES);

// Holds the graph over which clusters grow, its sites in the order of the words; a stride is 0 where all samples share it.
struct Growth {
    const u32* near;               // [row][slot][place]: places to which there are bonds, degree[row][place] of them
    const unsigned short* degree;
    const u32* colour_start;       // places of colour c are colour_start[c] to before colour_start[c + 1]
    size_t near_stride, degree_stride;
    u32 colours;
};
CHECK_STRUCT(Growth, engine.moves.houdayer_cuda.GROWTH);

// Holds a lattice in rows: spinsim/engine/moves/houdayer_cuda.py says what these are.
struct Rows {
    const uint4* near;                // [word], four slots each
    const uint2* in_row;              // [word]
    const u32 *allowed, *along;       // [row][slot][word], [row][word]; the row of a sample or of all
    size_t allowed_stride, along_stride;
    u32 slots, words_a_row, last, low, masked;
};
CHECK_STRUCT(Rows, engine.moves.houdayer_cuda.ROWS);

// Pairs the copies of every temperature at random, a block a sample. holder[sample][copy][temperature] is a replica.
__global__ __launch_bounds__(THREADS) void pair_copies(
    const int* holder, u32 copies, u32 temperatures, u32 most, Pairs pairs, u32 first_sample, u64 time, Key key) {
    const u32 sample = blockIdx.x, replicas = pairs.replicas;
    const HalfSweep when = counter_half_sweep(time, STREAM_HOUDAYER);
    const int* const mine = holder + (size_t)sample * replicas;
    u64* const keys = pairs.keys + (size_t)sample * replicas;
    u32* const of_replica = pairs.of_replica + (size_t)sample * replicas;
    const auto drawn = [&](u32 replica) {
        return philox<MOST_ROUNDS>(replica, counter_block(first_sample + sample, 0), when.word2, when.word3 | ORDER, key);
    };
    for (u32 r = threadIdx.x; r < replicas; r += blockDim.x) {
        const uint4 x = drawn(r);
        keys[r] = (u64)x.x << 32 | x.y;
        of_replica[r] = NOBODY;
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < replicas; i += blockDim.x) {
        const u32 copy = i / temperatures, t = i % temperatures, r = mine[i];
        u32 rank = 0;
        for (u32 c = 0; c < copies; ++c) {
            const u64 others = keys[mine[c * temperatures + t]];
            rank += others < keys[r] || (others == keys[r] && c < copy);
        }
        if (rank / 2 >= copies / 2) continue;  // the odd one
        const u32 pair = t * (copies / 2) + rank / 2;
        const size_t at = (size_t)sample * pairs.count + pair;
        of_replica[r] = pair;
        if (rank % 2) {
            pairs.other[at] = r;
        } else {
            pairs.one[at] = r;
            pairs.halvings[at] = 1 + __umulhi(drawn(r).z, most);
        }
    }
}

// Writes or reads COLUMNS columns of so many rows by a block of as many warps, whole sectors at a time; tile[row][column].
template <bool WRITES, int ROWS>
__device__ __forceinline__ void copy_tile(u32* rows, u32 stride, u32 present, u32 (&tile)[ROWS][COLUMNS + 1]) {
    if (WRITES) __syncthreads();
    for (u32 i = threadIdx.x; i < ROWS * COLUMNS; i += COLUMNS * LANES) {
        const u32 row = i / COLUMNS, column = i % COLUMNS;
        if (row >= present) break;
        u32& there = rows[(size_t)row * stride + column];
        if (WRITES) there = tile[row][column]; else tile[row][column] = there;
    }
    if (!WRITES) __syncthreads();
}

// Fills `turned`: block (columns, block of replicas, sample), a warp a column.
__global__ __launch_bounds__(COLUMNS * LANES) void turn_replicas(Squares squares) {
    __shared__ u32 tile[BLOCK][COLUMNS + 1];
    const u32 lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, column = blockIdx.x * COLUMNS + warp, sample = blockIdx.z;
    const u32 place = column < squares.columns ? squares.place_of[column * LANES + lane] : NOBODY;
    uint4 spins = {};
    if (place != NOBODY) spins = squares.state[((size_t)sample * squares.blocks + blockIdx.y) * squares.sites + place];
    tile[lane][warp] = transpose_across(spins.x), tile[lane + 32][warp] = transpose_across(spins.y);
    tile[lane + 64][warp] = transpose_across(spins.z), tile[lane + 96][warp] = transpose_across(spins.w);
    copy_tile<true>(squares.of(sample, blockIdx.y * BLOCK) + blockIdx.x * COLUMNS, squares.stride, BLOCK, tile);
}

// Flips the spins that `turned` has for replicas of pairs, likewise.
__global__ __launch_bounds__(COLUMNS * LANES) void flip_replicas(Squares squares, Pairs pairs) {
    __shared__ u32 tile[BLOCK][COLUMNS + 1];
    const u32 lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, column = blockIdx.x * COLUMNS + warp, sample = blockIdx.z;
    copy_tile<false>(squares.of(sample, blockIdx.y * BLOCK) + blockIdx.x * COLUMNS, squares.stride, BLOCK, tile);
    u32 flips[4];
#pragma unroll
    for (u32 w = 0; w < 4; ++w) {
        const u32 at = w * LANES + lane, replica = blockIdx.y * BLOCK + at;
        const bool is_paired = replica < pairs.replicas && pairs.of_replica[(size_t)sample * pairs.replicas + replica] != NOBODY;
        flips[w] = transpose_across(is_paired ? tile[at][warp] : 0);
    }
    const u32 place = column < squares.columns ? squares.place_of[column * LANES + lane] : NOBODY;
    if (place == NOBODY || !(flips[0] | flips[1] | flips[2] | flips[3])) return;
    uint4& spins = squares.state[((size_t)sample * squares.blocks + blockIdx.y) * squares.sites + place];
    const uint4 old = spins;
    spins = make_uint4(old.x ^ flips[0], old.y ^ flips[1], old.z ^ flips[2], old.w ^ flips[3]);
}

// Seeds of a word of pairs of a sample, in all of a block: which pairs want a plane; none wants the last ones.
struct Seeds {
    u32* wants;
    HalfSweep when;
    u32 block, there;

    __device__ __forceinline__ Seeds(u32 (&shared)[MOST_PLANES + PLANES_A_CALL], const Pairs& pairs, u32 sample, u32 word,
                                     u32 first_sample, u64 time)
        : wants(shared), when(counter_half_sweep(time, STREAM_HOUDAYER)), block(counter_block(first_sample + sample, word)) {
        const u32 pair = word * LANES + threadIdx.x % LANES;
        const u32 halvings = pair < pairs.count ? pairs.halvings[(size_t)sample * pairs.count + pair] : 0;
        there = __ballot_sync(~0u, halvings);
        for (u32 plane = threadIdx.x / LANES; plane < MOST_PLANES + PLANES_A_CALL; plane += blockDim.x / LANES) {
            const u32 want = __ballot_sync(~0u, halvings > plane);
            if (threadIdx.x % LANES == 0) wants[plane] = want;
        }
        __syncthreads();
    }
    // Planes are drawn, four a call, until no pair wants more or none has a seed left at the site.
    __device__ __forceinline__ u32 at(u32 site, const Key& key) const {
        if (site == NOBODY) return 0;
        const Prefix prefix = philox_prefix(site, block, when.word2, key);
        u32 seeds = there;
        for (u32 plane = 0; seeds & wants[plane]; plane += PLANES_A_CALL) {
            const uint4 x = philox_finish<MOST_ROUNDS>(prefix, when.word3 | plane / PLANES_A_CALL, key);
            seeds &= (x.x | ~wants[plane]) & (x.y | ~wants[plane + 1]) & (x.z | ~wants[plane + 2]) & (x.w | ~wants[plane + 3]);
        }
        return seeds;
    }
};

// Fills `sown`, with room for whole words of pairs: block (columns, word of pairs, sample), a warp a column.
__global__ __launch_bounds__(COLUMNS * LANES) void sow(Squares squares, Pairs pairs, u32* sown, u32 first_sample, u64 time, Key key) {
    __shared__ u32 tile[LANES][COLUMNS + 1], wants[MOST_PLANES + PLANES_A_CALL];
    const u32 lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, column = blockIdx.x * COLUMNS + warp, sample = blockIdx.z;
    const Seeds seeds(wants, pairs, sample, blockIdx.y, first_sample, time);
    const u32 site = column < squares.columns ? squares.site_at[column * LANES + lane] : NOBODY;
    tile[lane][warp] = transpose_across(seeds.at(site, key));
    u32* const to = sown + ((size_t)sample * gridDim.y + blockIdx.y) * LANES * squares.stride + blockIdx.x * COLUMNS;
    copy_tile<true>(to, squares.stride, LANES, tile);
}

// A neighbour by its code: 4 times a word's number, and by how many bits its positions lie further.
__device__ __forceinline__ u32 word_at(const u32* words, u32 code) {
    return *(const u32*)((const char*)words + (code >> SHIFT_BITS));
}
__device__ __forceinline__ u32 turned_by(u32 word, u32 code) { return __funnelshift_r(word, word, code); }

// Lets `reached` spread to higher bits, to each that is joined to the one before: the carries of a sum.
__device__ __forceinline__ u32 spread(u32 reached, u32 joined) {
    const u32 a = reached | joined;
    return reached | (joined & ((a + reached) ^ a ^ reached));
}

// Positions of a word that have the overlap of a neighbour to which they have a bond.
struct Open {
    u32 across[4];     // by slot
    u32 along, right;  // the position before in the row; the word before, at the first position of the word behind
    u32 back;          // the position behind, mirrored
};

__device__ __forceinline__ Open open_of(const Rows& rows, u32 columns, u32 sample, const u32* overlap, u32 w) {
    const u32* const along = rows.along + sample * rows.along_stride;
    const u32 own = overlap[w], low = rows.low;
    const uint4 near = rows.near[w];
    const u32 codes[4] = {near.x, near.y, near.z, near.w};
    Open open;
#pragma unroll
    for (u32 slot = 0; slot < 4; ++slot) {
        open.across[slot] = ~(turned_by(word_at(overlap, codes[slot]), codes[slot]) ^ own);
        if (rows.masked && slot < rows.slots) open.across[slot] &= rows.allowed[sample * rows.allowed_stride + slot * columns + w];
    }
    const uint2 in_row = rows.in_row[w];
    const u32 before = word_at(overlap, in_row.x) >> in_row.x % LANES, behind = word_at(overlap, in_row.y);
    open.along = along[w] & ~(own ^ ((own << 1 & ~low) | (before & low)));
    open.right = along[(in_row.y >> SHIFT_BITS) / 4] & low & ~(behind ^ own >> in_row.y % LANES);
    open.back = __brev(open.along & ~low) << 1;
    return open;
}

// Returns what of a word is reached from its neighbours and within its row.
__device__ __forceinline__ u32 grown(const Rows& rows, const Open& open, const u32* words, u32 w, u32 reached) {
    const uint4 near = __ldg(rows.near + w);
    reached |= turned_by(word_at(words, near.x), near.x) & open.across[0];
    reached |= turned_by(word_at(words, near.y), near.y) & open.across[1];
    if (rows.slots > 2) {
        reached |= turned_by(word_at(words, near.z), near.z) & open.across[2];
        reached |= turned_by(word_at(words, near.w), near.w) & open.across[3];
    }
    const u32 first = open.along & rows.low;
    if (rows.words_a_row > 1) {
        const uint2 in_row = __ldg(rows.in_row + w);
        reached |= word_at(words, in_row.x) >> in_row.x % LANES & first;
        reached |= (word_at(words, in_row.y) & open.right) << in_row.y % LANES;
    } else {
        reached |= reached >> rows.last & first;
        reached |= (reached & first) << rows.last;
    }
    reached = spread(reached, open.along & ~rows.low);
    return __brev(spread(__brev(reached), open.back));
}

// Moves the clusters of pairs, a warp a pair: block (pairs, sample). Lane l has every 32nd word from l on, in registers if there
// are no more than WORDS; neighbours are read from shared memory. Words are visited forward and backward in turn until nothing changes.
template <int WORDS>
__global__ __launch_bounds__(MOST_PAIRS * LANES) void move_in_rows(Squares squares, Rows rows, Pairs pairs, const u32* sown) {
    extern __shared__ u32 in_shared[];
    const u32 lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, sample = blockIdx.y, columns = squares.columns;
    const u32 pair = blockIdx.x * (blockDim.x / LANES) + warp, groups = (columns + LANES - 1) / LANES;
    if (pair >= pairs.count) return;
    const size_t at = (size_t)sample * pairs.count + pair;
    u32 *const one = squares.of(sample, pairs.one[at]), *const other = squares.of(sample, pairs.other[at]);
    sown += ((size_t)sample * ((pairs.count + LANES - 1) / LANES) * LANES + pair) * squares.stride;
    u32 *const overlap = in_shared + (size_t)warp * 2 * columns, *const words = overlap + columns;
    for (u32 w = lane; w < columns; w += LANES) {
        const u32 differ = one[w] ^ other[w];
        overlap[w] = differ, words[w] = squares.in_field ? sown[w] & differ : sown[w];
    }
    __syncwarp();
    if constexpr (WORDS > 0) {
        Open open[WORDS];
        u32 reached[WORDS];
#pragma unroll
        for (int i = 0; i < WORDS; ++i) {
            const u32 w = i * LANES + lane;
            if (w < columns) open[i] = open_of(rows, columns, sample, overlap, w), reached[i] = words[w];
        }
        u32 changed;
        do {
            changed = 0;
#pragma unroll
            for (int n = 0; n < max(1, 2 * WORDS - 2); ++n) {
                const int i = n < WORDS ? n : 2 * WORDS - 2 - n;
                const u32 w = i * LANES + lane;
                u32 now = 0;
                if (w < columns) now = grown(rows, open[i], words, w, reached[i]);
                __syncwarp();
                if (w < columns && now != reached[i]) words[w] = reached[i] = now, changed = 1;
                __syncwarp();
            }
        } while (__any_sync(~0u, changed));
    } else {
        bool forward = true;
        for (u32 changed = 1; __any_sync(~0u, changed); forward = !forward) {
            changed = 0;
            for (u32 n = 0; n < groups; ++n) {
                const u32 w = (forward ? n : groups - 1 - n) * LANES + lane;
                u32 now = 0, before = 0;
                if (w < columns) before = words[w], now = grown(rows, open_of(rows, columns, sample, overlap, w), words, w, before);
                __syncwarp();
                if (now != before) words[w] = now, changed = 1;
                __syncwarp();
            }
        }
    }
    for (u32 w = lane; w < columns; w += LANES) one[w] = other[w] = words[w];
}

// Moves the clusters of 32 pairs of a sample: block (word of pairs, sample). Words of sites lie in shared memory if they fit,
// else in scratch. Sites of one colour have no bonds between them, so that a colour reads what no thread writes.
template <bool SHARED>
__global__ __launch_bounds__(THREADS) void move_clusters(Squares squares, Growth growth, Pairs pairs, u32* scratch, u32 first_sample,
                                                         u64 time, Key key) {
    extern __shared__ u32 in_shared[];
    __shared__ u32 wants[MOST_PLANES + PLANES_A_CALL];
    const u32 warp = threadIdx.x / LANES, warps = blockDim.x / LANES, sites = squares.sites;
    const u32 lane = threadIdx.x % LANES, sample = blockIdx.y, word = blockIdx.x, pair = word * LANES + lane;
    const bool is_there = pair < pairs.count;
    const size_t at = (size_t)sample * pairs.count + pair;
    u32* const one = squares.of(sample, is_there ? pairs.one[at] : 0);
    u32* const other = squares.of(sample, is_there ? pairs.other[at] : 0);
    const Seeds seeds(wants, pairs, sample, word, first_sample, time);
    u32* const overlap = SHARED ? in_shared : scratch + ((size_t)sample * gridDim.x + word) * 2 * sites;
    u32* const reached = overlap + sites;
    for (u32 column = warp; column < squares.columns; column += warps) {
        const u32 i = column * LANES + lane, differ = transpose_across(is_there ? one[column] ^ other[column] : 0);
        if (i >= sites) continue;
        const u32 sown = seeds.at(squares.site_at[i], key);
        overlap[i] = differ, reached[i] = squares.in_field ? sown & differ : sown;
    }
    __syncthreads();

    // Growth, colour by colour until nothing changes.
    const u32* const near = growth.near + sample * growth.near_stride;
    const unsigned short* const degree = growth.degree + sample * growth.degree_stride;
    for (int changed = 1; changed;) {
        changed = 0;
        for (u32 colour = 0; colour < growth.colours; ++colour) {
            for (u32 i = growth.colour_start[colour] + threadIdx.x; i < growth.colour_start[colour + 1]; i += blockDim.x) {
                const u32 before = reached[i], own = overlap[i];
                u32 joined = before;
                for (u32 slot = 0; slot < degree[i]; ++slot) {
                    const u32 j = near[(size_t)slot * sites + i];
                    joined |= reached[j] & ~(overlap[j] ^ own);
                }
                if (joined == before) continue;
                reached[i] = joined;
                changed = 1;
            }
            if (colour + 1 < growth.colours) __syncthreads();
        }
        changed = __syncthreads_or(changed);
    }
    for (u32 column = warp; column < squares.columns; column += warps) {
        const u32 i = column * LANES + lane, flips = transpose_across(i < sites ? reached[i] : 0);
        if (is_there) one[column] = other[column] = flips;
    }
}
