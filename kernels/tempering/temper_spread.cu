// Parallel tempering of few samples of at most 128 replicas, each spread over the GPU: many rounds a launch. All blocks of a sample wait for
// each other once a round, to add up energies; each of them follows the sample's ladder in shared memory.
#include "metropolis/spread_lattice.cuh"
#include "tempering/shared_ladder.cuh"
#include "tempering/notes.cuh"

// Sums over all blocks of a sample: for each lane a word to which every block adds, the blocks in its upper bits. Words are never cleared:
// sums are what they gain. Of two words that take turns one is added to for the next round only when all have read it.
struct BlockSums {
    static constexpr u32 LANES = 128, UP = 20, BITS = 17, BLOCKS = UP + 2 * BITS;
    u64 *sums, *before;  // [sample][2][lane], now and when the launch begins

    __device__ __forceinline__ BlockSums of(u32 sample) const { return {sums + sample * 2 * LANES, before + sample * 2 * LANES}; }

    // Adds what this block knows of a lane: unsatisfied bonds and spins +1, `up` as SharedLadder has them.
    __device__ __forceinline__ static void add(u64* to, u32 unsatisfied, u32 up) {
        const u64 first = up >> 16, other = (up & 0xffff) - first;
        atomicAdd(to, 1ull << BLOCKS | other << (UP + BITS) | first << UP | unsatisfied);
    }
    // Returns the word once all blocks have added to it since it was `last`.
    __device__ __forceinline__ static u64 wait(const u64* word, u64 last) {
        u64 now;
        do asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(now) : "l"(word) : "memory");
        while (__any_sync(~0u, now - last >> BLOCKS < gridDim.x));
        return now;
    }
    __device__ __forceinline__ static u32 unsatisfied(u64 gained) { return gained & ((1u << UP) - 1); }
    __device__ __forceinline__ static u32 up(u64 gained) {
        constexpr u32 MASK = (1u << BITS) - 1;
        const u32 first = gained >> UP & MASK, other = gained >> (UP + BITS) & MASK;
        return first << 16 | (first + other);
    }
};
CHECK_STRUCT(BlockSums, engine.moves.metropolis.replica_packed.cuda_lattices.BLOCK_SUMS);
static_assert(SPREAD_THREADS == BlockSums::LANES, "a thread of a block has a lane of the sums");

// `phantoms` bonds that are none are counted with the others.
template <int SLOTS, int COUNT_BITS, bool FIELD, int KIND, int ROUNDS>
__global__ __launch_bounds__(SPREAD_THREADS, SPREAD_BLOCKS) void temper_spread(uint4* state, u64* dated, u32 sites, const Batch* batches,
                                                            Model model, const uint4* lanes, Ladder ladder, Exchange exchange,
                                                            long long per_unsatisfied, u32 phantoms, u32 first_sites,
                                                            LaneSums sums, BlockSums all_blocks, u32 first_sample,
                                                            u64 first_half_sweep, u32 sweeps, u64 first_round, u32 rounds,
                                                            Notes notes, Measured measured, u32 date,
                                                            Key key) {
    using R = Rule<SLOTS, COUNT_BITS, FIELD, KIND, ROUNDS>;
    constexpr u32 PARITY = SLOTS == 7 ? 1 : 0, ROWS = PLANES << R::BITS;
    __shared__ uint4 rows[ROWS];
    __shared__ SharedLadder<R> in_shared;
    const u32 sample = blockIdx.z, thread = threadIdx.x, counter = counter_block(first_sample + sample, 0);
    const bool tells = blockIdx.x == 0;  // one block of a sample writes what all know
    const Exchange own = exchange.of(sample);
    uint4* const home = state + (size_t)sample * sites;
    const auto lay = [&] { in_shared.lay(nullptr, rows - PARITY * ROWS, ladder); };
    in_shared.load(own, ladder, 0);
    SpreadLattice<R> lattice(home, dated + 4 * (size_t)sample * sites, batches, model, *lanes, sample, counter, date);
    __syncthreads();
    lay();
    __syncthreads();
    u64 half_sweep = first_half_sweep;
    u32 wanted[SLOTS];
    u64* const of_blocks = all_blocks.of(sample).sums + thread;
    u64* const kept = all_blocks.of(sample).before + thread;
    u64 present = kept[0], next = kept[BlockSums::LANES];  // the word of this round, and of the next, when last read
    WordRandom random = lattice.template draw<0>(half_sweep, key);
    for (u32 done = 0, left = notes.every; done < rounds; ++done) {
        const bool last = done + 1 == rounds, noted = --left == 0, counts_up = last || noted;  // never noted, if `every` is 0
        lattice.sweep(sweeps, random, rows, in_shared.thresholds(ladder, PARITY), half_sweep, date, key, wanted);
        lattice.count_bonds(wanted, in_shared.unsatisfied);
        if (counts_up) lattice.count_up(first_sites ? 0x10001 : 1, in_shared.up);
        __syncthreads();
        u64* const word = of_blocks + done % 2 * BlockSums::LANES;
        BlockSums::add(word, in_shared.unsatisfied[thread], in_shared.up[thread]);
        random = lattice.template draw<0>(half_sweep, key);
        const u64 now = BlockSums::wait(word, present), gained = now - present;
        in_shared.unsatisfied[thread] = BlockSums::unsatisfied(gained) - phantoms;
        in_shared.up[thread] = BlockSums::up(gained);
        present = next, next = now;
        __syncthreads();
        in_shared.exchange(own, 0, per_unsatisfied, first_round + done, first_sample + sample, key, tells);
        if (noted) {
            const size_t number = done / (u32)notes.every;
            lattice.store(notes.copies + (number * gridDim.z + sample) * sites);
            __syncthreads();
            if (tells)
                measured.write(notes.to + number * measured.size, in_shared.near(own), sample, [&](int replica) -> Counted {
                    return {in_shared.all_up(replica), in_shared.unsatisfied[replica], in_shared.up[replica] >> 16};
                });
            left = notes.every;
            __syncthreads();
        }
        if (tells && last) {
            const u32 at = sample * 128 + thread;
            sums.up[at] = in_shared.all_up(thread), sums.unsatisfied[at] = in_shared.unsatisfied[thread];
            sums.up_first[at] = in_shared.up[thread] >> 16;
        }
        in_shared.unsatisfied[thread] = in_shared.up[thread] = 0;
        lay();
        __syncthreads();
    }
    lattice.store(home);
    if (!tells) return;
    in_shared.store(own);
    kept[rounds % 2 * BlockSums::LANES] = present, kept[(rounds + 1) % 2 * BlockSums::LANES] = next;
}
