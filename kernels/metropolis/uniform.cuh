// Tables of lattices whose lanes have one temperature: those of site-packed replicas.
#pragma once
#include "metropolis/group.cuh"

constexpr u32 THREADS = HOST(engine.moves.metropolis.site_packed.cuda.THREADS);

// Gives the tables of every replica: planes[part][plane][class] and always[part][class] are 0 or all ones.
struct UniformTables {
    const u32 *always, *planes;
    const u64* thresholds;  // [part][class]
    size_t stride;          // parts from sample to sample: its replicas, 0 where all samples share them

    __device__ __forceinline__ size_t part(u32 sample, u32 replica) const { return sample * stride + replica; }
};
CHECK_STRUCT(UniformTables, engine.moves.metropolis.site_packed.cuda.UNIFORM_TABLES);

// Holds all rows of sums in registers.
struct SumsAhead {
    static constexpr bool UNIFORM = true, SUMS = true;
    uint4 row[PLANES];
    __device__ __forceinline__ const uint4& load(int plane) const { return row[plane]; }
};

// Holds the rows of one replica in shared memory; those of planes as sums where classes have two bits.
template <typename R, bool SUMS = R::BITS == 2>
struct UniformRules {
    uint4 sums[PLANES];
    u32 always_rows[4];

    // Each of some threads loads its part.
    __device__ __forceinline__ void load(const UniformTables& tables, size_t part, u32 thread, u32 threads) {
        constexpr bool CLASS_0 = !R::PLAIN || R::SLOTS != 4;
        for (u32 i = thread; i < PLANES; i += threads) sums[i] = UniformSums::factors(tables.planes + 4 * (part * PLANES + i), CLASS_0);
        for (u32 i = thread; i < 4; i += threads) always_rows[i] = tables.always[4 * part + i];
    }
    __device__ __forceinline__ UniformRows always() const { return {(u32)__cvta_generic_to_shared(always_rows)}; }
    __device__ __forceinline__ UniformSums planes() const { return {(u32)__cvta_generic_to_shared(sums)}; }
    // Reads all planes now, for few warps, which would wait for each.
    __device__ __forceinline__ SumsAhead planes_ahead() const {
        SumsAhead ahead;
#pragma unroll
        for (int plane = 0; plane < PLANES; ++plane) ahead.row[plane] = planes().load(plane);
        return ahead;
    }
};

template <typename R>
struct UniformRules<R, false> {
    static constexpr u32 CLASSES = 1 << R::BITS;
    u32 rows[(1 + PLANES) * CLASSES];

    __device__ __forceinline__ void load(const UniformTables& tables, size_t part, u32 thread, u32 threads) {
        for (u32 i = thread; i < CLASSES; i += threads) rows[i] = tables.always[part * CLASSES + i];
        for (u32 i = thread; i < PLANES * CLASSES; i += threads) rows[CLASSES + i] = tables.planes[part * PLANES * CLASSES + i];
    }
    __device__ __forceinline__ UniformRows always() const { return {(u32)__cvta_generic_to_shared(rows)}; }
    __device__ __forceinline__ UniformRows planes() const { return always().from(CLASSES); }
    __device__ __forceinline__ UniformRows planes_ahead() const { return planes(); }  // too many
};
