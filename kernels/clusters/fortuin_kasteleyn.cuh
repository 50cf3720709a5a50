// What the kernels of Fortuin-Kasteleyn moves share: spinsim/engine/moves/fortuin_kasteleyn/move.py says which clusters flip.
//
//   state[sample][block][place][4]   spins: bit b of word w is replica 128 block + 32 w + b
//   opened, chosen                   of each sample and block, open bonds and chosen sites: as words of replicas like the spins,
//                                    [bond or site][4], or turned, [128 replicas][column of 32 bonds or labels]
//
// Where clusters are found by union-find, labels are sites in the order in which they lead, the first one's the largest, so that the
// largest label of a cluster is its leader's. The ghost, which never flips, has the largest of all. Leaves, sites that no bonds join
// to each other and which lead alone or not at all, have no labels: of the labels that a leaf's open bonds join, any is its own.
#pragma once
#include "random/philox.cuh"

constexpr u32 STREAM_CLUSTERS = HOST(rng.Stream.FORTUIN_KASTELEYN);
constexpr int THREADS = HOST(engine.moves.fortuin_kasteleyn.cuda.THREADS);
constexpr u32 OWN = HOST(engine.moves.fortuin_kasteleyn.move.OWN);
constexpr u32 SWENDSEN_WANG = HOST(engine.moves.fortuin_kasteleyn.move.SWENDSEN_WANG);
constexpr u32 WOLFF = HOST(engine.moves.fortuin_kasteleyn.move.WOLFF);
constexpr u32 SEEDED = HOST(engine.moves.fortuin_kasteleyn.move.SEEDED);
constexpr u32 GROUP = HOST(engine.moves.fortuin_kasteleyn.cuda.GROUP);  // columns come in such groups
constexpr u32 LANES = 128, WIDTH = 32, WORDS = 4, ALL = ~0u;
static_assert(GROUP == 8 && THREADS == 2 * LANES && THREADS == GROUP * WIDTH, "a thread writes four columns of a replica");

// Bonds as spinsim/engine/moves/fortuin_kasteleyn/clusters.py has them, those to the ghost last. Where they are turned there are holes, whose
// level is -1: a column has groups of `leaf_width` bonds of a leaf, or, from leaf_columns on, of `width` bonds of a label to larger ones.
struct Bonds {
    const uint2* places;   // of ends; the ghost's is the number of sites
    const u32* number;
    const u8* negative;
    const int* level;
    const double* costs;
    const u8* terms;
    const unsigned short *larger, *smaller;  // labels that each joins; of a leaf's the larger one alone
    const uint2* labels;   // labels that each joins, of all sites, where they do not fit so
    size_t negative_stride, level_stride;    // 0 where all samples share them
    u32 count, columns, leaf_columns, leaf_width, width, levels;
};
CHECK_STRUCT(Bonds, engine.moves.fortuin_kasteleyn.cuda.BONDS);

// Positions are those of words of sites: labels and, from joined_columns on, leaves, group by group of 32 columns of their bonds.
struct Sites {
    const u32 *site, *place;  // at each position; the number of sites in a hole
    const u32* label;         // of each site; of a leaf its number from 2^31 on
    u32 count, joined, columns, joined_columns, most;  // the largest k of seeds
};
CHECK_STRUCT(Sites, engine.moves.fortuin_kasteleyn.cuda.SITES);

struct Batch {
    uint4* state;
    u32 *opened, *chosen;
    u32 blocks, replicas, move, first_sample;
};
CHECK_STRUCT(Batch, engine.moves.fortuin_kasteleyn.cuda.BATCH);

// Returns what a replica draws: its site in x, its k in y.
__device__ __forceinline__ uint4 draw_own(u32 replica, u32 sample, const HalfSweep& time, const Key& key) {
    return philox<MOST_ROUNDS>(replica, counter_block(sample, 0), time.word2, time.word3 | OWN, key);
}
