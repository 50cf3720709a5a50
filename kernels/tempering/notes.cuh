// What launches of many rounds leave: sums of the last state, and measurements between rounds.
#pragma once
#include "measuring/by_temperature.cuh"

// Takes what is counted of each lane after the last round, [sample][128].
struct LaneSums { u64 *up, *unsatisfied, *up_first; };
CHECK_STRUCT(LaneSums, engine.moves.metropolis.replica_packed.cuda_lattices.LANE_SUMS);

// Takes measurements after every `every` rounds, none if 0: their numbers and the lattices that they are of.
struct Notes {
    u64* to;        // [measurement][Measured::size]
    uint4* copies;  // [measurement][sample][place]
    size_t every;
};
CHECK_STRUCT(Notes, engine.moves.metropolis.replica_packed.cuda_lattices.NOTES);
