// What one thread block has of a dense model: a group of replicas whose spins stay in shared memory, and the local fields of 64
// sites at a time, from a product of couplings, which stream past, and spins.
#pragma once
#include "gemm/mma_int8.cuh"
#include "metropolis/refined.cuh"
#include "synchronisation/async_copy.cuh"

constexpr int THREADS = HOST(engine.metropolis.dense.cuda.THREADS), WARPS = THREADS / 32;
constexpr int SITES = HOST(engine.metropolis.dense.matrix.SITES);  // of a block of the sweep
constexpr int PARTS = HOST(engine.metropolis.dense.matrix.PARTS);  // of the depth of the product
constexpr int STAGE = HOST(engine.metropolis.dense.matrix.STAGE);  // bytes of couplings that a warp fetches at once
constexpr int STAGES = HOST(engine.metropolis.dense.cuda.STAGES);  // that it has room for
constexpr int PITCH = SITES + HOST(engine.metropolis.dense.cuda.APART);  // of a replica's fields: other banks than the next one's
constexpr int GAP = HOST(engine.metropolis.dense.cuda.GAP);  // bytes between replicas' spins, likewise
static_assert(WARPS == PARTS * SITES / 16, "a warp has 16 sites and a part of the depth");

template <bool FIRST, typename One, typename Other>
struct Either { using type = One; };
template <typename One, typename Other>
struct Either<false, One, Other> { using type = Other; };

// What couplings of so many bytes are held in within a block of sites; 0 are two bits, J / unit + 1 of couplings of 0 and +-unit.
template <int BYTES>
using EntryOf = typename Either<(BYTES <= 1), signed char, typename Either<(BYTES <= 4), int, long long>::type>::type;
template <typename Integer>
using UnsignedOf = typename Either<sizeof(Integer) == 4, u32, u64>::type;

// Lies in shared memory.
template <int BYTES, typename Integer, int REPLICAS>
struct Room {
    using Entry = EntryOf<BYTES>;
    signed char* spins;    // [replica][place], 0 past the last site; rows are `pitch` apart
    u32 pitch;
    char* ring;            // of this warp, [stage]
    Integer* sums;         // [replica][site], rows PITCH apart: the product
    Entry* own;            // [site][site]: couplings within the block of sites
    u32* uniforms;         // [replica][site]
    float* per_beta;       // [replica]: 1 / double_beta

    __device__ __forceinline__ Room(char* memory, u32 depth) {
        pitch = depth + GAP;
        spins = (signed char*)memory;
        memory += (size_t)REPLICAS * pitch;
        ring = memory + threadIdx.x / 32 * STAGES * STAGE;
        memory += WARPS * STAGES * STAGE;
        sums = (Integer*)memory;
        own = (Entry*)(sums + REPLICAS * PITCH);
        uniforms = (u32*)(own + SITES * SITES);
        per_beta = (float*)(uniforms + REPLICAS * SITES);
    }

    // Fetches the group's spins and zeroes the sums.
    __device__ __forceinline__ void load(const signed char* from, const u32* order, u32 sites, u32 width, u32 depth, u32 there) {
        for (u32 k = threadIdx.x; k < depth * REPLICAS; k += THREADS) {
            const u32 place = k / REPLICAS, r = k % REPLICAS;
            spins[r * pitch + place] = place < sites && r < there ? from[(size_t)order[place] * width + r] : 0;
        }
        for (u32 k = threadIdx.x; k < REPLICAS * PITCH; k += THREADS) sums[k] = 0;
    }
};

// The couplings that a warp multiplies, in the order in which it needs them, sweep after sweep. They lie stage by stage, those of
// all warps for one block of sites one after the other.
struct CouplingStream {
    const char* from;
    char* ring;
    u32 steps, blocks;          // stages of a block of sites, blocks of a sweep
    u32 step = 0, block = 0, slot = 0;

    // Asks for the next stage; each lane fetches what it will take itself.
    __device__ __forceinline__ void ask() {
        const size_t at = ((size_t)block * WARPS * steps + step) * STAGE;
        const u32 lane = threadIdx.x % 32 * 16;
#pragma unroll
        for (int k = 0; k < STAGE; k += 512) copy_async<16>(ring + slot * STAGE + k + lane, from + at + k + lane, true);
        commit_copies();
        slot = slot + 1 < STAGES ? slot + 1 : 0;
        if (++step == steps) step = 0, block = block + 1 < blocks ? block + 1 : 0;
    }

    __device__ __forceinline__ CouplingStream(const char* couplings, char* ring, u32 steps, u32 blocks)
        : from(couplings + (size_t)(threadIdx.x / 32) * steps * STAGE), ring(ring), steps(steps), blocks(blocks) {
#pragma unroll
        for (int k = 0; k < STAGES - 1; ++k) ask();
    }

    // Waits for the stage that was asked for first and asks for another one, in whose place is the stage before it.
    __device__ __forceinline__ void take(uint4 (&words)[STAGE / 512]) {
        wait_for_copies<STAGES - 2>();
        const u32 next = slot + 1 < STAGES ? slot + 1 : 0;  // behind the free place stands the oldest
#pragma unroll
        for (int k = 0; k < STAGE / 512; ++k) words[k] = *(const uint4*)(ring + next * STAGE + 512 * k + threadIdx.x % 32 * 16);
        ask();
    }
};

// Adds the product of 64 couplings of a warp's 16 sites and spins to `sums`: the words of A are bytes as mma_int8 takes them, rows
// g and g + 8, those of B 16 spins of each of 8 replicas.
template <int TILES>
__device__ __forceinline__ void multiply(int (&sums)[TILES][4], const u32 (&row)[4], const u32 (&below)[4],
                                         const uint4 (&spins)[TILES]) {
#pragma unroll
    for (int k = 0; k < 4; k += 2)
#pragma unroll
        for (int tile = 0; tile < TILES; ++tile)
            mma_int8(sums[tile], row[k], below[k], row[k + 1], below[k + 1], word_of(spins[tile], k), word_of(spins[tile], k + 1));
}

// Adds up couplings times spins for a block of sites: each warp has 16 of them, and a part of the depth.
template <int BYTES, typename Integer, int REPLICAS>
__device__ __forceinline__ void product(Room<BYTES, Integer, REPLICAS>& room, CouplingStream& stream) {
    using Unsigned = UnsignedOf<Integer>;
    constexpr int TILES = REPLICAS / 8, LIMBS = BYTES ? BYTES : 1, WORDS = STAGE / 512;
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
    const u32 steps = stream.steps / LIMBS * (BYTES ? 1 : 4);  // of 64 sites
    const signed char* column = room.spins + g * room.pitch + warp % PARTS * steps * 64 + 16 * t;
    int sums[LIMBS][TILES][4] = {};
    for (u32 step = 0; step < steps; step += BYTES ? 1 : 4) {
        uint4 words[WORDS], spins[TILES];
        if constexpr (BYTES == 0) {
            stream.take(words);
#pragma unroll
            for (int k = 0; k < 4; ++k) {
#pragma unroll
                for (int tile = 0; tile < TILES; ++tile) spins[tile] = *(const uint4*)(column + 8 * tile * room.pitch);
                column += 64;
                u32 row[4], below[4];
#pragma unroll
                for (int q = 0; q < 4; ++q) {
                    row[q] = word_of(words[k / 2], k % 2 * 2) >> 2 * q & 0x03030303;
                    below[q] = word_of(words[k / 2], k % 2 * 2 + 1) >> 2 * q & 0x03030303;
                }
                multiply(sums[0], row, below, spins);
            }
        } else {
#pragma unroll
            for (int tile = 0; tile < TILES; ++tile) spins[tile] = *(const uint4*)(column + 8 * tile * room.pitch);
            column += 64;
#pragma unroll
            for (int limb = 0; limb < LIMBS; ++limb) {
                stream.take(words);
                const u32 row[4] = {words[0].x, words[0].y, words[0].z, words[0].w};
                const u32 below[4] = {words[1].x, words[1].y, words[1].z, words[1].w};
                multiply(sums[limb], row, below, spins);
            }
        }
    }
    const u32 site = warp / PARTS * 16 + g;
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile)
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            Unsigned sum = 0;  // a field fits, whatever its parts do
#pragma unroll
            for (int limb = LIMBS - 1; limb >= 0; --limb) sum = (sum << 8) + (Unsigned)(Integer)sums[limb][tile][k];
            const u32 replica = 8 * tile + 2 * t + k % 2;
            atomicAdd((Unsigned*)room.sums + replica * PITCH + site + k / 2 * 8, sum);
        }
}
