// Houdayer moves of replica-packed words: spinsim/engine/moves/houdayer/move.py says which pairs, seeds and clusters there are.
//
//   state[sample][block][place][4]      spins: bit b of word w is replica 128 block + 32 w + b
//   overlap[place], reached[place]      of one sample and 32 pairs, a lane each: where they differ, what is flipped
//   near[row][slot][place]              places to which the site of a place has bonds, degree[row][place] of them
#include "random/philox.cuh"

constexpr u32 STREAM_HOUDAYER = HOST(rng.Stream.HOUDAYER), ORDER = HOST(engine.moves.houdayer.move.ORDER);
constexpr int THREADS = HOST(engine.moves.houdayer.cuda.THREADS);
constexpr u32 LANES = 32, WORDS = 4, NOBODY = ~0u, MOST_PLANES = 32;

// Holds the pairs of all samples, [sample][pair], and those of replicas, [sample][replica].
struct Pairs {
    u32 *one, *other, *halvings, *of_replica;
    u64* keys;
    u32 count, replicas;
};
CHECK_STRUCT(Pairs, engine.moves.houdayer.cuda.PAIRS);

// Holds the graph over which clusters grow; a stride is 0 where all samples share it.
struct Growth {
    const u32 *order, *near;       // site of a place; above
    const unsigned short* degree;  // above
    const u32* colour_start;       // places of colour c are colour_start[c] to before colour_start[c + 1]
    size_t near_stride, degree_stride;
    u32 sites, colours, in_field;
};
CHECK_STRUCT(Growth, engine.moves.houdayer.cuda.GROWTH);

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

// Moves the clusters of 32 pairs of a sample: block (word of pairs, sample). Words of sites lie in shared memory if they fit,
// else in scratch. Sites of one colour have no bonds between them, so that a colour reads what no thread writes.
template <bool SHARED>
__global__ __launch_bounds__(THREADS) void move_clusters(
    u32* state, u32 blocks, Growth growth, Pairs pairs, u32* scratch, u32 first_sample, u64 time, Key key) {
    extern __shared__ u32 in_shared[];
    __shared__ u32 wants[MOST_PLANES + WORDS];  // pairs that want a plane; none wants the last ones
    const u32 sample = blockIdx.y, word = blockIdx.x, sites = growth.sites;
    const u32 lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, warps = blockDim.x / LANES;
    u32* const overlap = SHARED ? in_shared : scratch + ((size_t)sample * gridDim.x + word) * 2 * sites;
    u32* const reached = overlap + sites;
    u32* const mine = state + (size_t)sample * blocks * sites * WORDS;
    const auto words_of = [&](u32 replica) { return mine + (size_t)(replica / 128) * sites * WORDS + replica / LANES % WORDS; };

    // Overlaps: each lane of a warp reads the spins of its own pair.
    const u32 pair = word * LANES + lane;
    const bool is_there = pair < pairs.count;
    const size_t at = (size_t)sample * pairs.count + pair;
    const u32 one = is_there ? pairs.one[at] : 0, other = is_there ? pairs.other[at] : 0, k = is_there ? pairs.halvings[at] : 0;
    const u32 *const ones = words_of(one), *const others = words_of(other);
    for (u32 i = warp; i < sites; i += warps) {
        const u32 differ = __ballot_sync(~0u, (ones[(size_t)i * WORDS] >> one % LANES ^ others[(size_t)i * WORDS] >> other % LANES) & 1);
        if (lane == 0) overlap[i] = differ;
    }
    const u32 there = __ballot_sync(~0u, is_there);
    for (u32 plane = warp; plane < MOST_PLANES + WORDS; plane += warps) {
        const u32 want = __ballot_sync(~0u, k > plane);
        if (lane == 0) wants[plane] = want;
    }
    __syncthreads();

    // Seeds: planes are drawn, four a call, until no pair wants more or none has a seed left at the site.
    const HalfSweep when = counter_half_sweep(time, STREAM_HOUDAYER);
    for (u32 i = threadIdx.x; i < sites; i += blockDim.x) {
        const Prefix prefix = philox_prefix(growth.order[i], counter_block(first_sample + sample, word), when.word2, key);
        u32 seeds = there;
        for (u32 plane = 0; seeds & wants[plane]; plane += 4) {
            const uint4 x = philox_finish<MOST_ROUNDS>(prefix, when.word3 | plane / 4, key);
            seeds &= (x.x | ~wants[plane]) & (x.y | ~wants[plane + 1]) & (x.z | ~wants[plane + 2]) & (x.w | ~wants[plane + 3]);
        }
        reached[i] = growth.in_field ? seeds & overlap[i] : seeds;
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

    // Flips: a warp turns the words of 32 places into those of replicas. Other blocks have other replicas of the same words.
    for (u32 v = 0; v < WORDS * blocks; ++v) {
        const u32 replica = v * LANES + lane;
        const u32 its = replica < pairs.replicas ? pairs.of_replica[(size_t)sample * pairs.replicas + replica] : NOBODY;
        const bool is_mine = its != NOBODY && its / LANES == word;
        if (!__any_sync(~0u, is_mine)) continue;
        for (u32 base = warp * LANES; base < sites; base += warps * LANES) {
            u32 flips = 0;
            for (u32 i = 0; i < LANES; ++i) {
                const u32 of_pairs = base + i < sites ? reached[base + i] : 0;
                const u32 of_replicas = __ballot_sync(~0u, is_mine && (of_pairs >> its % LANES & 1));
                if (lane == i) flips = of_replicas;
            }
            if (flips) atomicXor(words_of(v * LANES) + (size_t)(base + lane) * WORDS, flips);
        }
    }
}
