// Sweeps and measurements of one replica of each sample, site-packed: many measurements a launch. A replica alone has no one to exchange its
// temperature with.
#include "metropolis/site_packed_words.cuh"
#include "tempering/exchange.cuh"
#include "tempering/notes.cuh"

// What is counted of a lattice: spins +1, unsatisfied bonds, spins +1 of colour 0.
struct Ones {
    u32 up, unsatisfied, up_first;

    // Of a thread's words of colours 0 and 1; `wanted` is what the bonds of the latter ask for.
    template <int SLOTS>
    __device__ __forceinline__ static Ones of(u32 spin, u32 other, const u32 (&wanted)[SLOTS], u32 used) {
        Ones ones = {(u32)(__popc(spin & used) + __popc(other & used)), 0, (u32)__popc(spin & used)};
#pragma unroll
        for (int k = 0; k < SLOTS; ++k) ones.unsatisfied += __popc((wanted[k] ^ other) & used);
        return ones;
    }
    __device__ __forceinline__ void add_to(u32 (&sums)[3]) const {
        atomicAdd(sums, up), atomicAdd(sums + 1, unsatisfied), atomicAdd(sums + 2, up_first);
    }
};

// Where they go after a round.
struct Measurement {
    const Exchange& exchange;
    const LaneSums& sums;
    const Notes& notes;
    const Measured& measured;
    u32 samples;

    // By one thread; `number` is that of the measurement, none below 0.
    __device__ __forceinline__ void write(u32 sample, int number, bool last, const Counted& counted) const {
        if (last) sums.up[sample] = counted.one, sums.unsatisfied[sample] = counted.other, sums.up_first[sample] = counted.third;
        if (number < 0) return;
        const Exchange own = exchange.of(sample);
        measured.write(notes.to + number * measured.size, own, sample, [&](int) { return counted; }, 0, 1);
    }
    // Begins a launch: the first exchange of one temperature finds the replica at the hot end.
    __device__ __forceinline__ void begin(u32 sample) const { exchange.of(sample).last_end[0] = FROM_HOT; }

    // Copies a word of a lattice that has so many of a colour.
    __device__ __forceinline__ void copy(u32 sample, int number, u32 words, u32 word, u32 spin, u32 other) const {
        u32* const to = (u32*)notes.copies + ((size_t)number * samples + sample) * 2 * words + word;
        to[0] = spin, to[words] = other;
    }
};

// Lattices one after the other, as many to a block as it has threads for.
template <int DIMENSION, bool SIGNED, bool FIELD, int KIND, int ROUNDS>
__global__ __launch_bounds__(WORD_THREADS) void measure_words(u32* state, AnyRows rows, Signs signs, UniformTables tables, u32 samples,
                                                            Exchange exchange, LaneSums sums, u32 first_sample, u32 first_replica,
                                                            u64 first_half_sweep, u32 sweeps, u32 rounds, Notes notes, Measured measured,
                                                            Key key) {
    using Own = OwnWord<DIMENSION, SIGNED, FIELD, KIND, ROUNDS>;
    __shared__ u32 in_shared[2][WORD_THREADS];
    __shared__ u32 counts[MOST_TOGETHER][3];
    __shared__ UniformRules<typename Own::R> rules[MOST_TOGETHER];
    const u32 words = 4 * rows.groups, together = blockDim.x / words, place = threadIdx.x / words;
    const u32 number = blockIdx.x * together + place, word = threadIdx.x % words;
    const bool there = place < together && number < samples;
    const u32 here = min(place, together - 1), sample = min(number, samples - 1), first = here * words;  // of some other where there is none
    const size_t rules_of = tables.part(sample, 0);
    const UniformThresholds thresholds = {tables.thresholds + (rules_of << Own::R::BITS)};
    const Measurement measurement = {exchange, sums, notes, measured, samples};
    if (there) rules[here].load(tables, rules_of, word, words);
    if (there && word == 0) measurement.begin(sample);
    const Own own(rows, word, signs, sample, counter_block(first_sample + sample, first_replica));
    u32* const global = state + (size_t)sample * 2 * words + word;
    u32 mine = global[0], other = global[words];  // of colours 0 and 1 after whole sweeps
    if (there) in_shared[1][first + word] = other;
    u64 half_sweep = first_half_sweep;
    u32 wanted[Own::R::SLOTS];  // by the bonds of colour 1 after a sweep
    for (u32 done = 0, left = notes.every; done < rounds; ++done) {
        const bool last = done + 1 == rounds, noted = --left == 0;  // never, if `every` is 0
        for (u32 half = 0; half < 2 * sweeps; ++half, ++half_sweep) {
            const u32 colour = half & 1;
            const HalfSweep time = counter_half_sweep(half_sweep, STREAM_UPDATE);
            const WordRandom random = own.draw(time, key);
            own.load_signs(colour, wanted);
            __syncthreads();
            mine ^= own.flips(colour, mine, SharedWords{in_shared[1 - colour] + first}, wanted, random, rules[here], thresholds, time, key);
            if (there) in_shared[colour][first + word] = mine;
            const u32 next = other;
            other = mine, mine = next;
        }
        if (!last && !noted) continue;
        const int note = noted ? (int)(done / (u32)notes.every) : -1;
        if (threadIdx.x < 3 * MOST_TOGETHER) counts[threadIdx.x / 3][threadIdx.x % 3] = 0;
        __syncthreads();
        if (there) {
            Ones::of(mine, other, wanted, own.used).add_to(counts[here]);
            if (noted) measurement.copy(sample, note, words, word, mine, other);
        }
        __syncthreads();
        if (there && word == 0) measurement.write(sample, note, last, {counts[here][0], counts[here][1], counts[here][2]});
        if (noted) left = notes.every;
    }
    if (there) global[0] = mine, global[words] = other;
}

// Numbers that the blocks of a lattice add up of each measurement, and of the last round: the block that comes last writes what follows from
// them and clears them. Two words: unsatisfied bonds; spins +1, those of colour 0, and blocks in the upper bits.
struct Scratch {
    static constexpr u32 BITS = 27, BLOCKS = 2 * BITS;
    u64* words;   // [sample][number][2]
    size_t most;  // numbers of a sample

    // By one thread of a block, of its sums. Says if it was the last block, and returns the totals then.
    __device__ __forceinline__ bool add(u32 sample, u32 number, const u32 (&sums)[3], Counted& totals) const {
        u64* const mine = words + (sample * most + number) * 2;
        atomicAdd(mine, (u64)sums[1]);
        asm volatile("fence.acq_rel.gpu;" ::: "memory");
        const u64 before = atomicAdd(mine + 1, 1ull << BLOCKS | (u64)sums[0] << BITS | sums[2]);
        if ((before >> BLOCKS) + 1 < gridDim.x) return false;
        asm volatile("fence.acq_rel.gpu;" ::: "memory");
        const u64 all = before + ((u64)sums[0] << BITS | sums[2]), mask = (1ull << BITS) - 1;
        totals = {(long long)(all >> BITS & mask), (long long)__ldcg(mine), (long long)(all & mask)};
        mine[0] = mine[1] = 0;
        return true;
    }
};
static_assert(HOST(engine.moves.metropolis.cuda_spread.MOST_BLOCKS) >> (64 - Scratch::BLOCKS) == 0, "blocks can be counted");
CHECK_STRUCT(Scratch, engine.moves.metropolis.site_packed.cuda_words.SCRATCH);

// Samples in z; all blocks are resident. dated[sample][colour][word] as for sweep_spread.
template <int DIMENSION, bool SIGNED, bool FIELD, int KIND, int ROUNDS>
__global__ __launch_bounds__(SPREAD_THREADS, SPREAD_BLOCKS) void measure_spread(u32* state, u64* dated, AnyRows rows, Signs signs,
                                                                                UniformTables tables, Exchange exchange, LaneSums sums,
                                                                                Scratch scratch, u32 first_sample, u32 first_replica,
                                                                                u64 first_half_sweep, u32 sweeps, u32 rounds, u32 date,
                                                                                Notes notes, Measured measured, Key key) {
    using Own = OwnWord<DIMENSION, SIGNED, FIELD, KIND, ROUNDS>;
    __shared__ UniformRules<typename Own::R> rules;
    __shared__ u32 counts[3];
    const u32 sample = blockIdx.z, words = 4 * rows.groups, number = blockIdx.x * blockDim.x + threadIdx.x;
    const bool there = number < words;
    const u32 word = there ? number : threadIdx.x % 4;  // a thread without a word does what is not written
    const size_t rules_of = tables.part(sample, 0);
    const UniformThresholds thresholds = {tables.thresholds + (rules_of << Own::R::BITS)};
    const Measurement measurement = {exchange, sums, notes, measured, gridDim.z};
    rules.load(tables, rules_of, threadIdx.x, blockDim.x);
    const Own own(rows, word, signs, sample, counter_block(first_sample + sample, first_replica));
    u32* const global = state + (size_t)sample * 2 * words + word;
    u64* const present = dated + (size_t)sample * 2 * words;
    u32 mine = global[0], other = global[words];  // of colours 0 and 1 after whole sweeps
    if (there) DatedWords::write(present + word, mine, date), DatedWords::write(present + words + word, other, date);
    __syncthreads();
    u64 half_sweep = first_half_sweep;
    u32 wanted[Own::R::SLOTS];  // by the bonds of colour 1 after a sweep
    for (u32 done = 0, left = notes.every; done < rounds; ++done) {
        const bool last = done + 1 == rounds, noted = --left == 0;  // never, if `every` is 0
        for (u32 half = 0; half < 2 * sweeps; ++half, ++half_sweep, ++date) {
            const u32 colour = half & 1;
            const HalfSweep time = counter_half_sweep(half_sweep, STREAM_UPDATE);
            const WordRandom random = own.draw(time, key);
            own.load_signs(colour, wanted);
            mine ^= own.flips(colour, mine, DatedWords{present + (1 - colour) * words, date}, wanted, random, rules, thresholds, time, key);
            if (there) DatedWords::write(present + colour * words + word, mine, date + 1);
            const u32 next = other;
            other = mine, mine = next;
        }
        if (!last && !noted) continue;
        const int note = noted ? (int)(done / (u32)notes.every) : -1;
        if (threadIdx.x == 0) counts[0] = counts[1] = counts[2] = 0;  // by the thread that has read those before
        __syncthreads();
        if (there) {
            Ones::of(mine, other, wanted, own.used).add_to(counts);
            if (noted) measurement.copy(sample, note, words, word, mine, other);
        }
        __syncthreads();
        Counted totals;
        if (threadIdx.x == 0 && scratch.add(sample, noted ? note : scratch.most - 1, counts, totals)) {
            measurement.begin(sample);
            measurement.write(sample, note, last, totals);
        }
        if (noted) left = notes.every;
    }
    if (there) global[0] = mine, global[words] = other;
}
