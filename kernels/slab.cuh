// The geometry of site-packed lattices: spinsim/packing.py states the layout.
#pragma once
#include "logic.cuh"
#include "philox.cuh"

// A slab of the lattice, cut along its slowest axis: rows of `width` groups, `height` of them a plane, `depth` planes (one
// in two dimensions). Even heights; `first_row` is the slab's first among all rows, `parity` that of its coordinates.
struct Slab { u32 width, height, depth, first_row, parity; };

// Rows (planes, in three dimensions) of each colour next to the slab, from (sample, replica) to the next `stride` apart.
struct Halo {
    const uint4 *before[2], *after[2];
    size_t stride;
};

// Negative couplings: [colour][slot][row][q], from sample to sample `stride` apart (0: all share them).
struct Signs {
    const uint4* negative;
    size_t stride;
};

// The words one lane further: lane i + 1 (the next group's first bit comes in) or i - 1.
template <bool UP>
__device__ __forceinline__ uint4 shifted(const uint4& v, u32 edge) {
    if constexpr (UP)
        return make_uint4(__funnelshift_r(v.x, v.y, 1), __funnelshift_r(v.y, v.z, 1), __funnelshift_r(v.z, v.w, 1),
                          __funnelshift_r(v.w, edge, 1));
    else
        return make_uint4(__funnelshift_l(edge, v.x, 1), __funnelshift_l(v.x, v.y, 1), __funnelshift_l(v.y, v.z, 1),
                          __funnelshift_l(v.z, v.w, 1));
}
