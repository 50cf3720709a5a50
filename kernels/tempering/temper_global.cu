// Parallel tempering of samples of at most 128 replicas whose lattice is in global memory: many rounds a launch. Thread blocks
// that share a sample are resident and wait for each other after each half-sweep; each of them follows the sample's ladder in
// shared memory, so that an exchange takes no further barrier.
#include "metropolis/replica_site.cuh"
#include "synchronisation/lattice_barrier.cuh"
#include "synchronisation/tickets.cuh"
#include "tempering/energy_tally.cuh"
#include "tempering/shared_ladder.cuh"
#include "tempering/notes.cuh"

constexpr u32 THREADS = HOST(engine.moves.metropolis.replica_packed.cuda_lattices.GLOBAL_THREADS);
static_assert(THREADS == 128, "a thread of a block is a lane of the totals");
constexpr u32 COUNTED_A_THREAD = 8;  // spins +1 of a share of the lattice

// Unsatisfied bonds of each lane, counted by all blocks of a sample in turn, [sample][2][128]: while one row is read, the other
// is cleared for the next round. `first` is the row of the launch's first round.
struct RoundTotals { u32* rows; u32 first; };
CHECK_STRUCT(RoundTotals, engine.moves.metropolis.replica_packed.cuda_lattices.ROUND_TOTALS);

// For two colours of one batch each; `phantoms` bonds that are none are counted with the others.
template <int SLOTS, int COUNT_BITS, bool FIELD, int KIND, int ROUNDS>
__global__ __launch_bounds__(THREADS, 4) void temper_global(uint4* state, u32 sites, const Batch* batches,
                                                            const int* colour_start, int colours, Model model,
                                                            const uint4* lanes, Ladder ladder, Exchange exchange,
                                                            long long per_unsatisfied, u32 phantoms, u32 first_sites,
                                                            LaneSums sums, RoundTotals totals, u32 first_sample, u64 first_half_sweep,
                                                            u32 sweeps, u64 first_round, u32 rounds, Tickets all_tickets,
                                                            LatticeBarrier barriers, Notes notes, Measured measured,
                                                            Key key) {
    using R = Rule<SLOTS, COUNT_BITS, FIELD, KIND, ROUNDS>;
    static_assert(R::PLAIN, "bonds are counted while sites are updated");
    constexpr u32 ROWS = PLANES << R::BITS;
    __shared__ TailEntries<R::BITS> entries[THREADS / 32];
    __shared__ uint4 rows[1 + 2 * ROWS];  // lanes in use, then rows of planes of both parities
    __shared__ uint4 kept[THREADS];
    __shared__ uint4 counters[(HOST(engine.moves.metropolis.replica_packed.cuda_lattices.TALLY_BYTES) * THREADS + 15) / 16];
    __shared__ SharedLadder<R> in_shared;
    const u32 sample = blockIdx.z, thread = threadIdx.x, counter = counter_block(first_sample + sample, 0);
    const bool tells = blockIdx.x == 0;  // one block of a sample writes what all know
    uint4* const lattice = state + (size_t)sample * sites;
    const Exchange own = exchange.of(sample);
    Tail<R::BITS> tail(entries[thread / 32]);
    EnergyTally<R, true> tally(counters, in_shared.unsatisfied, true);
    in_shared.load(own, ladder, 0);
    if (thread == 0) rows[0] = *lanes;
    if (tells) sums.up[sample * 128 + thread] = sums.up_first[sample * 128 + thread] = 0;
    __syncthreads();
    in_shared.lay(rows + 1, rows + 1, ladder);
    __syncthreads();
    const SharedRows used = {(u32)__cvta_generic_to_shared(rows)};
    const LatticeBarrier barrier = barriers.of(sample);
    const u32 warp = blockIdx.x * (THREADS / 32) + thread / 32;
    Tickets tickets = all_tickets.of(sample);
    u64 half_sweep = first_half_sweep;
    u32 arrivals = 0, seen = 0;
    const auto wait = [&] {
        if (seen < arrivals) barrier.wait(arrivals);
        seen = arrivals;
    };
    // Adds the spins +1 of this block's share of the lattice to the sums, which are 0, and copies it where `copy` is not null.
    const auto count_up = [&](uint4* copy) {
        const auto count = [&](u32 begin, u32 end, u64* to) {
            const u32 share = COUNTED_A_THREAD * THREADS;
            const auto spins = [=](u32 i) {
                const uint4 word = __ldcg(lattice + i);
                if (copy) copy[i] = word;
                return word;
            };
            for (u32 first = begin + blockIdx.x * share; first < end; first += gridDim.x * share)
                add_warp(count_strided<4>(spins, first + thread, min(end, first + share)), in_shared.up);
            __syncthreads();
            if (in_shared.up[thread]) atomicAdd(to + sample * 128 + thread, (u64)in_shared.up[thread]);
            __syncthreads();
        };
        count(0, first_sites, sums.up_first);
        count(first_sites, sites, sums.up);
        in_shared.up[thread] = 0;
    };
    for (u32 done = 0, left_rounds = notes.every; done < rounds; ++done) {
        const bool last = done + 1 == rounds, noted = --left_rounds == 0;  // never, if `every` is 0
        u32* const row = totals.rows + (sample * 2 + ((totals.first + done) & 1)) * 128;
        u32* const next = totals.rows + (sample * 2 + ((totals.first + done + 1) & 1)) * 128;
        for (u32 left = colours * sweeps; left > 0; --left, ++half_sweep) {
            const HalfSweep time = counter_half_sweep(half_sweep, STREAM_UPDATE);
            const Batch batch = batches[colour_start[half_sweep % (u32)colours]];
            tally.begin_half_sweep(left == 1);
            update_sites<R, true>({batch, model, sample, kept + thread}, lattice, batch.first + 32 * warp,
                                  batch.first + batch.size, InTurn{tickets, batch.first}, used,
                                  used.from(1 + batch.parity * ROWS), in_shared.thresholds(ladder, batch.parity), used, counter,
                                  time, key, tail, wait, tally);
            tickets.pass((batch.size + 31) / 32);
            tally.end_half_sweep();
            if (left == 1) {
                __syncthreads();
                atomicAdd(row + thread, in_shared.unsatisfied[thread]);
            }
            barrier.arrive();
            ++arrivals;
        }
        wait();
        in_shared.unsatisfied[thread] = __ldcg(row + thread) - phantoms;
        if (tells) next[thread] = 0;  // all have read it, and none adds to it before the next barrier
        __syncthreads();
        in_shared.exchange(own, 0, per_unsatisfied, first_round + done, first_sample + sample, key, tells);
        if (tells && last) sums.unsatisfied[sample * 128 + thread] = in_shared.unsatisfied[thread];
        if (noted || last) {
            const size_t number = notes.every ? done / (u32)notes.every : 0;
            __syncthreads();
            count_up(noted ? notes.copies + (number * gridDim.z + sample) * sites : nullptr);
            left_rounds = notes.every;
            if (noted) {
                barrier.arrive();
                ++arrivals;
                wait();  // until all have copied and counted
                if (tells) {
                    u64 *const up = sums.up + sample * 128 + thread, *const up_first = sums.up_first + sample * 128 + thread;
                    kept[thread] = make_uint4((u32)__ldcg(up), (u32)__ldcg(up_first), 0, 0);
                    if (!last) *up = *up_first = 0;  // none adds to them before the next barrier
                    __syncthreads();
                    measured.write(notes.to + number * measured.size, in_shared.near(own), sample, [&](int replica) -> Counted {
                        return {kept[replica].x, in_shared.unsatisfied[replica], kept[replica].y};
                    });
                }
                __syncthreads();
            }
        }
        in_shared.unsatisfied[thread] = 0;
        in_shared.lay(rows + 1, rows + 1, ladder);
        __syncthreads();
    }
    if (tells) in_shared.store(own);
}
