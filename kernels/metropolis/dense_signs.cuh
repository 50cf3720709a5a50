// The local fields of dense models whose couplings are 0 and +-unit, 64 sites of 16 replicas at a time, from products of bits. A block
// of sites is visited by half of a thread block's warps; others multiply for the next one, and still others draw what its sites accept.
// These products leave out the sites that are being visited, as couplings to them are 0 there; what those contribute is counted when they
// have been.
#pragma once
#include "gemm/mma_bits.cuh"
#include "metropolis/dense_flips.cuh"
#include "metropolis/dense_spins.cuh"

constexpr u32 REPLICAS = HOST(engine.moves.metropolis.dense_cuda.REPLICAS);  // of a thread block, a warp visits each
constexpr u32 MULTIPLYING = HOST(engine.moves.metropolis.dense_cuda.WARPS);      // warps that multiply for the next block of sites
constexpr u32 DRAWING = REPLICAS / 4 * SITES / 32;                           // warps that draw for it
constexpr u32 TILE = 8, TILES = 2;                                           // sites of a tile, tiles of a warp
constexpr u32 PARTS = HOST(engine.moves.metropolis.dense_cuda.PARTS);             // of the depth of the product
constexpr u32 STEP = 8, STEPS = 4;  // words of spins that are multiplied at once; steps whose couplings a warp asks for at once
constexpr u32 APART = HOST(engine.moves.metropolis.dense_cuda.ROWS_APART);        // words between rows, which lie in other banks
constexpr u32 PITCH = 32 + APART, SUMS = PARTS * REPLICAS * PITCH;
constexpr u32 SIDE = SUMS + 2 * REPLICAS * SITES;  // words that are there twice, for the present block of sites and the next one
constexpr u32 DRAWS = HOST(engine.moves.metropolis.dense.DRAW_BYTES) / 16;
static_assert(sizeof(Draws) <= 16 * DRAWS, "there is room for Draws");
static_assert(MULTIPLYING * TILES * TILE == SITES * PARTS && REPLICAS == 16, "warps have all sites, parts and replicas");

// Lies in shared memory.
struct Room {
    u32 pitch;      // words of a replica's spins
    Draws* draws;
    float4* scale;  // [replica]
    u32* bits;      // [replica][place]: spins
    u32* sums;      // [part][replica][lane], rows PITCH apart: products for sites `lane` and, times 2^16, `lane` + 32; and SIDE on

    __device__ __forceinline__ Room(uint4* memory, u32 depth) {
        pitch = depth / 32 + APART;
        draws = (Draws*)memory;
        scale = (float4*)memory + DRAWS;
        bits = (u32*)(scale + REPLICAS);
        sums = bits + REPLICAS * pitch;
    }
    // [replica][site], and SIDE on.
    __device__ __forceinline__ Bounds<int>* bounds() const { return (Bounds<int>*)(sums + SUMS); }
};

// Multiplies couplings and spins. COMPLETE: no coupling is 0, and positive ones tell all; else there are two planes of bits.
template <bool COMPLETE>
struct Product {
    static constexpr int PLANES = COMPLETE ? 1 : 2;
    const uint4* const from;  // couplings of this lane, of the first steps of the first block of sites
    const uint4* at;          // those that it asks for next
    const u32* const row;     // spins of replica g from this lane's first word on
    const u32 below;          // words from there to those of replica g + 8
    u32* const to;            // sums
    const u32 rounds, first;  // of its part: STEPS steps each; its first block of sites, one more for half of the lanes
    uint4 next[STEPS / 2][TILES][PLANES];

    __device__ __forceinline__ Product(const Room& room, const uint4* couplings, u32 depth, u32 warp)
        : Product(room, couplings + 32 * warp + threadIdx.x % 32, depth / (PARTS * STEPS * STEP * 32), warp / PARTS, warp % PARTS,
                  threadIdx.x % 32 / 4, threadIdx.x % 4) {}
    __device__ __forceinline__ Product(const Room& room, const uint4* from, u32 rounds, u32 tiles, u32 part, u32 g, u32 t)
        : from(from), at(from), row(room.bits + g * room.pitch + part * rounds * STEPS * STEP + t), below(8 * room.pitch),
          to(room.sums + (part * REPLICAS + g) * PITCH + TILE / 2 * TILES * tiles + t), rounds(rounds),
          first(part * rounds * STEPS * 4 + t / 2) {}

    // Asks for two steps' couplings.
    __device__ __forceinline__ void fetch_pair(u32 pair) {
#pragma unroll
        for (u32 tile = 0; tile < TILES; ++tile)
#pragma unroll
            for (int plane = 0; plane < PLANES; ++plane, at += 32 * MULTIPLYING) next[pair][tile][plane] = __ldcg(at);
    }
    __device__ __forceinline__ void fetch_first() {
        at = from;
        fetch_pair(0), fetch_pair(1);
    }

    // Takes the spins of a step, but of a block of sites that is being visited.
    __device__ __forceinline__ void stage(u32 (&spins)[4], u32 step, u32 visited) const {
#pragma unroll
        for (u32 h = 0; h < 2; ++h) {
            const bool known = visited != first + step * 4 + 2 * h;
            const u32* const word = row + step * STEP + 4 * h;
            spins[2 * h] = known ? word[0] : 0, spins[2 * h + 1] = known ? word[below] : 0;
        }
    }

    // Multiplies for a block of sites and asks for the couplings of the next one, which may be the first.
    __device__ __forceinline__ void make(u32 side, bool first_next, u32 visited) {
        int sums[TILES][PLANES][4] = {};
        for (u32 round = 0; round < rounds; ++round) {
            if (first_next && round + 1 == rounds) at = from;
#pragma unroll
            for (u32 pair = 0; pair < STEPS / 2; ++pair) {
                u32 spins[2][4];
                stage(spins[0], round * STEPS + 2 * pair, visited), stage(spins[1], round * STEPS + 2 * pair + 1, visited);
#pragma unroll
                for (u32 tile = 0; tile < TILES; ++tile)
#pragma unroll
                    for (int plane = 0; plane < PLANES; ++plane) {
                        const uint4& words = next[pair][tile][plane];
                        mma_bits(sums[tile][plane], spins[0], words.x, words.y);
                        mma_bits(sums[tile][plane], spins[1], words.z, words.w);
                    }
                fetch_pair(pair);
            }
        }
#pragma unroll
        for (u32 tile = 0; tile < TILES; ++tile) {
            int(&sum)[4] = sums[tile][0];
            if constexpr (!COMPLETE)
#pragma unroll
                for (int k = 0; k < 4; ++k) sum[k] -= sums[tile][1][k];
            u32* const place = to + side * SIDE + TILE / 2 * tile;
            place[0] = (u32)sum[0] + ((u32)sum[1] << 16), place[8 * PITCH] = (u32)sum[2] + ((u32)sum[3] << 16);
        }
    }
};

// The couplings of a lane's two sites, `lane` and `lane` + 32, to those of the block before and to those before them in their
// own: bits of those that are positive and, unless no coupling is 0, of all that are not 0.
template <bool COMPLETE>
struct Rows {
    static constexpr u32 STRIDE = (COMPLETE ? 3 : 5) * 32;
    uint4 before, own;  // of sites `lane` to words 0, 1 and of sites `lane` + 32; of own to word 0, 0 and 1
    int2 base;         // local fields but for twice the unit times the counts
    uint4 all_before, all_own;

    __device__ __forceinline__ explicit Rows(const uint4* at) {
        before = __ldg(at), own = __ldg(at + 32), base = __ldg((const int2*)(at + 64));
        if constexpr (!COMPLETE) all_before = __ldg(at + 96), all_own = __ldg(at + 128);
    }

    // Counts neighbours in the block before whose spin, times the coupling, is -1.
    __device__ __forceinline__ int2 against_before(uint2 spins) const {
        uint4 differ = {before.x ^ spins.x, before.y ^ spins.y, before.z ^ spins.x, before.w ^ spins.y};
        if constexpr (!COMPLETE)
            differ = {differ.x & all_before.x, differ.y & all_before.y, differ.z & all_before.z, differ.w & all_before.w};
        return {__popc(differ.x) + __popc(differ.y), __popc(differ.z) + __popc(differ.w)};
    }

    // Does the same of earlier sites of the block itself, of which some flip; `own` is against their spins by now.
    __device__ __forceinline__ int2 against_own(uint2 flips, u32 earlier) const {
        uint4 differ = {own.x ^ flips.x, own.y ^ flips.x, own.z ^ flips.y, 0};
        if constexpr (COMPLETE)
            differ.x &= earlier, differ.z &= earlier;
        else
            differ.x &= all_own.x, differ.y &= all_own.y, differ.z &= all_own.z;
        return {__popc(differ.x), __popc(differ.y) + __popc(differ.z)};
    }
};

// What a warp knows of its replica: spins of the block of sites that was visited last, and how many others are up.
struct Replica {
    uint2 before;
    int ups;

    // Returns the local fields of a lane's sites; `spins` are those of the sites' block.
    template <bool COMPLETE>
    __device__ __forceinline__ int2 local_fields(const Room& room, u32 side, const Rows<COMPLETE>& rows, uint2 spins,
                                                 int twice_unit) const {
        const u32 lane = threadIdx.x % 32, *const sums = room.sums + side * SIDE + threadIdx.x / 32 % REPLICAS * PITCH + lane;
        u32 both = 0;
#pragma unroll
        for (u32 part = 0; part < PARTS; ++part) both += sums[part * REPLICAS * PITCH];
        int2 count = {(short)both, 0};
        count.y = (int)(both - (u32)count.x) >> 16;
        if (COMPLETE) {
            count.x = 2 * count.x - ups + (int)(spins.x >> lane & 1);
            count.y = 2 * count.y - ups + (int)(spins.y >> lane & 1);
        }
        const int2 against = rows.against_before(before);
        return {rows.base.x + twice_unit * (count.x - against.x), rows.base.y + twice_unit * (count.y - against.y)};
    }

    // Goes on to the next block of sites, where this one had `spins` and has `present`.
    __device__ __forceinline__ void pass(uint2 spins, uint2 present) {
        ups += count(before) - count(spins);
        before = present;
    }
    __device__ __forceinline__ static int count(uint2 spins) { return __popc(spins.x) + __popc(spins.y); }
};
