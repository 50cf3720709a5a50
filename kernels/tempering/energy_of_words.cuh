// Exact energies, and numbers of spins +1, of replicas whose words a thread block holds in shared memory.
#pragma once
#include "metropolis/unpacked.cuh"

constexpr u32 DIGIT_BITS = HOST(engine.moves.metropolis.unpacked_cuda.DIGIT_BITS);

// Bonds in rows of a place and up to six others, each bond once; a field is a bond with a neighbour that is always +1.
struct CountedBonds {
    const u32* near;       // [row][ROW]: places; the seventh is that of the row, which also stands in slots of no bond
    const int* couplings;  // [digit][sample][row][ROW]: digits of couplings in quanta, 0 in slots of no bond
    size_t digits, stride, rows;  // from digit to digit; from sample to sample, 0 where all share them; in all
};
CHECK_STRUCT(CountedBonds, engine.moves.metropolis.unpacked_cuda.COUNTED_BONDS);

// Adds up what the lanes of a pair that are APART have of a warp's sums; each keeps half of 2 * KEPT sums, the upper lane the upper.
template <int APART, int KEPT>
__device__ __forceinline__ void share_sums(long long (&sum)[32]) {
    const bool upper = threadIdx.x & APART;
#pragma unroll
    for (int k = 0; k < KEPT; ++k) {
        const long long kept = upper ? sum[k + KEPT] : sum[k], other = upper ? sum[k] : sum[k + KEPT];
        sum[k] = kept + __shfl_xor_sync(~0u, other, APART);
    }
}

// Adds to a sum of 64 bits in shared memory: two additions of 32 bits, as one of 64 would be tried again while others add to it.
__device__ __forceinline__ void add_to(u64* sum, long long number) {
    u32* const halves = (u32*)sum;
    const u32 low = number, before = atomicAdd(halves, low);
    atomicAdd(halves + 1, (u32)(number >> 32) + (before > ~low));
}

// Adds energies in quanta to `energy`, [replica of the block] in shared memory, by a whole block, which has `lattice` there, as
// sweep_words takes it.
template <int DIGITS>
__device__ __forceinline__ void add_energies(const CountedBonds& bonds, const Word& mine, const Sums& sums, u32 sample,
                                             const u32* lattice, u64* energy) {
    const u32 words = mine.words, of_warp = 32 / words, rows = bonds.rows, warps = blockDim.x / 32;
    long long sum[32] = {};  // of couplings times both spins
    for (u32 first = threadIdx.x / 32 * of_warp; __any_sync(~0u, first < rows); first += warps * of_warp) {
        const bool there = first + mine.own < rows;
        const u32* const near = bonds.near + (size_t)min(first + mine.own, rows - 1) * ROW;
        const uint4 four = *(const uint4*)near, rest = *(const uint4*)(near + 4);
        const u32 places[SLOTS] = {four.x, four.y, four.z, four.w, rest.x, rest.y}, spin = lattice[rest.z * words];
        u32 bits[8] = {};
#pragma unroll
        for (int j = 0; j < SLOTS; ++j) bits[2 + j] = lattice[places[j] * words] ^ spin;
        transpose_octets(bits);
#pragma unroll
        for (int digit = 0; digit < DIGITS; ++digit) {
            sums.lay(bonds.couplings + digit * bonds.digits + sample * bonds.stride + (size_t)first * ROW, min(of_warp, rows - first), of_warp);
            if (there) {
#pragma unroll
                for (int c = 0; c < 8; ++c)
#pragma unroll
                    for (int j = 0; j < 4; ++j)
                        sum[4 * c + j] += (long long)(int)sums.pick(bits[4 * (c % 2) + j], c / 2) << DIGIT_BITS * digit;
            }
        }
    }
    share_sums<16, 16>(sum), share_sums<8, 8>(sum), share_sums<4, 4>(sum);
    const u32 lane = threadIdx.x & 31;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        if (words < 4) sum[k] += __shfl_xor_sync(~0u, sum[k], 2);
        if (words < 2) sum[k] += __shfl_xor_sync(~0u, sum[k], 1);
        if (lane % 4 < words) add_to(energy + 32 * mine.word + (lane & 28) + k, -sum[k]);
    }
}

// Adds spins +1 of every replica to `up` in shared memory, by a whole block; those of the first `first_sites` places are added to the
// upper half as well.
__device__ __forceinline__ void add_up(const u32* in_shared, u32 words, u32 first_sites, u32 sites, u32* up) {
    const u32 lane = threadIdx.x & 31, warps = blockDim.x / 32, parts = (warps + words - 1) / words;
    for (u32 task = threadIdx.x / 32; task < words * parts; task += warps) {
        const u32 word = task % words;
        u32 count = 0;
        for (u32 place = task / words; place < sites; place += parts)
            count += (in_shared[place * words + word] >> lane & 1) * (place < first_sites ? 0x10001 : 1);
        atomicAdd(up + 32 * word + lane, count);
    }
}
