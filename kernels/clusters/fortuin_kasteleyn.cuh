// What the kernels of Fortuin-Kasteleyn moves share: spinsim/engine/moves/fortuin_kasteleyn/move.py says which clusters flip.
//
//   state[sample][block][place][4]   spins: bit b of word w is replica 128 block + 32 w + b
//   opened, chosen                   of each sample and block, open bonds and chosen sites: as words of replicas like the spins,
//                                    [bond or site][4], or turned, [column of 32 bonds or labels][128 replicas]
//
// Labels are sites in the order in which they lead, the first one's the largest: the largest label of a cluster is its leader's, and
// the ghost, which never flips, has the largest of all, the number of sites.
#pragma once
#include "random/philox.cuh"

constexpr u32 STREAM_CLUSTERS = HOST(rng.Stream.FORTUIN_KASTELEYN);
constexpr int THREADS = HOST(engine.moves.fortuin_kasteleyn.cuda.THREADS);
constexpr u32 OWN = HOST(engine.moves.fortuin_kasteleyn.move.OWN);
constexpr u32 SWENDSEN_WANG = HOST(engine.moves.fortuin_kasteleyn.move.SWENDSEN_WANG);
constexpr u32 WOLFF = HOST(engine.moves.fortuin_kasteleyn.move.WOLFF);
constexpr u32 SEEDED = HOST(engine.moves.fortuin_kasteleyn.move.SEEDED);
constexpr u32 LANES = 128, WIDTH = 32, WORDS = 4, ALL = ~0u;

// Bonds as spinsim/engine/moves/fortuin_kasteleyn/bonds.py has them, in the order of the smaller label that each joins where they are
// turned; places are those of their ends.
struct Bonds {
    const uint2* places;   // the ghost's is the number of sites
    const u32* number;
    const u8* negative;
    const int* level;
    const double* costs;
    const u8* terms;
    const u32* pairs;      // the labels that each joins, the smaller one in the lower half, where they fit; whole columns
    const uint2* labels;   // the same where they do not
    const u32* starts;     // of each column, the bonds with which a smaller label begins
    size_t negative_stride, level_stride;  // 0 where all samples share them
    u32 count, columns, levels;
};
CHECK_STRUCT(Bonds, engine.moves.fortuin_kasteleyn.cuda.BONDS);

struct Sites {
    const u32 *site, *place;     // of each label
    const u32 *label;            // of each site
    u32 count, columns, most;    // the largest k of seeds
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
