// What the thread blocks of a cluster have of a dense model: each keeps the spins of all their replicas for its share of the sites, in
// shared memory, and multiplies couplings, which stream past, with them; so couplings are read once for all of these replicas. It visits
// the sites of its own replicas, whose local fields, those of 64 sites at a time, the blocks add up.
#pragma once
#include "gemm/mma_int8.cuh"
#include "metropolis/refined.cuh"
#include "synchronisation/async_copy.cuh"
#include "synchronisation/cluster.cuh"

constexpr int THREADS = HOST(engine.moves.metropolis.dense_cuda.THREADS), WARPS = THREADS / 32;
constexpr int SITES = HOST(engine.moves.metropolis.dense.SITES);  // of a block of the sweep
constexpr int STEP = HOST(engine.moves.metropolis.dense_cuda.STEP_BYTES);  // bytes of 16 rows, 64 columns and one place of couplings
constexpr int PITCH = SITES + HOST(engine.moves.metropolis.dense_cuda.FIELDS_APART);  // of a replica's fields: other banks than the next one's
constexpr int GAP = HOST(engine.moves.metropolis.dense_cuda.GAP);  // bytes between replicas' spins, likewise
constexpr int TILES_OF_SITES = SITES / 16, PARTS = WARPS / TILES_OF_SITES;  // warps have all sites and parts of the columns
static_assert(WARPS == PARTS * TILES_OF_SITES, "and nothing else");

template <bool FIRST, typename One, typename Other>
struct Either { using type = One; };
template <typename One, typename Other>
struct Either<false, One, Other> { using type = Other; };

// What couplings of so many bytes are held in within a block of sites.
template <int BYTES>
using EntryOf = typename Either<BYTES == 1, signed char, typename Either<(BYTES <= 4), int, long long>::type>::type;

// What a thread block has of couplings of so many bytes.
template <int BYTES, typename Integer, int REPLICAS, int CLUSTER>
struct Shape {
    static constexpr int PLACES = BYTES;               // of a coupling: its signed bytes
    static constexpr int GROUP = REPLICAS * CLUSTER;  // replicas of the cluster, all of which a warp multiplies
    static constexpr int TILES = GROUP / 8;
    static constexpr int STAGES = CLUSTER > 1 ? HOST(engine.moves.metropolis.dense_cuda.STAGES_OF_CLUSTERS)
                                              : HOST(engine.moves.metropolis.dense_cuda.STAGES);  // that a warp has room for
    static constexpr int WORDS = sizeof(Integer) == 4 ? 1 : (BYTES + 1) / 2;  // of a sum: two places of couplings each, or modulo 2^32
    static constexpr int SUMS = GROUP * PITCH;
};

// Lies in shared memory.
template <int BYTES, typename Integer, int REPLICAS, int CLUSTER>
struct Room {
    using Entry = EntryOf<BYTES>;
    using Sizes = Shape<BYTES, Integer, REPLICAS, CLUSTER>;
    using Blocks = Cluster<CLUSTER>;
    signed char* spins;    // [replica of the cluster][place], of this block's share, 0 past the last site; rows are `pitch` apart
    u32 share, pitch;      // places of a share
    char* rings;           // [warp][stage]
    u32* sums;             // [word][replica of the cluster][site], rows PITCH apart: this block's share of the product
    Entry* own;            // [site][site]: couplings within the block of sites
    u32* uniforms;         // [replica][site]
    float* per_beta;       // [replica]: 1 / double_beta

    __device__ __forceinline__ Room(char* memory, u32 depth) {
        share = depth / CLUSTER, pitch = share + GAP;
        spins = (signed char*)memory;
        memory += (size_t)Sizes::GROUP * pitch;
        rings = memory;
        memory += WARPS * Sizes::STAGES * STEP;
        sums = (u32*)memory;
        own = (Entry*)(sums + Sizes::WORDS * Sizes::SUMS);
        uniforms = (u32*)(own + SITES * SITES);
        per_beta = (float*)(uniforms + REPLICAS * SITES);
    }

    // Fetches the share's spins of the cluster's replicas, four at a time, and zeroes the sums.
    __device__ __forceinline__ void load(const signed char* from, const u32* order, u32 sites, u32 width, u32 there) {
        const u32 first = Blocks::rank() * share;
        for (u32 k = threadIdx.x; k < share; k += THREADS) {
            const u32 place = first + k;
            const u32* const words = (const u32*)(from + (size_t)(place < sites ? order[place] : 0) * width);
#pragma unroll 8
            for (u32 r = 0; r < Sizes::GROUP; r += 4) {
                const u32 word = place < sites && r < there ? words[r / 4] : 0;
#pragma unroll
                for (u32 q = 0; q < 4; ++q) spins[(r + q) * pitch + k] = (signed char)(word >> 8 * q);
            }
        }
        for (u32 k = threadIdx.x; k < Sizes::WORDS * Sizes::SUMS; k += THREADS) sums[k] = 0;
    }

    // Brings them back.
    __device__ __forceinline__ void store(signed char* to, const u32* order, u32 sites, u32 width, u32 there) const {
        const u32 first = Blocks::rank() * share;
        for (u32 k = threadIdx.x; k < share && first + k < sites; k += THREADS) {
            u32* const words = (u32*)(to + (size_t)order[first + k] * width);
#pragma unroll 8
            for (u32 r = 0; r < Sizes::GROUP; r += 4) {
                u32 word = 0;
#pragma unroll
                for (u32 q = 0; q < 4; ++q) word |= (u32)(u8)spins[(r + q) * pitch + k] << 8 * q;
                if (r < there) words[r / 4] = word;
            }
        }
    }

    // Returns where the spins of one of this block's replicas are, from the first site of a block of sites on.
    __device__ __forceinline__ u32 spins_of(u32 replica, u32 block) const {
        const u32 place = block * SITES, rank = CLUSTER > 1 ? place / share : 0;
        return Blocks::at(spins + (Blocks::rank() * REPLICAS + replica) * pitch + (place - rank * share), rank);
    }

    // Returns what all blocks have added up for one of this block's replicas, which is 0 again.
    __device__ __forceinline__ Integer sum_of(u32 replica, u32 site) const {
        u32* const mine = sums + (Blocks::rank() * REPLICAS + replica) * PITCH + site;
        Integer sum = 0;
#pragma unroll
        for (u32 rank = 0; rank < CLUSTER; ++rank)
#pragma unroll
            for (int word = 0; word < Sizes::WORDS; ++word) {
                const u32 at = Blocks::at(mine + word * Sizes::SUMS, rank);
                sum += (Integer)((u64)(long long)(int)Blocks::load_word(at) << 16 * word);
                Blocks::store_word(at, 0);
            }
        return sum;
    }
};

// The couplings that a warp multiplies, in the order in which it needs them, sweep after sweep: 16 sites of a block of sites and a part
// of the columns of this thread block. Of the columns, those of the block of sites that was visited last come last. A stage has one
// place of the couplings of 64 columns; stages follow each other in memory but where columns or blocks of sites end.
template <typename Shared>
struct CouplingStream {
    using Sizes = typename Shared::Sizes;
    static constexpr u32 RING = Sizes::STAGES * STEP;
    const char* from;           // of the first columns of the first block of sites
    char* ring;                 // what this lane fetches of the first stage
    u32 steps, blocks, first;   // steps of 64 columns; blocks of sites; the first of these columns, in steps
    size_t stride;              // bytes from one block of sites to the next
    const char* at;             // what it asks for next
    u32 left, later;            // steps from there on that follow each other; of the same block of sites behind these
    u32 block, slot = 0;        // the block of sites, bytes in the ring

    // The first step for a block of sites that comes after this one.
    __device__ __forceinline__ u32 begin(u32 last) const {
        const u32 behind = last - first + 1;
        return behind - 1 < steps && behind < steps ? behind : 0;
    }

    // Goes on to what does not follow the stages before it.
    __device__ __forceinline__ void begin_step() {
        if (later) {
            at = from + block * stride, left = later, later = 0;
            return;
        }
        const u32 step = begin(block);
        block = block + 1 < blocks ? block + 1 : 0;
        at = from + block * stride + step * (Sizes::PLACES * STEP), left = steps - step, later = step;
    }

    // Asks for the next stage, which is the last one of its step or not; each lane fetches what it will take itself.
    __device__ __forceinline__ void fetch_next(bool last) {
#pragma unroll
        for (int k = 0; k < STEP; k += 512) copy_async<16>(ring + slot + k, at + k, true);
        commit_copies();
        at += STEP, slot = slot + STEP < RING ? slot + STEP : 0;
        if (last && --left == 0) begin_step();
    }

    __device__ __forceinline__ CouplingStream(const Shared& room, const char* couplings, u32 depth, u32 sites) {
        const u32 warp = threadIdx.x / 32, part = warp % PARTS, all = room.share / 64, begins = all * part / PARTS;
        const u32 lane = threadIdx.x % 32 * 16;
        steps = all * (part + 1) / PARTS - begins, blocks = (sites + SITES - 1) / SITES;
        first = all * Shared::Blocks::rank() + begins;
        stride = (size_t)TILES_OF_SITES * (depth / 64) * Sizes::PLACES * STEP;
        from = couplings + ((size_t)(warp / PARTS) * (depth / 64) + first) * Sizes::PLACES * STEP + lane;
        ring = room.rings + warp * RING + lane;
        block = blocks - 1, later = 0;
        if (!steps) return;
        begin_step();
#pragma unroll
        for (int k = 0; k < Sizes::STAGES - 1; ++k) fetch_next(k % Sizes::PLACES == Sizes::PLACES - 1);
    }

    // Waits for the stage that was asked for first, of such a place of the couplings, and asks for another one, in whose place is the
    // stage before it; returns where it is.
    __device__ __forceinline__ const char* next_stage(int place) {
        wait_for_copies<Sizes::STAGES - 2>();
        const char* const oldest = ring + (slot + STEP < RING ? slot + STEP : 0);  // behind the free place
        fetch_next((place + Sizes::STAGES - 1) % Sizes::PLACES == Sizes::PLACES - 1);
        return oldest;
    }
};

// Multiplies couplings and spins for a block of sites.
template <int BYTES, typename Integer, int REPLICAS, int CLUSTER>
struct Product {
    using Shared = Room<BYTES, Integer, REPLICAS, CLUSTER>;
    using Sizes = typename Shared::Sizes;
    static constexpr int TILES = Sizes::TILES;
    Shared& room;
    CouplingStream<Shared> stream;
    int sums[BYTES][TILES][4];

    // A warp has 16 sites; bytes of one place of all couplings are multiplied at a time.
    __device__ __forceinline__ void step(const signed char* column) {
        uint4 spins[TILES];
#pragma unroll
        for (int tile = 0; tile < TILES; ++tile) spins[tile] = *(const uint4*)(column + 8 * tile * room.pitch);
#pragma unroll
        for (int byte = 0; byte < BYTES; ++byte) {
            const char* const at = stream.next_stage(byte);
            const uint4 words[2] = {*(const uint4*)at, *(const uint4*)(at + 512)};
#pragma unroll
            for (int pair = 0; pair < 2; ++pair)
#pragma unroll
                for (int tile = 0; tile < TILES; ++tile)
                    mma_int8(sums[byte][tile], words[pair].x, words[pair].y, words[pair].z, words[pair].w,
                             word_of(spins[tile], 2 * pair), word_of(spins[tile], 2 * pair + 1));
        }
    }

    // Adds this block's share of the product for a block of sites to the sums, when all have visited the block of sites `last`.
    __device__ __forceinline__ void make(u32 last) {
        const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
        const signed char* const column =
            room.spins + g * room.pitch + (stream.first - room.share / 64 * Shared::Blocks::rank()) * 64 + 16 * t;
#pragma unroll
        for (int byte = 0; byte < BYTES; ++byte)
#pragma unroll
            for (int tile = 0; tile < TILES; ++tile)
#pragma unroll
                for (int k = 0; k < 4; ++k) sums[byte][tile][k] = 0;
        u32 at = stream.begin(last);
        for (u32 left = stream.steps; left > 1; --left) {
            step(column + 64 * at);
            at = at + 1 < stream.steps ? at + 1 : 0;
        }
        Shared::Blocks::wait();
        if (stream.steps) step(column + 64 * at);
#pragma unroll
        for (int tile = 0; tile < TILES; ++tile) {
            u32* const to = room.sums + (8 * tile + 2 * t) * PITCH + warp / PARTS * 16 + g;
#pragma unroll
            for (int k = 0; k < 4; ++k)
#pragma unroll
                for (int word = 0; word < Sizes::WORDS; ++word) {
                    u32 sum = 0;  // a field fits, whatever its parts do
                    const int end = Sizes::WORDS == 1 ? BYTES : 2 * word + 2 < BYTES ? 2 * word + 2 : BYTES;
#pragma unroll
                    for (int byte = end - 1; byte >= 2 * word; --byte) sum = (sum << 8) + (u32)sums[byte][tile][k];
                    atomicAdd(to + word * Sizes::SUMS + k % 2 * PITCH + k / 2 * 8, sum);
                }
        }
    }
};
