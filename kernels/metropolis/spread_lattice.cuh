// A lattice of 128 replicas spread over the GPU, where a multiprocessor for each would leave most of them idle: four threads of a warp have a
// place of each of two colours, 32 replicas each, and keep them for many sweeps. Neighbours read them as dated words, without a barrier.
#pragma once
#include "bits/lane_counts.cuh"
#include "metropolis/replica_site.cuh"
#include "metropolis/word_threads.cuh"

constexpr u32 SPREAD_THREADS = HOST(engine.moves.metropolis.cuda_spread.SPREAD_THREADS);
constexpr u32 SPREAD_BLOCKS = HOST(engine.moves.metropolis.cuda_spread.SPREAD_BLOCKS);

// Words of a thread's lanes in rows of four words.
struct LaneWords {
    static constexpr bool SUMS = false;
    const u32* words;
    __device__ __forceinline__ LaneWords(const uint4* rows, u32 w) : words((const u32*)rows + w) {}
    __device__ __forceinline__ u32 load(int row) const { return words[4 * row]; }
    __device__ __forceinline__ LaneWords from(int row) const { return {(const uint4*)(words + 4 * row), 0}; }
};

// Rows of a lattice's tables in shared memory, of sites of one parity of degree.
template <typename R>
struct SharedTables {
    static constexpr u32 CLASSES = 1 << R::BITS, PARITY = R::SLOTS == 7 ? 1 : 0;
    uint4 always[R::PLAIN ? 1 : CLASSES], planes[PLANES * CLASSES];

    // By a whole block, from tables of both parities, of which `rules` are the lattice's.
    __device__ __forceinline__ void load(const Tables& tables, size_t rules) {
        const size_t first = (rules * 2 + PARITY) * CLASSES;
        for (u32 i = threadIdx.x; !R::PLAIN && i < CLASSES; i += blockDim.x) always[i] = tables.always[first + i];
        for (u32 i = threadIdx.x; i < PLANES * CLASSES; i += blockDim.x) planes[i] = tables.planes[first * PLANES + i];
    }
};

// Thresholds of lanes that have a temperature each.
template <typename R>
struct LaneWordRows {
    const WordClasses<R>& classes;
    LaneWords planes;
    u32 occupant;

    __device__ __forceinline__ u32 own(int plane) const {
        u32 threshold[1];
        const LaneWords rows = planes.from(plane << R::BITS);
        if constexpr (R::FIELD && R::Beginning::SMALLEST > 0) {
            classes.template pick_in_field<typename R::Beginning, R::SLOTS>(rows, plane, threshold);
            return threshold[0];
        }
        classes.pick(rows, threshold);
        if constexpr (!R::PLAIN || R::SLOTS == 7) return threshold[0];
        const u32 zero = classes.bit[0][0] & classes.bit[1][0];  // flips that cost nothing have no rows
        return plane < ZERO_PLANES ? threshold[0] | zero : threshold[0] & ~zero;
    }
    __device__ __forceinline__ void fold(u32 lanes, u32) { occupant = lanes; }
    __device__ __forceinline__ u32 column(int j) const { return any_of_four(occupant & own(OWN_PLANES + j)); }
};

// For two colours of one batch each.
template <typename R>
class SpreadLattice {
    static constexpr int SLOTS = R::SLOTS;
    static_assert(SLOTS > 0, "threads keep the places of neighbours");

    struct Place {
        u32 near[SLOTS];           // words of its neighbours
        u32 signs, phantoms;       // bits of bonds: those that want the opposite, those with itself
        u32 site, at, spin, used;  // its number, its word and the lanes of it that are in use
        bool there;                // threads without a place do what is not written

        __device__ __forceinline__ void load(const Model& model, const Batch& batch, const Batch& other, u32 sample, u32 q, u32 w,
                                             const uint4* state, u32 lanes) {
            const u32 place = batch.first + min(q, batch.size - 1);
            Record record;
            record.fetch(model, sample, place);
            signs = phantoms = 0;
#pragma unroll
            for (int k = 0; k < SLOTS; ++k) {
                const bool phantom = record.offset(k) == sizeof(uint4) * place;
                near[k] = w + (phantom ? 4 * (other.first + min(q, other.size - 1)) : record.offset(k) / sizeof(u32));  // some that is dated
                signs |= (record.sign(k) & 1) << k, phantoms |= (u32)phantom << k;
            }
            site = record.site(), at = 4 * place + w, there = q < batch.size, used = there ? lanes : 0;
            spin = ((const u32*)state)[at];
        }
    };

    Place place[2];
    u64* dated;  // [place][4]
    u32 w, counter;

    // What the bonds of a place want, once its neighbours are up to `date`.
    __device__ __forceinline__ void find(const Place& mine, u32 date, u32 (&wanted)[SLOTS]) const {
        const DatedWords words = {dated, date};
        u64 near[SLOTS];
        int ahead;
        do {
#pragma unroll
            for (int k = 0; k < SLOTS; ++k) near[k] = words(mine.near[k]);
            ahead = words.ahead(near[0]);
#pragma unroll
            for (int k = 1; k < SLOTS; ++k) ahead = min(ahead, words.ahead(near[k]));
        } while (__any_sync(~0u, ahead < 0));
#pragma unroll
        for (int k = 0; k < SLOTS; ++k)
            wanted[k] = mux(0u - (mine.phantoms >> k & 1), (u32)near[k], mine.spin) ^ (0u - (mine.signs >> k & 1));
    }

public:
    // All words of the lattice are dated before `date` when the launch begins.
    __device__ __forceinline__ SpreadLattice(const uint4* state, u64* dated, const Batch* batches, const Model& model, const uint4& lanes,
                                             u32 sample, u32 counter, u32 date)
        : dated(dated), w(threadIdx.x % 4), counter(counter) {
        const u32 q = (blockIdx.x * SPREAD_THREADS + threadIdx.x) / 4;
#pragma unroll
        for (int c = 0; c < 2; ++c) {
            place[c].load(model, batches[c], batches[1 - c], sample, q, w, state, word_of(lanes, w));
            if (place[c].there) DatedWords::write(dated + place[c].at, place[c].spin, date);
        }
    }

    // Draws the random words of a colour's half-sweep.
    template <int COLOUR>
    __device__ __forceinline__ WordRandom draw(u64 half_sweep, const Key& key) const {
        return WordRandom::draw<R::ROUNDS>(place[COLOUR].site, w, counter, counter_half_sweep(half_sweep, STREAM_UPDATE), key);
    }

    // Updates the places of a colour, whose neighbours are dated `date` by then.
    template <int COLOUR, typename Thresholds>
    __device__ __forceinline__ void update(const WordRandom& random, const SharedTables<R>& tables, const Thresholds& thresholds, u64 half_sweep, u32 date,
                                           const Key& key, u32 (&wanted)[SLOTS]) {
        Place& mine = place[COLOUR];
        const HalfSweep time = counter_half_sweep(half_sweep, STREAM_UPDATE);
        find(mine, date, wanted);
        const WordChances<R> c(wanted, mine.spin, mine.used, LaneWords(tables.always, w));
        LaneWordRows<R> of_lanes = {c.classes, LaneWords(tables.planes, w), 0};
        mine.spin ^= c.certain | decide_word<R>(c.classes, c.open, w, random, of_lanes, thresholds, mine.site, counter, time, key);
        if (mine.there) DatedWords::write(dated + mine.at, mine.spin, date + 1);
    }

    // Sweeps, from half-sweep number `half_sweep` on, whose random words were drawn, and words dated `date`; `wanted` is what bonds of the
    // last colour then want. Words of the next half-sweep are drawn while the neighbours' are on their way.
    template <typename Thresholds>
    __device__ __forceinline__ void sweep(u32 sweeps, WordRandom random, const SharedTables<R>& tables, const Thresholds& thresholds, u64& half_sweep,
                                          u32& date, const Key& key, u32 (&wanted)[SLOTS]) {
        for (u32 done = 0; done < sweeps; ++done, half_sweep += 2, date += 2) {
            if (done > 0) random = draw<0>(half_sweep, key);
            update<0>(random, tables, thresholds, half_sweep, date, key, wanted);
            random = draw<1>(half_sweep + 1, key);
            update<1>(random, tables, thresholds, half_sweep + 1, date + 1, key, wanted);
        }
    }

    // Adds unsatisfied bonds of every lane, phantom ones too, to totals[128] in shared memory.
    __device__ __forceinline__ void count_bonds(const u32 (&wanted)[SLOTS], u32* totals) const {
        u32 count[3];
        count_unsatisfied_bonds<SLOTS>(wanted, place[1].spin, count);
        const u32 used = place[1].used;
        add_octets<4>(Counters<3, 1>{{{count[0] & used}, {count[1] & used}, {count[2] & used}}}, totals);
    }
    // Adds spins +1 likewise, those of the first colour with the weight `of_first`.
    __device__ __forceinline__ void count_up(u32 of_first, u32* totals) const {
#pragma unroll
        for (int c = 0; c < 2; ++c) add_octets<4>(Counters<1, 1>{{{place[c].spin & place[c].used}}}, totals, c ? 1 : of_first);
    }
    __device__ __forceinline__ void store(uint4* to) const {
#pragma unroll
        for (int c = 0; c < 2; ++c)
            if (place[c].there) ((u32*)to)[place[c].at] = place[c].spin;
    }
};
