// Houdayer moves of replica-packed words: spinsim/engine/moves/houdayer/move.py says which pairs, seeds and clusters there are.
//
//   state[sample][block][place][4]    spins: bit b of word w is replica 128 block + 32 w + b
//   turned[sample][column][replica]   the same squares of 32 x 32 bits on their sides: bit b is position 32 column + b
//
// 1. pair_copies draws pairs. 2. turn_replicas fills `turned`, so that the XOR of two of its words is the overlap of a pair at 32
// positions. 3. A block has up to 32 pairs of a sample: it draws their seeds, lets them grow and leaves what is flipped in
// `turned`, in the place of both replicas. On lattices whose positions stand in rows (rows.py) a warp has a pair, and a
// word is 32 sites (move_in_rows); on other graphs a thread has a site, and a word is 32 pairs (move_clusters).
// 4. flip_replicas turns the squares back and flips the spins.
#include "bits/transpose.cuh"
#include "random/philox.cuh"

constexpr u32 STREAM_HOUDAYER = HOST(rng.Stream.HOUDAYER), ORDER = HOST(engine.moves.houdayer.move.ORDER);
constexpr int THREADS = HOST(engine.moves.houdayer.cuda.THREADS), WARPS_TURNING = HOST(engine.moves.houdayer.cuda.WARPS_TURNING);
constexpr u32 NOBODY = HOST(engine.moves.houdayer.rows.NOBODY), TURN_SHIFT = HOST(engine.moves.houdayer.rows.TURN_SHIFT);
constexpr u32 LANES = 32, BLOCK = 128, MOST_PLANES = 32, PLANES_A_CALL = 4;
constexpr int ROW_THREADS = 1024;  // of a block whose warps have a pair each, at most

// Holds the pairs of all samples, [sample][pair], and those of replicas, [sample][replica].
struct Pairs {
    u32 *one, *other, *halvings, *of_replica;
    u64* keys;
    u32 count, replicas;
};
CHECK_STRUCT(Pairs, engine.moves.houdayer.cuda.PAIRS);

// Holds the spins both ways. place_of and site_at are [position]: NOBODY, where a column has no site.
struct Squares {
    uint4* state;
    u32* turned;
    const u32 *place_of, *site_at;
    u32 sites, columns, blocks, in_field;
};
CHECK_STRUCT(Squares, engine.moves.houdayer.cuda.SQUARES);

// Holds the graph over which clusters grow, its sites in the order of the words; a stride is 0 where all samples share it.
struct Growth {
    const u32* near;               // [row][slot][place]: places to which there are bonds, degree[row][place] of them
    const unsigned short* degree;
    const u32* colour_start;       // places of colour c are colour_start[c] to before colour_start[c + 1]
    size_t near_stride, degree_stride;
    u32 colours;
};
CHECK_STRUCT(Growth, engine.moves.houdayer.cuda.GROWTH);

// Holds a lattice in rows: spinsim/engine/moves/houdayer/rows.py says what these are.
struct Rows {
    const u32 *near, *allowed, *along;  // [slot][word], [row][slot][word], [row][word]; the row of a sample or of all
    size_t allowed_stride, along_stride;
    u32 slots, words_a_row, last, low, masked;
};
CHECK_STRUCT(Rows, engine.moves.houdayer.cuda.ROWS);

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

// Fills `turned`: block (columns, block of replicas, sample), a warp a column.
__global__ __launch_bounds__(WARPS_TURNING * LANES) void turn_replicas(Squares squares) {
    const u32 lane = threadIdx.x % LANES, column = blockIdx.x * WARPS_TURNING + threadIdx.x / LANES;
    if (column >= squares.columns) return;
    const u32 place = squares.place_of[column * LANES + lane];
    uint4 spins = {};
    if (place != NOBODY) spins = squares.state[((size_t)blockIdx.z * squares.blocks + blockIdx.y) * squares.sites + place];
    u32* const to = squares.turned + (((size_t)blockIdx.z * squares.columns + column) * squares.blocks + blockIdx.y) * BLOCK + lane;
    to[0] = transpose_across(spins.x), to[32] = transpose_across(spins.y);
    to[64] = transpose_across(spins.z), to[96] = transpose_across(spins.w);
}

// Flips the spins that `turned` has for replicas of pairs, likewise.
__global__ __launch_bounds__(WARPS_TURNING * LANES) void flip_replicas(Squares squares, Pairs pairs) {
    const u32 lane = threadIdx.x % LANES, column = blockIdx.x * WARPS_TURNING + threadIdx.x / LANES, sample = blockIdx.z;
    if (column >= squares.columns) return;
    const u32* const from = squares.turned + (((size_t)sample * squares.columns + column) * squares.blocks + blockIdx.y) * BLOCK;
    u32 flips[4];
#pragma unroll
    for (u32 w = 0; w < 4; ++w) {
        const u32 at = w * LANES + lane, replica = blockIdx.y * BLOCK + at;
        const bool is_paired = replica < pairs.replicas && pairs.of_replica[(size_t)sample * pairs.replicas + replica] != NOBODY;
        flips[w] = transpose_across(is_paired ? from[at] : 0);
    }
    const u32 place = squares.place_of[column * LANES + lane];
    if (place == NOBODY || !(flips[0] | flips[1] | flips[2] | flips[3])) return;
    uint4& spins = squares.state[((size_t)sample * squares.blocks + blockIdx.y) * squares.sites + place];
    const uint4 old = spins;
    spins = make_uint4(old.x ^ flips[0], old.y ^ flips[1], old.z ^ flips[2], old.w ^ flips[3]);
}

// Up to 32 pairs of a sample that a block has, pair `first + lane` in each lane of its warps.
struct Mine {
    u32 lane, sample, word;    // of 32 pairs
    bool is_there;
    u32 one, other, halvings;  // of the lane's pair
    u32 there;                 // lanes that have one

    __device__ __forceinline__ Mine(const Pairs& pairs, u32 first, u32 count) : lane(threadIdx.x % LANES), sample(blockIdx.y) {
        word = first / LANES;
        const u32 pair = word * LANES + lane;
        is_there = pair >= first && pair < first + count && pair < pairs.count;
        const size_t at = (size_t)sample * pairs.count + pair;
        one = is_there ? pairs.one[at] : 0, other = is_there ? pairs.other[at] : 0, halvings = is_there ? pairs.halvings[at] : 0;
        there = __ballot_sync(~0u, is_there);
    }
    __device__ __forceinline__ u32* turned(const Squares& squares, u32 column) const {
        return squares.turned + ((size_t)sample * squares.columns + column) * squares.blocks * BLOCK;
    }
    __device__ __forceinline__ u32 overlap(const Squares& squares, u32 column) const {
        const u32* const words = turned(squares, column);
        return is_there ? words[one] ^ words[other] : 0;
    }
    __device__ __forceinline__ void flip(const Squares& squares, u32 column, u32 flips) const {
        u32* const words = turned(squares, column);
        if (is_there) words[one] = words[other] = flips;
    }
};

// Seeds of up to 32 pairs at a site, and which pairs want a plane: none wants the last ones.
struct Seeds {
    u32* wants;
    HalfSweep when;
    u32 block, there;

    __device__ __forceinline__ Seeds(u32 (&shared)[MOST_PLANES + PLANES_A_CALL], const Mine& mine, u32 first_sample, u64 time)
        : wants(shared), when(counter_half_sweep(time, STREAM_HOUDAYER)), block(counter_block(first_sample + mine.sample, mine.word)),
          there(mine.there) {
        for (u32 plane = threadIdx.x / LANES; plane < MOST_PLANES + PLANES_A_CALL; plane += blockDim.x / LANES) {
            const u32 want = __ballot_sync(~0u, mine.halvings > plane);
            if (mine.lane == 0) wants[plane] = want;
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

// Lets `reached` spread to higher bits, to each that is joined to the one before: the carries of a sum.
__device__ __forceinline__ u32 spread(u32 reached, u32 joined) {
    const u32 a = reached | joined;
    return reached | (joined & ((a + reached) ^ a ^ reached));
}

// Lets the clusters of a pair grow: words[word] has its overlaps and what is reached, a lane of the warp every 32nd. Along rows
// whole words are filled; words are visited forward and backward in turn.
__device__ __forceinline__ void grow_rows(const Rows& rows, u32 columns, u32 sample, uint2* words) {
    const u32 lane = threadIdx.x % LANES, groups = (columns + LANES - 1) / LANES, across = rows.words_a_row;
    const u32* const allowed = rows.allowed + sample * rows.allowed_stride;
    const u32* const along = rows.along + sample * rows.along_stride;
    bool forward = true;
    for (u32 changed = 1; __any_sync(~0u, changed); forward = !forward) {
        changed = 0;
        for (u32 n = 0; n < groups; ++n) {
            const u32 w = (forward ? n : groups - 1 - n) * LANES + lane;
            u32 before = 0, reached = 0;
            if (w < columns) {
                const uint2 own = words[w];
                before = reached = own.y;
                for (u32 slot = 0; slot < rows.slots; ++slot) {
                    const u32 code = __ldg(rows.near + slot * columns + w);
                    const uint2 there = words[code & ((1u << TURN_SHIFT) - 1)];
                    const u32 turn = code >> TURN_SHIFT;
                    u32 joining = __funnelshift_r(there.y, there.y, turn) & ~(__funnelshift_r(there.x, there.x, turn) ^ own.x);
                    if (rows.masked) joining &= __ldg(allowed + slot * columns + w);
                    reached |= joining;
                }
                // Within the row, and to the words before and behind, which are this one itself where it is the only one.
                const u32 bonds = __ldg(along + w), low = rows.low;
                uint2 left = own, right = own;
                u32 left_top = rows.last, top = rows.last, right_bonds = bonds;
                if (across > 1) {
                    const u32 x = w % across, l = x ? w - 1 : w + across - 1, r = x + 1 < across ? w + 1 : w + 1 - across;
                    left = words[l], right = words[r], right_bonds = __ldg(along + r);
                    if (x) left_top = LANES - 1;
                    if (x + 1 < across) top = LANES - 1;
                }
                const u32 equal = bonds & ~(own.x ^ ((own.x << 1 & ~low) | (left.x >> left_top & low)));
                const u32 equal_right = right_bonds & low & ~(right.x ^ own.x >> top);
                if (across == 1) left.y = right.y = reached;
                reached |= (left.y >> left_top & equal & low) | (right.y & equal_right) << top;
                reached = spread(reached, equal & ~low);
                reached = __brev(spread(__brev(reached), __brev(equal & ~low) << 1));
            }
            __syncwarp();
            if (reached != before) words[w].y = reached, changed = 1;
            __syncwarp();
        }
    }
}

// Moves the clusters of so many pairs of a sample as the block has warps, a warp a pair: block (pairs, sample). The number of warps
// is a power of two.
__global__ __launch_bounds__(ROW_THREADS, 2) void move_in_rows(Squares squares, Rows rows, Pairs pairs, u32 first_sample, u64 time, Key key) {
    extern __shared__ uint2 row_words[];
    __shared__ u32 wants[MOST_PLANES + PLANES_A_CALL];
    const u32 warp = threadIdx.x / LANES, warps = blockDim.x / LANES, first = blockIdx.x * warps;
    const u32 columns = squares.columns, stride = columns | 1;  // so that the lanes of a column lie in different banks
    const Mine mine(pairs, first, warps);
    const Seeds seeds(wants, mine, first_sample, time);
    uint2* const of_lane = row_words + (size_t)(mine.is_there ? mine.lane - first % LANES : 0) * stride;
    for (u32 column = warp; column < columns; column += warps) {
        const u32 differ = mine.overlap(squares, column);
        const u32 sown = transpose_across(seeds.at(squares.site_at[column * LANES + mine.lane], key));
        if (mine.is_there) of_lane[column] = make_uint2(differ, squares.in_field ? sown & differ : sown);
    }
    __syncthreads();
    if (first + warp < pairs.count) grow_rows(rows, columns, mine.sample, row_words + (size_t)warp * stride);
    __syncthreads();
    for (u32 column = warp; column < columns; column += warps) mine.flip(squares, column, mine.is_there ? of_lane[column].y : 0);
}

// Moves the clusters of 32 pairs of a sample: block (word of pairs, sample). Words of sites lie in shared memory if they fit,
// else in scratch. Sites of one colour have no bonds between them, so that a colour reads what no thread writes.
template <bool SHARED>
__global__ __launch_bounds__(THREADS) void move_clusters(Squares squares, Growth growth, Pairs pairs, u32* scratch, u32 first_sample,
                                                         u64 time, Key key) {
    extern __shared__ u32 in_shared[];
    __shared__ u32 wants[MOST_PLANES + PLANES_A_CALL];
    const u32 warp = threadIdx.x / LANES, warps = blockDim.x / LANES, sites = squares.sites;
    const Mine mine(pairs, blockIdx.x * LANES, LANES);
    const Seeds seeds(wants, mine, first_sample, time);
    u32* const overlap = SHARED ? in_shared : scratch + ((size_t)mine.sample * gridDim.x + mine.word) * 2 * sites;
    u32* const reached = overlap + sites;
    for (u32 column = warp; column < squares.columns; column += warps) {
        const u32 i = column * LANES + mine.lane, differ = transpose_across(mine.overlap(squares, column));
        if (i >= sites) continue;
        const u32 sown = seeds.at(squares.site_at[i], key);
        overlap[i] = differ, reached[i] = squares.in_field ? sown & differ : sown;
    }
    __syncthreads();

    // Growth, colour by colour until nothing changes.
    const u32* const near = growth.near + mine.sample * growth.near_stride;
    const unsigned short* const degree = growth.degree + mine.sample * growth.degree_stride;
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
        const u32 i = column * LANES + mine.lane;
        mine.flip(squares, column, transpose_across(i < sites ? reached[i] : 0));
    }
}
