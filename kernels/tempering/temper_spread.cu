// Parallel tempering of few samples of at most 128 replicas, each spread over the GPU: many rounds a launch. All blocks of a sample wait for
// each other once a round, to add up energies; each of them follows the sample's ladder in shared memory.
#include "metropolis/spread_lattice.cuh"
#include "tempering/shared_ladder.cuh"
#include "tempering/notes.cuh"

// Sums over all blocks of a sample of numbers that each of them knows of every lane, in words to which every block adds, itself in the upper
// bits. Words are never cleared: sums are what they gain. Of two that take turns, one is added to again only when all have read it.
struct BlockSums {
    static constexpr u32 LANES = 128, BITS = 22;
    static constexpr u32 PLACES = 4 * LANES;  // eight lanes are 128 bytes from the next, as one slice of the cache is slow to serve all
    enum Kind { UNSATISFIED, UP_FIRST, UP_OTHER, KINDS };
    u32 *sums, *before;  // [sample][2 kinds][place], [sample][2 kinds][lane] when the launch begins

    __device__ __forceinline__ BlockSums of(u32 sample) const { return {sums + sample * 2 * KINDS * PLACES, before + sample * 2 * KINDS * LANES}; }

    __device__ __forceinline__ u32* word(Kind kind, u32 turn, u32 lane) const {
        return sums + (2 * kind + turn % 2) * PLACES + lane / 8 * 32 + lane % 8;
    }
    __device__ __forceinline__ void add(Kind kind, u32 turn, u32 number) const { atomicAdd(word(kind, turn, threadIdx.x), 1u << BITS | number); }

    // Returns the sum of a thread's lane once all blocks have added to it; `last` has the words, [2 kinds][lane], when last read.
    __device__ __forceinline__ u32 wait(Kind kind, u32 turn, u32* last) const {
        u32 *const before = last + (2 * kind + turn % 2) * LANES, now;
        const auto reach = [&](u32 lane) {
            const u32* const place = word(kind, turn, lane);
            do asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(place) : "memory");
            while (__any_sync(~0u, (now - before[lane]) >> BITS < gridDim.x));
        };
        if (gridDim.x > MOST_ASKING) reach(threadIdx.x & ~31u);
        reach(threadIdx.x);
        const u32 gained = now - before[threadIdx.x];
        before[threadIdx.x] = now;
        return gained & ((1u << BITS) - 1);
    }

private:
    static constexpr u32 MOST_ASKING = 100;  // blocks whose threads ask for their words at once; of more, a warp asks for one first
};
CHECK_STRUCT(BlockSums, engine.moves.metropolis.replica_packed.cuda_lattices.BLOCK_SUMS);
static_assert(BlockSums::KINDS == HOST(engine.moves.metropolis.replica_packed.cuda_lattices.SUMS_A_LANE), "the host makes room for them");
static_assert(BlockSums::PLACES == HOST(engine.moves.metropolis.replica_packed.cuda_lattices.SUM_PLACES), "the host makes room for them");
static_assert(HOST(engine.moves.metropolis.cuda_spread.MOST_BLOCKS) >> (32 - BlockSums::BITS) == 0, "blocks can be counted");
static_assert(SPREAD_THREADS == BlockSums::LANES, "a thread of a block has a lane of the sums");

// `phantoms` bonds that are none are counted with the others.
template <int SLOTS, int COUNT_BITS, bool FIELD, int KIND, int ROUNDS>
__global__ __launch_bounds__(SPREAD_THREADS, SPREAD_BLOCKS) void temper_spread(uint4* state, u64* dated, u32 sites, const Batch* batches,
                                                            Model model, const uint4* lanes, Ladder ladder, Exchange exchange,
                                                            long long per_up, long long per_unsatisfied, u32 phantoms, u32 first_sites,
                                                            LaneSums sums, BlockSums all_blocks, u32 first_sample,
                                                            u64 first_half_sweep, u32 sweeps, u64 first_round, u32 rounds,
                                                            Notes notes, Measured measured, u32 date,
                                                            Key key) {
    using R = Rule<SLOTS, COUNT_BITS, FIELD, KIND, ROUNDS>;
    constexpr u32 PARITY = SharedTables<R>::PARITY, CLASSES = SharedTables<R>::CLASSES;
    __shared__ SharedTables<R> tables;
    __shared__ SharedLadder<R> in_shared;
    __shared__ u32 last_sums[2 * BlockSums::KINDS * BlockSums::LANES];
    const u32 sample = blockIdx.z, thread = threadIdx.x, counter = counter_block(first_sample + sample, 0);
    const bool tells = blockIdx.x == 0;  // one block of a sample writes what all know
    const Exchange own = exchange.of(sample);
    uint4* const home = state + (size_t)sample * sites;
    const auto lay = [&] { in_shared.lay(tables.always - PARITY * CLASSES, tables.planes - PARITY * PLANES * CLASSES, ladder); };
    in_shared.load(own, ladder, 0);
    SpreadLattice<R> lattice(home, dated + 4 * (size_t)sample * sites, batches, model, *lanes, sample, counter, date);
    __syncthreads();
    lay();
    __syncthreads();
    u64 half_sweep = first_half_sweep;
    u32 wanted[SLOTS];
    const BlockSums totals = all_blocks.of(sample);
    for (u32 i = thread; i < 2 * BlockSums::KINDS * BlockSums::LANES; i += SPREAD_THREADS) last_sums[i] = totals.before[i];
    u32 counted_up = 0;  // rounds after which spins +1 were counted
    WordRandom random = lattice.template draw<0>(half_sweep, key);
    for (u32 done = 0, left = notes.every; done < rounds; ++done) {
        const bool last = done + 1 == rounds, noted = --left == 0, counts_up = FIELD || last || noted;  // never noted, if `every` is 0
        lattice.sweep(sweeps, random, tables, in_shared.thresholds(ladder, PARITY), half_sweep, date, key, wanted);
        lattice.count_bonds(wanted, in_shared.unsatisfied);
        if (counts_up) lattice.count_up(first_sites ? 0x10001 : 1, in_shared.up);
        __syncthreads();
        totals.add(BlockSums::UNSATISFIED, done, in_shared.unsatisfied[thread]);
        if (counts_up) {
            const u32 first = in_shared.up[thread] >> 16;
            totals.add(BlockSums::UP_FIRST, counted_up, first);
            totals.add(BlockSums::UP_OTHER, counted_up, in_shared.all_up(thread) - first);
        }
        random = lattice.template draw<0>(half_sweep, key);
        in_shared.unsatisfied[thread] = totals.wait(BlockSums::UNSATISFIED, done, last_sums) - phantoms;
        if (counts_up) {
            const u32 first = totals.wait(BlockSums::UP_FIRST, counted_up, last_sums);
            in_shared.up[thread] = first << 16 | (first + totals.wait(BlockSums::UP_OTHER, counted_up, last_sums));
            ++counted_up;
        }
        __syncthreads();
        in_shared.exchange(own, per_up, per_unsatisfied, first_round + done, first_sample + sample, key, tells);
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
    for (u32 i = thread; i < 2 * BlockSums::KINDS * BlockSums::LANES; i += SPREAD_THREADS) totals.before[i] = last_sums[i];
}
