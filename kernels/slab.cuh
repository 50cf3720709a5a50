// The geometry of site-packed lattices: spinsim/packing.py states the layout.
#pragma once
#include "logic.cuh"
#include "philox.cuh"

// A slab of the lattice, cut along its slowest axis: rows of `width` groups, `height` of them a plane, `depth` planes (one
// in two dimensions). Even heights; `first_row` is the slab's first among all rows, `parity` that of its coordinates.
struct Slab {
    u32 width, height, depth, first_row, parity;

    // Groups in a row or, in three dimensions, a plane; and how many there are.
    __device__ __forceinline__ u32 layer(int dimension) const { return dimension == 3 ? width * height : width; }
    __device__ __forceinline__ u32 layers(int dimension) const { return dimension == 3 ? depth : height; }
};

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

// The words one lane further: of lane i + 1 (`up`; the next group's first bit comes in) or i - 1.
__device__ __forceinline__ uint4 beside(const uint4& v, const uint4& edge, bool up) {
    const u32 a = up ? v.x : edge.w, b = up ? v.y : v.x, c = up ? v.z : v.y, d = up ? v.w : v.z, e = up ? edge.x : v.w;
    const u32 shift = up ? 1 : 31;
    return make_uint4(__funnelshift_r(a, b, shift), __funnelshift_r(b, c, shift), __funnelshift_r(c, d, shift),
                      __funnelshift_r(d, e, shift));
}
