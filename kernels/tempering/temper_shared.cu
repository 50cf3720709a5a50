// Parallel tempering of samples of at most 128 replicas whose lattice is in shared memory: many rounds a launch.
#include "metropolis/shared_lattice.cuh"
#include "tempering/energy_tally.cuh"
#include "tempering/shared_ladder.cuh"
#include "tempering/notes.cuh"

constexpr int GROUPED = HOST(engine.moves.metropolis.replica_packed.cuda_lattices.GROUPED);
constexpr int PLACE_BITS = HOST(engine.moves.metropolis.replica_packed.cuda_lattices.PLACE_BITS), FIRST_SIGN = PLACE_BITS * (GROUPED + 1);
constexpr u64 PLACE_MASK = (1 << PLACE_BITS) - 1;
static_assert(FIRST_SIGN + GROUPED <= 64, "a word holds the bonds of one place");

// Holds bonds of a place with up to GROUPED others, PLACE_BITS each, from the lowest bits on; then signs. What is missing is a
// bond with itself.
struct Bonds {
    const u64* groups;     // [sample][group]
    size_t stride, count;  // from sample to sample, 0 where all share them; groups of a sample
};
CHECK_STRUCT(Bonds, engine.moves.metropolis.replica_packed.cuda_lattices.BONDS);

// Adds `weight` times the set bits of every lane in WORDS words of each of `items` to totals[128] in shared memory, by a whole
// block.
template <int WORDS, int AT_ONCE, typename Item>
__device__ __forceinline__ void count_block(const Item& item, u32 items, u32* totals, u32 weight = 1) {
    constexpr int COUNTED = 5;
    constexpr u32 MOST = 31 / (WORDS * AT_ONCE) * AT_ONCE;  // of a thread, that the planes hold
    for (u32 base = 0; base < items; base += MOST * blockDim.x) {
        Counters<COUNTED, 4> counters;
        counters.clear();
#pragma unroll 1
        for (u32 k = 0; k < MOST && base + k * blockDim.x < items; k += AT_ONCE) {
            u32 word[4][WORDS * AT_ONCE];
#pragma unroll
            for (int n = 0; n < AT_ONCE; ++n) {
                const u32 i = base + (k + n) * blockDim.x + threadIdx.x;
                uint4 lanes[WORDS] = {};
                if (i < items) item(i, lanes);
#pragma unroll
                for (int j = 0; j < WORDS; ++j)
#pragma unroll
                    for (int w = 0; w < 4; ++w) word[w][n * WORDS + j] = word_of(lanes[j], w);
            }
            counters.add(word);
        }
        add_warp(counters, totals, weight);
    }
}

// Adds every lane's spins +1 to `totals`; those of the first `first_sites` places are added to the upper half as well.
__device__ __forceinline__ void count_up(const uint4* words, u32 first_sites, u32 sites, u32* totals) {
    static_assert(PLACE_BITS < 16, "both counts fit into a word");
    for (u32 begin = 0, end = first_sites ? first_sites : sites; begin < sites; begin = end, end = sites)
        count_block<1, 4>([&](u32 i, uint4 (&spin)[1]) { spin[0] = words[begin + i]; }, end - begin, totals,
                          begin < first_sites ? 0x10001 : 1);
}

// Adds every lane's unsatisfied bonds, bond by bond.
__device__ __forceinline__ void count_bonds(const uint4* words, const u64* groups, u32 count, u32* totals) {
    count_block<GROUPED, 4>(
        [&](u32 i, uint4 (&differ)[GROUPED]) {
            const u64 group = __ldg(groups + i);
            const uint4 own = words[group & PLACE_MASK];
#pragma unroll
            for (int k = 0; k < GROUPED; ++k) {
                const uint4 other = words[group >> PLACE_BITS * (k + 1) & PLACE_MASK];
                const u32 sign = 0u - (u32)(group >> (FIRST_SIGN + k) & 1);
                differ[k] = make_uint4(parity(own.x, other.x, sign), parity(own.y, other.y, sign),
                                       parity(own.z, other.z, sign), parity(own.w, other.w, sign));
            }
        },
        count, totals);
}

// Where `tallied`, bonds are counted while the last colour is updated, and `phantoms` bonds with them that are none. The first
// sublattice has the first `first_sites` places.
template <int SLOTS, int COUNT_BITS, bool FIELD, int KIND, int ROUNDS>
__global__ __launch_bounds__(MOST_SHARED_THREADS, 1) void temper_shared(uint4* state, u32 sites, const Batch* batches,
                                                        const int* colour_start, int colours, Model model, const uint4* lanes,
                                                        Ladder ladder, Exchange exchange, Bonds bonds, long long per_up,
                                                        long long per_unsatisfied, u32 tallied, u32 phantoms,
                                                        u32 first_sites, LaneSums sums, u32 first_sample,
                                                        u64 first_half_sweep, u32 sweeps, u64 first_round, u32 rounds,
                                                        Notes notes, Measured measured, Key key) {
    using R = Rule<SLOTS, COUNT_BITS, FIELD, KIND, ROUNDS>;
    extern __shared__ uint4 shared[];
    __shared__ SharedLadder<R> in_shared;
    static_assert(sizeof(in_shared) <= HOST(engine.moves.metropolis.replica_packed.cuda_lattices.LADDER_BYTES), "the host leaves room for it");
    const u32 sample = blockIdx.z;
    const bool is_tallied = EnergyTally<R>::POSSIBLE && tallied;
    const u32 none = is_tallied ? 0u - phantoms : 0u;
    SharedLattice<R> lattice(shared, sites);
    EnergyTally<R> tally(lattice.behind(), in_shared.unsatisfied, is_tallied);
    lattice.load(state + (size_t)sample * sites, *lanes);
    in_shared.load(exchange.of(sample), ladder, none);
    __syncthreads();
    in_shared.lay(lattice.always_rows(), lattice.plane_rows(), ladder);
    wait_for_copies();
    for (u32 done = 0, left = notes.every; done < rounds; ++done) {
        const bool last = done + 1 == rounds, noted = --left == 0;  // never, if `every` is 0
        u64 half_sweep = first_half_sweep + (u64)done * sweeps * colours;
        const auto thresholds = [&](u32 parity) { return in_shared.thresholds(ladder, parity); };
        lattice.sweep(sweeps, half_sweep, batches, colour_start, colours, model, thresholds, sample,
                      counter_block(first_sample + sample, 0), key, tally);
        if (!is_tallied) count_bonds(lattice.words, bonds.groups + sample * bonds.stride, bonds.count, in_shared.unsatisfied);
        if (FIELD || last || noted) count_up(lattice.words, last || noted ? first_sites : 0, sites, in_shared.up);
        if (!is_tallied || FIELD || last || noted) __syncthreads();
        in_shared.exchange(exchange.of(sample), per_up, per_unsatisfied, first_round + done, first_sample + sample, key);
        if (noted) {
            __syncthreads();
            const size_t number = done / (u32)notes.every;
            lattice.store(notes.copies + (number * gridDim.z + sample) * sites);
            measured.write(notes.to + number * measured.size, in_shared.near(exchange.of(sample)), sample,
                           [&](int replica) -> Counted {
                               return {in_shared.all_up(replica), in_shared.unsatisfied[replica], in_shared.up[replica] >> 16};
                           });
            left = notes.every;
            __syncthreads();
        }
        for (u32 r = threadIdx.x; r < 128; r += blockDim.x) {
            const u32 at = sample * 128 + r;
            if (last) sums.up[at] = in_shared.all_up(r), sums.unsatisfied[at] = in_shared.unsatisfied[r], sums.up_first[at] = in_shared.up[r] >> 16;
            in_shared.up[r] = 0, in_shared.unsatisfied[r] = none;
        }
        if (!last) in_shared.lay(lattice.always_rows(), lattice.plane_rows(), ladder);
        __syncthreads();
    }
    lattice.store(state + (size_t)sample * sites);
    in_shared.store(exchange.of(sample));
}
