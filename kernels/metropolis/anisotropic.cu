// Metropolis of an energy of two terms, as in spinsim/engine/moves/metropolis/replica_packed/cpu_sweep.py: 128 replicas of a site at once.
// state[(sample * blocks + block) * sites + place] is a uint4 of 128 lanes; places are in batch order.
#include "metropolis/replica_site.cuh"

constexpr u32 THREADS = HOST(engine.moves.metropolis.replica_packed.cuda_lattices.TERM_THREADS);
constexpr u32 ASKED = 6;  // neighbours at once

// Sites of one colour and kind (spinsim/engine/moves/metropolis/replica_packed/batches.py), with the slots of each term.
struct TermBatch { u32 first, size, slots[2], kind, offset; };
CHECK_STRUCT(TermBatch, engine.moves.metropolis.replica_packed.cuda_lattices.TERM_BATCH);

struct TermModel {
    const u32* order;       // [place]: its site
    const u32* neighbour;   // [batch.offset + slot * batch.size + q]: places
    const u8* signs;        // likewise: 1 where equal spins leave the bond unsatisfied
    size_t sign_stride;     // from sample to sample, 0 where all share them
    u32 first_bits, field;  // of the count of term 0; whether the spin is the class's highest bit
};
CHECK_STRUCT(TermModel, engine.moves.metropolis.replica_packed.cuda_lattices.TERM_MODEL);

// Classes of sites with FIRST and SECOND bonds of the terms, no field, and gains that are certain where no term costs energy and one
// gains it: of the 32 rows of a square in time 15 are of classes that there are, 10 of classes that chance may decide.
template <int FIRST, int SECOND, int BITS, int W>
struct TermClasses {
    static constexpr int FIRST_BITS = FIRST < 4 ? 2 : 3;
    u32 bit[BITS][W];

    __device__ static constexpr bool is_picked(int index, bool by_chance) {
        const int first = index % (1 << FIRST_BITS), second = index >> FIRST_BITS;
        const bool gains = 2 * first >= FIRST && 2 * second >= SECOND && (2 * first > FIRST || 2 * second > SECOND);
        return first <= FIRST && second <= SECOND && !(by_chance && gains);
    }
    __device__ static constexpr bool any_picked(int begin, int count, bool by_chance) {
        for (int index = begin; index < begin + count; ++index)
            if (is_picked(index, by_chance)) return true;
        return false;
    }
    // Picks for every lane the row of its class among those of 2^B that are picked.
    template <bool BY_CHANCE, int B, int BEGIN, typename Rows>
    __device__ __forceinline__ void tree(const Rows& rows, u32 (&out)[W]) const {
        if constexpr (B == 0) {
            const auto row = rows.load(BEGIN);
#pragma unroll
            for (int w = 0; w < W; ++w) out[w] = word_of(row, w);
        } else {
            constexpr int HALF = 1 << (B - 1);
            constexpr bool LOWER = any_picked(BEGIN, HALF, BY_CHANCE), UPPER = any_picked(BEGIN + HALF, HALF, BY_CHANCE);
            u32 upper[W];
            if constexpr (LOWER) tree<BY_CHANCE, B - 1, BEGIN>(rows, out);
            if constexpr (UPPER) tree<BY_CHANCE, B - 1, BEGIN + HALF>(rows, upper);
#pragma unroll
            for (int w = 0; w < W; ++w) out[w] = !UPPER ? out[w] : LOWER ? mux(bit[B - 1][w], out[w], upper[w]) : upper[w];
        }
    }
    template <typename Rows>
    __device__ __forceinline__ void pick(const Rows& always, u32 (&out)[W]) const { tree<false, BITS, 0>(always, out); }
    template <typename Rows>
    __device__ __forceinline__ void pick_plane(const Rows& planes, int plane, u32 (&out)[W]) const {
        tree<true, BITS, 0>(planes.from(plane << BITS), out);
    }
};
__device__ constexpr int bonds_of_terms(int first, int second) { return 100 * first + second; }
template <int W> struct Classes<bonds_of_terms(2, 2), 4, W> : TermClasses<2, 2, 4, W> {};
template <int W> struct Classes<bonds_of_terms(4, 2), 5, W> : TermClasses<4, 2, 5, W> {};
template <int W> struct Classes<bonds_of_terms(6, 2), 5, W> : TermClasses<6, 2, 5, W> {};

// How such sites are updated; what gains is in the tables, as it is in a field. Their bonds are FIRST and SECOND, or any where 0.
template <int BITS_, int FIRST, int SECOND, int ROUNDS_>
struct TermRule {
    static constexpr int SLOTS = 0, BITS = BITS_, COUNT_BITS = BITS_, LOW_BITS = BITS_, ROUNDS = ROUNDS_;
    static constexpr bool FIELD = true, PLAIN = false, GAINS = false;
    using Beginning = Clear<0, 0, 0>;
    using Group = Classes<bonds_of_terms(FIRST, SECOND), BITS, 4>;
};

template <int BITS, int FIRST, int SECOND, int ROUNDS, bool FAR>
struct Sites<TermRule<BITS, FIRST, SECOND, ROUNDS>, FAR> {
    using R = TermRule<BITS, FIRST, SECOND, ROUNDS>;
    const TermBatch& batch;
    const TermModel& model;
    u32 sample;
    uint4* shelf;
    u32 place = 0;

    __device__ __forceinline__ uint4* kept(uint4* own) const { return FAR ? shelf : own; }
    __device__ __forceinline__ void ahead(u32 next) { place = next; }
    __device__ __forceinline__ u32 site() const { return model.order[place]; }

    // Counts the unsatisfied bonds of both terms; several neighbours are asked for before the first of them is waited for.
    __device__ __forceinline__ void count(u32 (&bits)[BITS][4], const uint4& spin, const uint4* lattice) const {
        const size_t first = batch.offset + place - batch.first;
        const u8* const signs = model.signs + sample * model.sign_stride + first;
        const u32* const neighbours = model.neighbour + first;
        const u32 slots = batch.slots[0] + batch.slots[1];
        for (u32 begin = 0; begin < slots; begin += ASKED) {
            uint4 near[ASKED];
            u32 sign[ASKED];
#pragma unroll
            for (u32 k = 0; k < ASKED; ++k) {
                const size_t at = (size_t)(begin + k) * batch.size;
                if (begin + k < slots) near[k] = lattice[neighbours[at]], sign[k] = 0u - signs[at];
            }
#pragma unroll
            for (u32 k = 0; k < ASKED; ++k) {
                if (begin + k >= slots) break;
                const int start = begin + k < batch.slots[0] ? 0 : model.first_bits;
#pragma unroll
                for (int w = 0; w < 4; ++w) {
                    u32 carry = parity(word_of(spin, w), word_of(near[k], w), sign[k]);
#pragma unroll
                    for (int b = 0; b < BITS; ++b)
                        if (b >= start) {
                            const u32 low = bits[b][w];
                            bits[b][w] = low ^ carry;
                            carry &= low;
                        }
                }
            }
        }
    }

    template <typename Always>
    __device__ __forceinline__ Chances<R> weigh(uint4* lattice, const Always& always, const uint4& used, bool there) {
        uint4* const own = lattice + place;
        const uint4 spin = *own;
        u32 bits[BITS][4] = {}, certain[4];
        count(bits, spin, lattice);
        Chances<R> c;
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            u32 of_word[BITS];
#pragma unroll
            for (int b = 0; b < BITS; ++b) of_word[b] = bits[b][w];
            if (model.field) of_word[BITS - 1] = word_of(spin, w);
            c.set(of_word, word_of(spin, w), w, certain);
        }
        c.add_certain(always, certain);
        flip_certain(c, kept(own), spin, certain, used, there);
        return c;
    }
};

// One batch of every block of replicas (y) of every sample (z); `kinds` of sites have tables of their own.
template <int BITS, int FIRST, int SECOND, int ROUNDS>
__global__ __launch_bounds__(THREADS, 4) void sweep_terms(uint4* state, u32 sites, TermBatch batch, TermModel model, Tables tables,
                                                       u32 kinds, u32 first_sample, u32 first_block, u64 half_sweep,
                                                       Key key) {
    using R = TermRule<BITS, FIRST, SECOND, ROUNDS>;
    __shared__ TailEntries<BITS> entries[THREADS / 32];
    __shared__ uint4 kept[THREADS], rows[1 + ((1 + PLANES) << BITS)];  // lanes in use, then rows of `always` and `planes`
    const u32 block = blockIdx.y, sample = blockIdx.z, warp = blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
    uint4* const lattice = state + ((size_t)sample * gridDim.y + block) * sites;
    const size_t table = (tables.part(sample, block) * kinds + batch.kind) << BITS;
    Tail<BITS> tail(entries[threadIdx.x / 32]);
    if (threadIdx.x == 0) rows[0] = tables.lanes[block];
    for (u32 i = threadIdx.x; i < 1 << BITS; i += THREADS) rows[1 + i] = tables.always[table + i];
    for (u32 i = threadIdx.x; i < PLANES << BITS; i += THREADS) rows[1 + (1 << BITS) + i] = tables.planes[table * PLANES + i];
    __syncthreads();
    const SharedRows lanes = {(u32)__cvta_generic_to_shared(rows)};
    const HalfSweep time = counter_half_sweep(half_sweep, STREAM_UPDATE);
    update_sites<R, true>({batch, model, sample, kept + threadIdx.x}, lattice, batch.first + 32 * warp,
                          batch.first + batch.size, Stride{gridDim.x * THREADS}, lanes.from(1), lanes.from(1 + (1 << BITS)),
                          LaneThresholds{tables.thresholds + table * 128}, lanes,
                          counter_block(first_sample + sample, first_block + block), time, key, tail, [] {});
}
