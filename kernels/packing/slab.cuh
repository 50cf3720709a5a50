// The geometry of site-packed lattices: spinsim/packing.py states the layout.
#pragma once
#include "bits/logic.cuh"

// A slab of the lattice, cut along its slowest axis: rows of `width` groups, `height` of them a plane, `depth` planes (one
// in two dimensions). Even heights; `first_row` is the slab's first among all rows, `parity` that of its coordinates.
struct Slab {
    u32 width, height, depth, first_row, parity;

    // Return the groups in a row or, in three dimensions, a plane; and how many of these there are.
    __device__ __forceinline__ u32 layer(int dimension) const { return dimension == 3 ? width * height : width; }
    __device__ __forceinline__ u32 layers(int dimension) const { return dimension == 3 ? depth : height; }
};
CHECK_STRUCT(Slab, engine.moves.metropolis.site_packed.cuda.SLAB);

// Rows (planes, in three dimensions) of each colour next to the slab, from (sample, replica) to the next `stride` apart.
struct Halo {
    const uint4 *before[2], *after[2];
    size_t stride;
};
CHECK_STRUCT(Halo, engine.moves.metropolis.site_packed.cuda.HALO);

// Negative couplings: [colour][slot][row][q], from sample to sample `stride` apart (0: all share them).
struct Signs {
    const uint4* negative;
    size_t stride;
};
CHECK_STRUCT(Signs, engine.moves.metropolis.site_packed.cuda.SIGNS);

// Returns the words one lane further: of lane i + 1 (`up`; the next group's first bit comes in) or i - 1.
__device__ __forceinline__ uint4 next_in_row(const uint4& v, const uint4& edge, bool up) {
    const u32 a = up ? v.x : edge.w, b = up ? v.y : v.x, c = up ? v.z : v.y, d = up ? v.w : v.z, e = up ? edge.x : v.w;
    const u32 shift = up ? 1 : 31;
    return make_uint4(__funnelshift_r(a, b, shift), __funnelshift_r(b, c, shift), __funnelshift_r(c, d, shift),
                      __funnelshift_r(d, e, shift));
}

// Finds the words of the neighbours of group g of colour 0, in the order of spinsim/engine/layouts/site_packed.py's
// slots. `other(i)` reads colour 1, `before(i)` and `after(i)` its layer on either side of the slab.
template <int DIMENSION, typename Other, typename Before, typename After>
__device__ __forceinline__ void neighbours(const Slab& slab, u32 g, const Other& other, const Before& before,
                                           const After& after, uint4 (&near)[2 * DIMENSION]) {
    const u32 row = g / slab.width, q = g - row * slab.width, plane = slab.width * slab.height;
    const u32 z = DIMENSION == 3 ? row / slab.height : 0, y = row - z * slab.height;
    const bool bottom = y == 0, top = y + 1 == slab.height, odd = (y + z + slab.parity) & 1;
    const uint4 centre = other(g);
    if constexpr (DIMENSION == 2) {
        near[0] = bottom ? before(q) : other(g - slab.width);
        near[1] = top ? after(q) : other(g + slab.width);
    } else {
        near[0] = other(bottom ? g + plane - slab.width : g - slab.width);
        near[1] = other(top ? g + slab.width - plane : g + slab.width);
        near[4] = z == 0 ? before(g) : other(g - plane);
        near[5] = z + 1 == slab.depth ? after(g - z * plane) : other(g + plane);
    }
    near[2] = centre;
    const u32 up = q + 1 < slab.width ? g + 1 : g + 1 - slab.width, down = q > 0 ? g - 1 : g - 1 + slab.width;
    near[3] = next_in_row(centre, other(odd ? up : down), odd);
}
