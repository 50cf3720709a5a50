// Site-packed lattices whose rows begin anywhere in words, a thread for each word of 32 lanes: where the neighbours' words are, and what flips.
#pragma once
#include "metropolis/uniform.cuh"
#include "metropolis/word_threads.cuh"
#include "packing/any_rows.cuh"

constexpr u32 WORD_THREADS = HOST(engine.moves.metropolis.site_packed.cuda_words.WORD_THREADS);
constexpr u32 MOST_TOGETHER = HOST(engine.moves.metropolis.site_packed.cuda_words.MOST_TOGETHER);
constexpr u32 SPREAD_THREADS = HOST(engine.moves.metropolis.cuda_spread.SPREAD_THREADS);
constexpr u32 SPREAD_BLOCKS = HOST(engine.moves.metropolis.cuda_spread.SPREAD_BLOCKS);

// Says where 32 lanes of a colour, from lane `at` on, are: in word at / 32 from bit at % 32 on, then in word `high`.
struct Window {
    u32 at, high;

    __device__ __forceinline__ static Window from(int first, u32 lanes) {
        const u32 at = first < 0 ? first + lanes : (u32)first >= lanes ? first - lanes : first, low = at / 32;
        return {at, low < (lanes - 1) / 32 ? low + 1 : lanes % 32 ? low : 0};
    }
    __device__ __forceinline__ u32 low() const { return at / 32; }
    __device__ __forceinline__ u32 of(u32 low_word, u32 high_word) const { return __funnelshift_r(low_word, high_word, at); }
    // Returns the same with the first lanes of all behind the last one, where this is within a word.
    __device__ __forceinline__ u32 ending(u32 bits, u32 first_word, u32 lanes) const {
        const u32 left = lanes - at;
        return mux(left < 32 ? ~0u << (left & 31) : 0, bits, first_word << (left & 31));
    }
};

// Finds the words of the neighbours of a word, which are those of the other colour. Threads of a warp do all the same, as it is slow
// to exchange words where they may part: what one of them needs all of them read.
template <int DIMENSION>
class WordNeighbours {
    static constexpr int SIDES = 2 * DIMENSION, SEAMS = 2 * DIMENSION - 2;
    enum { NEXT, PREVIOUS, ROW_BEFORE, ROW_AFTER, PLANE_BEFORE, PLANE_AFTER };
    enum { FIRST, LAST, BOTTOM, TOP };  // lanes that have a neighbour at the other end of their row or plane
    Window side[SIDES], seam[SEAMS];
    u32 own, lanes, odd, at_seam[SEAMS];
    bool shifts, wraps;  // if rows and planes begin within words, and the first lane follows the last one within a word

public:
    __device__ __forceinline__ WordNeighbours(const AnyRows& rows, u32 word) : own(word), lanes(rows.lanes()) {
        const u32 g = word / 4;
        const int at = min(32 * word, lanes - 1), width = rows.width, plane = width * rows.height;  // unused words are anywhere
        const u32* const masks = (const u32*)(rows.masks + g % rows.repeating) + word % 4;
        odd = __ldg(masks + 4 * AnyRows::ODD * rows.repeating);
        side[NEXT] = Window::from(at + 1, lanes), side[PREVIOUS] = Window::from(at - 1, lanes);
        side[ROW_BEFORE] = Window::from(at - width, lanes), side[ROW_AFTER] = Window::from(at + width, lanes);
        seam[FIRST] = Window::from(at - 1 + width, lanes), seam[LAST] = Window::from(at + 1 - width, lanes);
        if constexpr (DIMENSION == 3) {
            side[PLANE_BEFORE] = Window::from(at - plane, lanes), side[PLANE_AFTER] = Window::from(at + plane, lanes);
            seam[BOTTOM] = Window::from(at - width + plane, lanes), seam[TOP] = Window::from(at + width - plane, lanes);
        }
#pragma unroll
        for (int k = 0; k < SEAMS; ++k) at_seam[k] = __ldg(masks + 4 * (AnyRows::FIRST + k) * rows.repeating);
        shifts = width % 32, wraps = lanes % 32;
    }

    // `words` reads words of the other colour, and says how far one of them is.
    template <typename Words>
    __device__ __forceinline__ void find(u32 colour, const Words& words, u32 (&near)[SIDES]) const {
        typename Words::Word here, first, low[SIDES], high[SIDES], low_at[SEAMS], high_at[SEAMS];
        const bool has_layers = DIMENSION == 3 && __any_sync(~0u, at_seam[SEAMS - 2] | at_seam[SEAMS - 1]);
        int ahead;
        do {
            here = first = words(own);
            high[NEXT] = words(side[NEXT].high), low[PREVIOUS] = words(side[PREVIOUS].low());
#pragma unroll
            for (int k = ROW_BEFORE; k < SIDES; ++k) low[k] = high[k] = words(side[k].low());
#pragma unroll
            for (int k = 0; k < SEAMS; ++k) low_at[k] = high_at[k] = here;
            low_at[FIRST] = words(seam[FIRST].low()), high_at[LAST] = words(seam[LAST].high);
            if (has_layers) {
#pragma unroll
                for (int k = BOTTOM; k < SEAMS; ++k) low_at[k] = high_at[k] = words(seam[k].low());
            }
            if (shifts) {
#pragma unroll
                for (int k = ROW_BEFORE; k < SIDES; ++k) high[k] = words(side[k].high);
                high_at[FIRST] = words(seam[FIRST].high), low_at[LAST] = words(seam[LAST].low());
                if (has_layers) {
#pragma unroll
                    for (int k = BOTTOM; k < SEAMS; ++k) high_at[k] = words(seam[k].high);
                }
            }
            if (wraps) first = words(0);
            ahead = min(min(words.ahead(here), words.ahead(first)), min(words.ahead(high[NEXT]), words.ahead(low[PREVIOUS])));
#pragma unroll
            for (int k = ROW_BEFORE; k < SIDES; ++k) ahead = min(ahead, min(words.ahead(low[k]), words.ahead(high[k])));
#pragma unroll
            for (int k = 0; k < SEAMS; ++k) ahead = min(ahead, min(words.ahead(low_at[k]), words.ahead(high_at[k])));
        } while (Words::WAITS && __any_sync(~0u, ahead < 0));
        low[NEXT] = high[PREVIOUS] = here;
        u32 beside[SIDES], across[SEAMS];
#pragma unroll
        for (int k = 0; k < SIDES; ++k) beside[k] = side[k].of((u32)low[k], (u32)high[k]);
#pragma unroll
        for (int k = 0; k < SEAMS; ++k) across[k] = seam[k].of((u32)low_at[k], (u32)high_at[k]);
        if (wraps) {
#pragma unroll
            for (int k = 0; k < SIDES; ++k) beside[k] = side[k].ending(beside[k], (u32)first, lanes);
#pragma unroll
            for (int k = 0; k < SEAMS; ++k) across[k] = seam[k].ending(across[k], (u32)first, lanes);
        }
        const auto either = [&](int at, int inside) { return mux(at_seam[at], beside[inside], across[at]); };
        near[2] = (u32)here;
        near[3] = mux(odd ^ (0 - colour), either(FIRST, PREVIOUS), either(LAST, NEXT));
        if constexpr (DIMENSION == 2) {
            near[0] = beside[ROW_BEFORE], near[1] = beside[ROW_AFTER];
        } else {
            near[0] = either(BOTTOM, ROW_BEFORE), near[1] = either(TOP, ROW_AFTER);
            near[4] = beside[PLANE_BEFORE], near[5] = beside[PLANE_AFTER];
        }
    }
};

// Reads words in shared memory, which barriers keep up to date.
struct SharedWords {
    using Word = u32;
    static constexpr bool WAITS = false;
    const u32* words;
    __device__ __forceinline__ u32 operator()(u32 k) const { return words[k]; }
    __device__ __forceinline__ static int ahead(u32) { return 0; }
};

// Rows of thresholds where all lanes have one temperature.
template <typename R, typename Planes>
struct UniformWordRows {
    const WordClasses<R>& classes;
    const Planes planes;
    WordClasses<R> shared;  // of the columns; an empty one has the last class, as 4 slots have no class 0

    __device__ __forceinline__ static u32 pick(const WordClasses<R>& of, const Planes& planes, int plane) {
        u32 threshold[1];
        of.pick_plane(planes, plane, threshold);
        return threshold[0];
    }
    __device__ __forceinline__ u32 own(int plane) const { return pick(classes, planes, plane); }
    __device__ __forceinline__ void fold(u32 occupant, u32 left) {
#pragma unroll
        for (int b = 0; b < R::BITS; ++b) shared.bit[b][0] = any_of_four(occupant & classes.bit[b][0]) | ~left;
    }
    __device__ __forceinline__ u32 column(int j) const { return pick(shared, planes, OWN_PLANES + j); }
};

// One word of a lattice and its thread. All threads of a warp must call `flips`, those without a word too.
template <int DIMENSION, bool SIGNED, bool FIELD, int KIND, int ROUNDS>
struct OwnWord {
    using R = Rule<2 * DIMENSION, 3, FIELD, KIND, ROUNDS>;
    WordNeighbours<DIMENSION> neighbours;
    const u32* negative;  // of colour 0
    u32 g, w, own, used, words, block;

    __device__ __forceinline__ OwnWord(const AnyRows& rows, u32 word, const Signs& signs, u32 sample, u32 block)
        : neighbours(rows, word), negative((const u32*)(signs.negative + sample * signs.stride) + word), g(word / 4), w(word % 4),
          own(word), words(4 * rows.groups), block(block) {
        const u32 left = max(0, (int)min(rows.lanes(), 32 * word + 32) - (int)(32 * word));
        used = left ? ~0u >> (32 - left) : 0;
    }
    __device__ __forceinline__ WordRandom draw(const HalfSweep& time, const Key& key) const {
        return WordRandom::draw<ROUNDS>(g, w, block, time, key);
    }
    // Asks for the signs of bonds of a colour, which do not change.
    __device__ __forceinline__ void load_signs(u32 colour, u32 (&sign)[R::SLOTS]) const {
#pragma unroll
        for (int k = 0; k < R::SLOTS; ++k) sign[k] = SIGNED ? __ldg(negative + (size_t)(colour * R::SLOTS + k) * words) : 0;
    }

    // Returns the lanes of a colour that flip. `wanted` has the signs of its bonds before, and what they ask for after.
    template <typename Words>
    __device__ __forceinline__ u32 flips(u32 colour, u32 spin, const Words& other, u32 (&wanted)[R::SLOTS], const WordRandom& random,
                                         const UniformRules<R>& rules, const UniformThresholds& thresholds, const HalfSweep& time,
                                         const Key& key) const {
        u32 near[R::SLOTS];
        neighbours.find(colour, other, near);
#pragma unroll
        for (int k = 0; k < R::SLOTS; ++k) wanted[k] ^= near[k];
        const WordChances<R> c(wanted, spin, used, rules.always());
        const auto planes = rules.planes_ahead();
        UniformWordRows<R, decltype(planes)> of_lanes = {c.classes, planes, {}};
        return c.certain | decide_word<R>(c.classes, c.open, w, random, of_lanes, thresholds, g, block, time, key);
    }
};
