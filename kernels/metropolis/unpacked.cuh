// The general Metropolis update: spinsim/engine/moves/metropolis/unpacked.py on the GPU, of spins that are bits of words.
//
// A thread has a site of 32 replicas. The signs of up to six bonds, turned into a byte for each replica, pick one of 64 sums of
// their couplings, which the warp lays out in shared memory for its sites: a replica costs a read, not six additions. Sums are
// of single precision; what they leave open is decided by the integers (metropolis/refined.cuh).
#pragma once
#include "bits/transpose.cuh"
#include "metropolis/refined.cuh"

constexpr int MOST_THREADS = HOST(engine.moves.metropolis.unpacked_cuda.MOST_THREADS);
constexpr int SLOTS = HOST(engine.moves.metropolis.unpacked_cuda.SLOTS);  // bonds whose signs pick a sum
constexpr int ROW = HOST(engine.moves.metropolis.unpacked_cuda.ROW);  // words of them in memory
constexpr u32 SUMS = 1 << SLOTS, SUMS_BYTES = 4 * SUMS;
static_assert(SUMS_BYTES == 256, "a byte is the address of a sum among those of its bonds");
constexpr float LOG2_E = 1.44269504f;
constexpr u32 INFINITY_BITS = 0x7f800000, NAN_BITS = 0x7fffffff;

// Rows of up to six bonds: row k of a level is that of the k-th site of a colour.
struct Level { u32 offset, count; };
CHECK_STRUCT(Level, engine.moves.metropolis.unpacked_cuda.LEVEL);

struct Slots {
    const u32* near;         // [row][ROW]: places of neighbours, that behind the last one for a field; the site's own in other slots
    const float* couplings;  // [row][ROW]: theirs in quanta; behind a site's first ones how far their sum may be off, or 0
    size_t stride;           // of `couplings` from sample to sample, 0 where all share them
    const Level* levels;     // those of colour c and term t are level_start[terms * c + t] to before the next one
    const u32* level_start;
    size_t terms;            // of the model, whose temperatures may be one
};
CHECK_STRUCT(Slots, engine.moves.metropolis.unpacked_cuda.SLOTS_TYPE);

// Couplings in quanta as they are, by places: those of place p are start[p] to before start[p + 1], of term 1 from middle[p] on.
struct Exact {
    const long long *start, *middle;
    const u32* near;
    const void *couplings, *fields;
    size_t coupling_stride, field_stride;  // from sample to sample, 0 where all share them
};
CHECK_STRUCT(Exact, engine.moves.metropolis.unpacked_cuda.EXACT_TYPE);

// Decides the flip of one replica by its local fields, exact integers, and all 64 bits of its uniform. `lattice` holds the words
// of 32 replicas, `stride` apart, of which it is number `bit`; double_beta[term_stride] is that of term 1.
template <typename Integer, int TERMS, int ROUNDS>
__device__ __noinline__ bool accepted(const Exact& exact, u32 sample, const u32* lattice, u32 stride, u32 place, u32 bit,
                                      const double* double_beta, u32 term_stride, double zero_acceptance, uint4 counter,
                                      const Key& key) {
    const Integer* const couplings = (const Integer*)exact.couplings + sample * exact.coupling_stride;
    Integer half_cost[TERMS];
    long long e = exact.start[place];
    const bool up = lattice[(size_t)place * stride] >> bit & 1;
#pragma unroll
    for (int term = 0; term < TERMS; ++term) {
        half_cost[term] = term == 0 ? ((const Integer*)exact.fields)[sample * exact.field_stride + place] : 0;
        for (const long long last = term + 1 < TERMS ? exact.middle[place] : exact.start[place + 1]; e < last; ++e)
            half_cost[term] += lattice[(size_t)exact.near[e] * stride] >> bit & 1 ? couplings[e] : -couplings[e];
        half_cost[term] = up ? half_cost[term] : -half_cost[term];
    }
    const double x = (double)half_cost[0] * double_beta[0];
    const Threshold t = TERMS > 1 ? rare_threshold_of_sum(x, (double)half_cost[TERMS - 1] * double_beta[term_stride], zero_acceptance)
                        : half_cost[0] < 0  ? Threshold{true, 0}
                        : half_cost[0] == 0 ? threshold_of(zero_acceptance)
                                            : rare_exp_threshold(-x);
    const uint4 random = philox<ROUNDS>(counter.x, counter.y, counter.z, counter.w, key);
    counter.w += REFINE;
    return below<ROUNDS>(word_of(random, bit % 4), t, bit % 4, counter, key);
}

// The sums of a warp's sites, whose bonds are those of one level. Four threads make those of a site: the bits of a sum's address
// from the lowest on are four sums that are stored at once, four such stores of a thread, the thread.
struct Sums {
    char* memory;  // [site of the warp][signs]
    u32 address;   // in shared memory, of those of the thread's own site
    u32 turned;    // stores of threads side by side are in different banks where each begins elsewhere

    __device__ __forceinline__ Sums(char* shared, u32 sites, u32 own) {
        const u32 start = (u32)__cvta_generic_to_shared(shared), aligned = (start + SUMS_BYTES - 1) & ~(SUMS_BYTES - 1);
        const u32 mine = aligned + threadIdx.x / 32 * sites * SUMS_BYTES;
        memory = shared + (mine - start);
        address = mine + own * SUMS_BYTES;
        turned = threadIdx.x >> 1 & 3;
    }
    // Lays those of the rows from `row` on, of floats or ints, of `sites` sites, of which `rows` have one; the whole warp must call it.
    template <typename Number>
    __device__ __forceinline__ void lay(const Number* row, u32 rows, u32 sites) const {
        struct alignas(16) Four { Number x, y, z, w; };
        struct alignas(8) Two { Number x, y; };
        __syncwarp();
#pragma unroll 1
        for (u32 site = threadIdx.x % 32 / 4; site < sites; site += 8) {
            const Number* const mine = row + min(site, rows - 1) * ROW;
            const Four first = *(const Four*)mine;
            const Two last = *(const Two*)(mine + 4);
            const Number both = first.x + first.y, one = first.x - first.y;
            const Number third = turned & 1 ? -first.z : first.z, fourth = turned & 2 ? -first.w : first.w;
            const Number upper = (threadIdx.x & 1 ? -last.x : last.x) + (threadIdx.x & 2 ? -last.y : last.y);
            char* const to = memory + site * SUMS_BYTES + (threadIdx.x & 3) * 64;
#pragma unroll
            for (u32 store = 0; store < 4; ++store) {
                const Number sum = (upper + (store & 2 ? -fourth : fourth)) + (store & 1 ? -third : third);
                *(Four*)(to + ((store ^ turned) << 4)) = Four{sum + both, sum - one, sum + one, sum - both};
            }
        }
        __syncwarp();
    }
    // Returns the bits of the sum that byte `k` of a word is the address of.
    __device__ __forceinline__ u32 pick(u32 word, int k) const {
        u32 loaded;
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(loaded) : "r"(__byte_perm(word, address, 0x7650 + k)));
        return loaded;
    }
};

// The 32 replicas of a thread: a word of `words` that a thread block has, from column `first_column` on of a sample's words.
struct Word {
    u32 words, word, own, column;  // its number in the block, the thread's site among those of its warp, its number in the sample
    u32 there, in_use;             // how many replicas there are, and their bits
    u32 block, first_plane;        // of their random numbers

    __device__ __forceinline__ Word(u32 words, u32 first_column, u32 replicas, u32 sample, u32 first_block)
        : words(words), word(threadIdx.x & (words - 1)), own((threadIdx.x & 31) / words), column(first_column + word),
          there(column * 32 < replicas ? min(replicas - column * 32, 32u) : 0), in_use(there == 32 ? ~0u : (1u << there) - 1),
          block(counter_block(sample, first_block + column / 4)), first_plane(column % 4 * 8) {}
};

// Copies the words of a thread block between a sample's lattices, [block of 128 replicas][place][word], and shared memory,
// [place][word], by the whole block; `in_shared` has one place more, of what is always +1.
__device__ __forceinline__ size_t home_of(u32 i, u32 sites, u32 words, u32 first_column) {
    const u32 column = first_column + i % words;
    return ((size_t)(column / 4) * sites + i / words) * 4 + column % 4;
}
__device__ __forceinline__ void load_words(u32* in_shared, const u32* home, u32 sites, u32 words, u32 first_column) {
    for (u32 i = threadIdx.x; i < sites * words; i += blockDim.x) in_shared[i] = home[home_of(i, sites, words, first_column)];
    if (threadIdx.x < words) in_shared[sites * words + threadIdx.x] = ~0u;
}
__device__ __forceinline__ void store_words(u32* home, const u32* in_shared, u32 sites, u32 words, u32 first_column) {
    for (u32 i = threadIdx.x; i < sites * words; i += blockDim.x) home[home_of(i, sites, words, first_column)] = in_shared[i];
}

// What half-sweeps read of a model, and the largest 2 beta of each term.
struct Visited {
    const u32 *order, *colour_start;
    u32 sites, colours;
    const Slots& slots;
    const Exact& exact;
    float coldest, coldest_other;
    double zero_acceptance;
};

// Makes half-sweeps of one word of replicas of `sample` by a whole block; warp number `warp` of `warps` that share the sites of a
// colour. `lattice` are the words of the thread's replicas, `stride` apart, HELD in shared memory or not; `betas` have 2 beta log2(e),
// [term][replica of the block], `double_beta` 2 beta, [term][replica of the thread], terms `term_stride` apart.
template <typename Integer, int TERMS, bool IN_SHARED, int ROUNDS>
__device__ __forceinline__ void sweep_words(const Visited& model, const Word& mine, const Sums& sums, u32 sample, u32* lattice,
                                            u32 stride, const float* betas, const double* double_beta, u32 term_stride, u32 warp,
                                            u32 warps, u64 half_sweep, u32 half_sweeps, const Key& key) {
    const Slots& slots = model.slots;
    const u32 sites = model.sites, word = mine.word, words = mine.words, own = mine.own, of_warp = 32 / words;
    const u32 there = mine.there, first_plane = mine.first_plane, block = mine.block;
    const float* const couplings = slots.couplings + sample * slots.stride;
    u32 colour = half_sweep % model.colours;
    for (u32 done = 0; done < half_sweeps; ++done, ++half_sweep) {
        __syncthreads();  // sites of one colour share no bond
        const HalfSweep time = counter_half_sweep(half_sweep, STREAM_UPDATE);
        const u32 begin = model.colour_start[colour], size = model.colour_start[colour + 1] - begin;
        for (u32 first = warp * of_warp; first < size; first += warps * of_warp) {
            const u32 k = min(first + own, size - 1), place = begin + k, site = model.order[place];
            const u32 spin = lattice[(size_t)place * stride];
            float x[32], error[TERMS];  // half the cost of a flip, in quanta, or times 2 beta log2(e) where there are two terms
#pragma unroll
            for (int r = 0; r < 32; ++r) x[r] = 0;
#pragma unroll
            for (int term = 0; term < TERMS; ++term) {
                error[term] = 0;
                const u32* const levels = slots.level_start + slots.terms * colour + term;
                for (u32 at = levels[0], stop = levels[TERMS == 1 ? slots.terms : 1]; at < stop; ++at) {
                    const Level level = slots.levels[at];
                    if (first >= level.count) continue;
                    const u32 rows = min(of_warp, level.count - first), row = level.offset + min(k, level.count - 1);
                    const uint4 four = *(const uint4*)(slots.near + (size_t)row * ROW);
                    const uint2 two = *(const uint2*)(slots.near + (size_t)row * ROW + 4);
                    const u32 near[SLOTS] = {four.x, four.y, four.z, four.w, two.x, two.y};
                    if (k < level.count) error[term] += couplings[(size_t)row * ROW + SLOTS];
                    u32 bits[8] = {};
#pragma unroll
                    for (int j = 0; j < SLOTS; ++j)
                        bits[2 + j] = (IN_SHARED || near[j] < sites ? lattice[(size_t)near[j] * stride] : ~0u) ^ spin;
                    sums.lay(couplings + (size_t)(level.offset + first) * ROW, rows, of_warp);
                    transpose_octets(bits);
                    if (k >= level.count) continue;
#pragma unroll
                    for (int c = 0; c < 8; ++c) {
                        const float4 beta = TERMS == 1 ? float4{} : ((const float4*)(betas + term * 32 * words + 32 * word))[c];
                        const float of_call[4] = {beta.x, beta.y, beta.z, beta.w};
#pragma unroll
                        for (int j = 0; j < 4; ++j) {
                            const float sum = __uint_as_float(sums.pick(bits[4 * (c % 2) + j], c / 2));
                            x[4 * c + j] = TERMS == 1 ? x[4 * c + j] + sum : fmaf(sum, of_call[j], x[4 * c + j]);
                        }
                    }
                }
            }
            // The error of x is below error * 2 beta, that of ex2.approx 2^-22, those of the uniform and of roundings 2^-22: margins are
            // twice as wide and more. What is so cold that x is lost in it, and what may cost nothing to rounding alone, is asked about.
            const float off = error[0] * model.coldest + (TERMS > 1 ? error[TERMS - 1] * model.coldest_other : 0);
            const float relative = off < 0.25f ? 2 * off + 0x1p-19f : __uint_as_float(INFINITY_BITS);
            const float less = 1.0f - relative, more = 1.0f + relative, nothing = TERMS > 1 ? relative : error[0];
            const float of_nothing = nothing > 0 ? __uint_as_float(NAN_BITS) : (float)model.zero_acceptance;
            const Prefix prefix = philox_prefix(site, block, time.word2, key);
            u32 flips = 0, undecided = 0;
#pragma unroll
            for (int c = 0; c < 8; ++c) {
                if (c % 2 == 0 && 4 * c >= there) break;
                const uint4 random = philox_finish<ROUNDS>(prefix, time.word3 + first_plane + c, key);
                const float4 beta = ((const float4*)(betas + 32 * word))[c];
                const float of_call[4] = {beta.x, beta.y, beta.z, beta.w};
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const float y = x[4 * c + j];
                    const float one_to_two = __uint_as_float(__funnelshift_r(word_of(random, j), 0x7f, 9));
                    float p;
                    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(p) : "f"(TERMS == 1 ? -y * of_call[j] : -y));
                    if (fabsf(y) <= nothing) p = of_nothing;
                    const bool sure = one_to_two < fmaf(p, less, 1.0f - 0x1p-20f), never = one_to_two >= fmaf(p, more, 1.0f + 0x1p-20f);
                    flips |= sure ? 1u << (4 * c + j) : 0;
                    undecided |= sure || never ? 0 : 1u << (4 * c + j);
                }
            }
            flips &= mine.in_use, undecided &= mine.in_use;
            if (first + own >= size) continue;
            for (; undecided; undecided &= undecided - 1) {
                const u32 bit = __ffs(undecided) - 1;
                const uint4 counter = {site, block, time.word2, time.word3 + first_plane + bit / 4};
                if (accepted<Integer, TERMS, ROUNDS>(model.exact, sample, lattice, stride, place, bit, double_beta + bit, term_stride,
                                                     model.zero_acceptance, counter, key))
                    flips |= 1u << bit;
            }
            lattice[(size_t)place * stride] = spin ^ flips;
        }
        colour = colour + 1 < model.colours ? colour + 1 : 0;
    }
}
