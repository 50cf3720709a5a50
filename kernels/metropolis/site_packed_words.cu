// Site-packed Metropolis where rows begin anywhere in words, a thread for each word of 32 lanes: four threads of a warp have a group of
// 128 sites. A thread keeps its word of both colours for many half-sweeps, knows where the neighbours' words are, and draws the next
// random numbers while it waits for them. Small lattices share a block (`sweep_words`); a large one is spread over the GPU
// (`sweep_spread`), where its words lie in global memory, each beside the half-sweep up to which it is done.
#include "metropolis/site_packed_words.cuh"

// `lattices` of `replicas` each sample, one after the other, as many to a block as it has threads for.
template <int DIMENSION, bool SIGNED, bool FIELD, int KIND, int ROUNDS>
__global__ __launch_bounds__(WORD_THREADS) void sweep_words(u32* state, AnyRows rows, Signs signs, UniformTables tables, u32 replicas,
                                                          u32 lattices, u32 first_sample, u32 first_replica, u64 half_sweep,
                                                          u32 half_sweeps, Key key) {
    using Own = OwnWord<DIMENSION, SIGNED, FIELD, KIND, ROUNDS>;
    __shared__ u32 in_shared[2][WORD_THREADS];
    __shared__ UniformRules<typename Own::R> rules[MOST_TOGETHER];
    const u32 words = 4 * rows.groups, together = blockDim.x / words, place = threadIdx.x / words;
    const u32 number = blockIdx.x * together + place, word = threadIdx.x % words;
    const bool there = place < together && number < lattices;
    const u32 here = min(place, together - 1), lattice = min(number, lattices - 1);  // threads without a word look at some other
    const u32 sample = lattice / replicas, replica = lattice % replicas, first = here * words;
    const size_t rules_of = tables.part(sample, replica);
    const UniformThresholds thresholds = {tables.thresholds + (rules_of << Own::R::BITS)};
    if (there) rules[here].load(tables, rules_of, word, words);
    const Own own(rows, word, signs, sample, counter_block(first_sample + sample, first_replica + replica));
    u32* const global = state + (size_t)lattice * 2 * words + word;
    u32 colour = half_sweep & 1, mine = global[colour * words], other = global[(1 - colour) * words];
    if (there) in_shared[1 - colour][first + word] = other;

    for (u32 done = 0; done < half_sweeps; ++done, ++half_sweep, colour ^= 1) {
        const HalfSweep time = counter_half_sweep(half_sweep, STREAM_UPDATE);
        const WordRandom random = own.draw(time, key);
        u32 sign[Own::R::SLOTS];
        own.load_signs(colour, sign);
        __syncthreads();
        mine ^= own.flips(colour, mine, SharedWords{in_shared[1 - colour] + first}, sign, random, rules[here], thresholds, time, key);
        if (there) in_shared[colour][first + word] = mine;
        const u32 next = other;
        other = mine, mine = next;
    }
    if (there) global[colour * words] = mine, global[(1 - colour) * words] = other;
}

// Replicas and samples in y and z; all blocks are resident. dated[part][colour][word] as ``DatedWords`` reads it, all of them before
// `date` when the launch begins.
template <int DIMENSION, bool SIGNED, bool FIELD, int KIND, int ROUNDS>
__global__ __launch_bounds__(SPREAD_THREADS, SPREAD_BLOCKS) void sweep_spread(u32* state, u64* dated, AnyRows rows, Signs signs,
                                                                              UniformTables tables, u32 first_sample, u32 first_replica,
                                                                              u64 half_sweep, u32 half_sweeps, u32 date, Key key) {
    using Own = OwnWord<DIMENSION, SIGNED, FIELD, KIND, ROUNDS>;
    __shared__ UniformRules<typename Own::R> rules;
    const u32 replica = blockIdx.y, sample = blockIdx.z, words = 4 * rows.groups, number = blockIdx.x * blockDim.x + threadIdx.x;
    const bool there = number < words;
    const u32 word = there ? number : threadIdx.x % 4;  // a thread without a word does what is not written
    const size_t part = (size_t)sample * gridDim.y + replica, rules_of = tables.part(sample, replica);
    const UniformThresholds thresholds = {tables.thresholds + (rules_of << Own::R::BITS)};
    rules.load(tables, rules_of, threadIdx.x, blockDim.x);
    const Own own(rows, word, signs, sample, counter_block(first_sample + sample, first_replica + replica));
    u32* const global = state + part * 2 * words + word;
    u64* const present = dated + part * 2 * words;
    u32 colour = half_sweep & 1, mine = global[colour * words], other = global[(1 - colour) * words];
    if (there) {
        DatedWords::write(present + colour * words + word, mine, date);
        DatedWords::write(present + (1 - colour) * words + word, other, date);
    }
    __syncthreads();

    for (u32 done = 0; done < half_sweeps; ++done, ++half_sweep, colour ^= 1) {
        const HalfSweep time = counter_half_sweep(half_sweep, STREAM_UPDATE);
        const WordRandom random = own.draw(time, key);
        u32 sign[Own::R::SLOTS];
        own.load_signs(colour, sign);
        const DatedWords theirs = {present + (1 - colour) * words, date + done};
        mine ^= own.flips(colour, mine, theirs, sign, random, rules, thresholds, time, key);
        if (there) DatedWords::write(present + colour * words + word, mine, date + done + 1);
        const u32 next = other;
        other = mine, mine = next;
    }
    if (there) global[colour * words] = mine, global[(1 - colour) * words] = other;
}
