// Parallel tempering of models with any couplings whose lattices are in shared memory: many rounds a launch. Thread blocks have up
// to four words of 32 replicas each. Those that share a sample are resident, tell each other the energies of their replicas in
// each round, and follow the whole ladder.
#include "metropolis/unpacked.cuh"
#include "tempering/energy_of_words.cuh"
#include "tempering/notes.cuh"

// Energies and spins +1 of all replicas of a sample, as its blocks tell them each other: words of 32 bits, each below the number of its
// round over all launches, so that nothing waits for a barrier. Rounds take turns in two rows, which are read before one is written again.
struct Told {
    enum { LOW, HIGH, UP, KINDS };
    u64* all;  // [round, odd or even][sample][kind][replica]
    size_t replicas;
    u32 number;  // of the launch's first round

    __device__ __forceinline__ u64* of(u32 round, u32 samples, u32 sample) const {
        return all + ((size_t)(number + round) % 2 * samples + sample) * KINDS * replicas;
    }
    __device__ __forceinline__ u64 dated(u32 round, u32 number_told) const { return (u64)(number + round) << 32 | number_told; }

    __device__ __forceinline__ void tell(u64* row, u32 kind, u32 replica, u32 round, u32 number_told) const {
        asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(row + kind * replicas + replica), "l"(dated(round, number_told)) : "memory");
    }
    __device__ __forceinline__ u32 hear(const u64* row, u32 kind, u32 replica, u32 round) const {
        u64 now;
        do asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(now) : "l"(row + kind * replicas + replica) : "memory");
        while (now >> 32 != number + round);
        return now;
    }
};
CHECK_STRUCT(Told, engine.moves.metropolis.unpacked_cuda.TOLD);
static_assert(Told::KINDS == HOST(engine.moves.metropolis.unpacked_cuda.TOLD_KINDS), "the host makes room for them");

// Takes what is counted of each replica after the last round, [sample][replica].
struct LeftSums { u64 *energy, *up, *up_first; };
CHECK_STRUCT(LeftSums, engine.moves.metropolis.unpacked_cuda.LEFT_SUMS);

// A sample's ladder in shared memory, in front of what else lies there.
struct SharedTemperatures {
    double *beta, *steps;  // 2 beta of the block's own replicas; of the ladder
    u64* energy;           // of all replicas, also of those that are none
    float* betas;          // of the block's own replicas, as sweep_words takes them
    u32* up;               // of them, those of the first sublattice again in the upper half
    int *place, *holder;
    signed char* last_end;
    char* behind;

    __device__ __forceinline__ SharedTemperatures(void* shared, const Exchange& e, u32 words, size_t replicas) {
        const u32 own = 32 * words, used = e.copies * e.temperatures;
        beta = (double*)shared, steps = beta + own;
        energy = (u64*)(steps + (e.temperatures + 1) / 2 * 2);  // rows of four temperatures are aligned
        betas = (float*)(energy + replicas), up = (u32*)(betas + own);
        place = (int*)(up + own), holder = place + used;
        last_end = (signed char*)(holder + used), behind = (char*)last_end + (used + 3) / 4 * 4;
    }
    // Takes the sample's arrays. A barrier must follow.
    __device__ __forceinline__ void load(const Exchange& own) const {
        for (u32 r = threadIdx.x; r < own.copies * own.temperatures; r += blockDim.x)
            place[r] = own.place[r], holder[r] = own.holder[r], last_end[r] = own.last_end[r];
        for (u32 t = threadIdx.x; t + 1 < own.temperatures; t += blockDim.x) steps[t] = own.steps[t];
    }
    __device__ __forceinline__ void store(const Exchange& own) const {
        for (u32 r = threadIdx.x; r < own.copies * own.temperatures; r += blockDim.x)
            own.place[r] = place[r], own.holder[r] = holder[r], own.last_end[r] = last_end[r];
    }
    // Returns the sample's arrays, those that are held here in place of its own.
    __device__ __forceinline__ Exchange near(const Exchange& own) const {
        return {place, holder, own.attempts, own.accepts, own.trips, last_end, steps, own.copies, own.temperatures};
    }
    // Gives `count` replicas from `first` on, padded with the last of all, the temperatures of their places, and clears their counts.
    __device__ __forceinline__ void begin_round(const double* ladder, u32 first, u32 count, u32 replicas) const {
        for (u32 i = threadIdx.x; i < count; i += blockDim.x) {
            beta[i] = ladder[place[min(first + i, replicas - 1)]];
            betas[i] = LOG2_E * (float)beta[i];
            energy[first + i] = 0, up[i] = 0;
        }
    }
};

// Makes rounds of `sweeps` sweeps and an exchange of the samples from `first_here` on, a group of 32 * `words` replicas of a sample a
// block. `ladder` has 2 beta in quanta.
template <typename Integer, int ROUNDS>
__global__ __launch_bounds__(MOST_THREADS, 1) void temper_unpacked(
    u32* state, u32 sites, u32 blocks, u32 samples, u32 words, const u32* order, const u32* colour_start, u32 colours,
    const __grid_constant__ Slots slots, const __grid_constant__ Exact exact, const double* ladder, float coldest,
    double zero_acceptance, const __grid_constant__ Exchange exchange, const __grid_constant__ Told told,
    const __grid_constant__ CountedBonds bonds, u32 first_sites, LeftSums sums, u32 first_here, u32 first_sample, u32 first_block, u64 first_half_sweep,
    u32 sweeps, u64 first_round, u32 rounds, const __grid_constant__ Notes notes,
    const __grid_constant__ Measured measured, const __grid_constant__ Key key) {
    extern __shared__ uint4 shared[];
    const Exchange own = exchange.of(first_here + blockIdx.z);
    const u32 sample = first_here + blockIdx.z, replicas = own.copies * own.temperatures;
    const u32 first = blockIdx.x * 32 * words, here = min(32 * words, replicas - first);  // replicas of this block
    const bool tells = blockIdx.x == 0, is_single = gridDim.x == 1;  // one block of a sample writes what all know
    const Word mine(words, blockIdx.x * words, replicas, first_sample + sample, first_block);
    const SharedTemperatures at(shared, own, words, told.replicas);
    u32* const in_shared = (u32*)at.behind;
    const Sums picked((char*)(in_shared + (sites + 1) * words), 32 / words, mine.own);
    const Visited model = {order, colour_start, sites, colours, slots, exact, coldest, coldest, zero_acceptance};
    at.load(own);
    load_words(in_shared, state + (size_t)sample * blocks * sites * 4, sites, words, blockIdx.x * words);
    __syncthreads();
    at.begin_round(ladder, first, 32 * words, replicas);
    for (u32 done = 0, left = notes.every; done < rounds; ++done) {
        const bool last = done + 1 == rounds, noted = --left == 0;  // never, if `every` is 0
        sweep_words<Integer, 1, true, ROUNDS>(model, mine, picked, sample, in_shared + mine.word, words, at.betas, at.beta + 32 * mine.word,
                                              0, threadIdx.x / 32, blockDim.x / 32, first_half_sweep + (u64)done * sweeps * colours,
                                              sweeps * colours, key);
        __syncthreads();
        add_energies<sizeof(Integer) / sizeof(int)>(bonds, mine, picked, sample, in_shared + mine.word, at.energy + first);
        if (last || noted) add_up(in_shared, words, first_sites, sites, at.up);
        u64* const row = told.of(done, samples, sample);
        __syncthreads();
        if (!is_single) {
            for (u32 i = threadIdx.x; i < here; i += blockDim.x) {
                const u64 energy = at.energy[first + i];
                told.tell(row, Told::LOW, first + i, done, energy), told.tell(row, Told::HIGH, first + i, done, energy >> 32);
                if (last || noted) told.tell(row, Told::UP, first + i, done, at.up[i]);
            }
            for (u32 r = threadIdx.x; r < replicas; r += blockDim.x)
                if (r - first >= here) at.energy[r] = (u64)told.hear(row, Told::HIGH, r, done) << 32 | told.hear(row, Told::LOW, r, done);
            __syncthreads();
        }
        const Exchange nearby = at.near(own);
        const auto energy = [&](int r) { return (long long)at.energy[r]; };
        const u32 even = (first_round + done) & 1, tried = ((u32)own.temperatures - even) / 2;  // of each copy
        const HalfSweep time = counter_half_sweep(first_round + done, STREAM_SWAP);
        for (u32 i = threadIdx.x; i < own.copies * tried; i += blockDim.x)
            exchange_pair<ROUNDS>(nearby, energy, i / tried, even + 2 * (i % tried), first_sample + sample, time, key, tells);
        __syncthreads();
        for (u32 copy = threadIdx.x; copy < own.copies; copy += blockDim.x) follow_ends(nearby, copy, tells);
        if (noted) {
            const size_t number = done / (u32)notes.every;
            __syncthreads();
            store_words((u32*)(notes.copies + (number * samples + sample) * blocks * sites), in_shared, sites, words, blockIdx.x * words);
            if (tells)
                measured.write(notes.to + number * measured.size, nearby, sample, [&](int replica) -> Counted {
                    const u32 counted = is_single ? at.up[replica] : told.hear(row, Told::UP, replica, done);
                    return {(long long)at.energy[replica], counted & 0xffff, counted >> 16};
                });
            left = notes.every;
        }
        if (last)
            for (u32 i = threadIdx.x; i < here; i += blockDim.x) {
                const size_t to = (size_t)sample * 128 * blocks + first + i;
                sums.energy[to] = at.energy[first + i], sums.up[to] = at.up[i] & 0xffff, sums.up_first[to] = at.up[i] >> 16;
            }
        __syncthreads();
        at.begin_round(ladder, first, 32 * words, replicas);
    }
    store_words(state + (size_t)sample * blocks * sites * 4, in_shared, sites, words, blockIdx.x * words);
    if (tells) at.store(own);
}
