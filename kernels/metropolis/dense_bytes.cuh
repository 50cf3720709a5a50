// What one thread block has of a dense model: a group of replicas whose spins stay in shared memory, and the local fields of 64
// sites at a time, from a product of couplings, which stream past, and spins.
#pragma once
#include "gemm/mma_int8.cuh"
#include "metropolis/refined.cuh"
#include "synchronisation/async_copy.cuh"

constexpr int THREADS = HOST(engine.metropolis.dense.cuda_bytes.THREADS), WARPS = THREADS / 32;
constexpr int SITES = HOST(engine.metropolis.dense.plan.SITES);  // of a block of the sweep
constexpr int STAGE = HOST(engine.metropolis.dense.matrix.STAGE);  // bytes of couplings that a warp fetches at once
constexpr int STAGES = HOST(engine.metropolis.dense.cuda_bytes.STAGES);  // that it has room for
constexpr int PITCH = SITES + HOST(engine.metropolis.dense.cuda_bytes.APART);  // of a replica's fields: other banks than the next one's
constexpr int GAP = HOST(engine.metropolis.dense.cuda_bytes.GAP);  // bytes between replicas' spins, likewise

constexpr int PARTS = HOST(engine.metropolis.dense.matrix.PARTS);  // of the depth of the product, in which warps have 16 sites
static_assert(WARPS == PARTS * SITES / 16, "warps have all sites and parts");

template <bool FIRST, typename One, typename Other>
struct Either { using type = One; };
template <typename One, typename Other>
struct Either<false, One, Other> { using type = Other; };

// What couplings of so many bytes are held in within a block of sites.
template <int BYTES>
using EntryOf = typename Either<BYTES == 1, signed char, typename Either<(BYTES <= 4), int, long long>::type>::type;
template <typename Integer>
using UnsignedOf = typename Either<sizeof(Integer) == 4, u32, u64>::type;

// Lies in shared memory.
template <int BYTES, typename Integer, int REPLICAS>
struct Room {
    using Entry = EntryOf<BYTES>;
    static constexpr int SUMS = REPLICAS * PITCH;
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
        own = (Entry*)(sums + SUMS);
        uniforms = (u32*)(own + SITES * SITES);
        per_beta = (float*)(uniforms + REPLICAS * SITES);
    }

    // Fetches the group's spins, four replicas at a time, and zeroes the sums.
    __device__ __forceinline__ void load(const signed char* from, const u32* order, u32 sites, u32 width, u32 depth, u32 there) {
        for (u32 place = threadIdx.x; place < depth; place += THREADS) {
            const u32* const words = (const u32*)(from + (size_t)(place < sites ? order[place] : 0) * width);
#pragma unroll
            for (u32 r = 0; r < REPLICAS; r += 4) {
                const u32 word = place < sites && r < there ? words[r / 4] : 0;
#pragma unroll
                for (u32 k = 0; k < 4; ++k) spins[(r + k) * pitch + place] = (signed char)(word >> 8 * k);
            }
        }
        for (u32 k = threadIdx.x; k < SUMS; k += THREADS) sums[k] = 0;
    }

    // Brings them back.
    __device__ __forceinline__ void store(signed char* to, const u32* order, u32 sites, u32 width, u32 there) const {
        for (u32 place = threadIdx.x; place < sites; place += THREADS) {
            u32* const words = (u32*)(to + (size_t)order[place] * width);
#pragma unroll
            for (u32 r = 0; r < REPLICAS; r += 4) {
                u32 word = 0;
#pragma unroll
                for (u32 k = 0; k < 4; ++k) word |= (u32)(u8)spins[(r + k) * pitch + place] << 8 * k;
                if (r < there) words[r / 4] = word;
            }
        }
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

// Stages of couplings that a warp takes for a block of sites.
template <int BYTES>
__device__ __forceinline__ u32 steps_of(u32 depth) {
    return depth / PARTS / 64 * BYTES;
}

// Multiplies couplings and spins for a block of sites.
template <int BYTES, typename Integer, int REPLICAS>
struct Product {
    static constexpr int TILES = REPLICAS / 8;
    using Shared = Room<BYTES, Integer, REPLICAS>;
    using Unsigned = UnsignedOf<Integer>;

    // A warp has 16 sites; bytes of one place of all couplings are multiplied at a time.
    __device__ __forceinline__ void make(Shared& room, CouplingStream& stream) {
        const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4, steps = stream.steps / BYTES;
        const signed char* column = room.spins + g * room.pitch + warp % PARTS * steps * 64 + 16 * t;
        int sums[BYTES][TILES][4] = {};
        for (u32 step = 0; step < steps; ++step, column += 64) {
            uint4 words[2], spins[TILES];
#pragma unroll
            for (int tile = 0; tile < TILES; ++tile) spins[tile] = *(const uint4*)(column + 8 * tile * room.pitch);
#pragma unroll
            for (int byte = 0; byte < BYTES; ++byte) {
                stream.take(words);
#pragma unroll
                for (int k = 0; k < 4; k += 2)
#pragma unroll
                    for (int tile = 0; tile < TILES; ++tile)
                        mma_int8(sums[byte][tile], word_of(words[0], k), word_of(words[1], k), word_of(words[0], k + 1),
                                 word_of(words[1], k + 1), word_of(spins[tile], k), word_of(spins[tile], k + 1));
            }
        }
#pragma unroll
        for (int tile = 0; tile < TILES; ++tile)
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                Unsigned sum = 0;  // a field fits, whatever its parts do
#pragma unroll
                for (int byte = BYTES - 1; byte >= 0; --byte) sum = (sum << 8) + (Unsigned)(Integer)sums[byte][tile][k];
                const u32 replica = 8 * tile + 2 * t + k % 2, site = warp / PARTS * 16 + g + k / 2 * 8;
                atomicAdd((Unsigned*)room.sums + replica * PITCH + site, sum);
            }
    }

    // Returns what has been added up, which is 0 again.
    __device__ __forceinline__ Integer take(Shared& room, u32 replica, u32 site) const {
        const Integer sum = room.sums[replica * PITCH + site];
        room.sums[replica * PITCH + site] = 0;
        return sum;
    }
};
