// Site-packed lattices whose rows begin anywhere in words: spinsim/packing.py states the layout.
#pragma once
#include "packing/slab.cuh"

// A whole lattice: `width` sites of a colour in a row, `height` rows a plane, `depth` planes (one in two dimensions), `groups` of
// 128 lanes a colour. masks[side][group % repeating] are lanes of colour 0 at odd x, and lanes of either colour at sides.
struct AnyRows {
    u32 width, height, depth, groups, repeating;
    const uint4* masks;

    enum Side { ODD, FIRST, LAST, BOTTOM, TOP };
    __device__ __forceinline__ u32 lanes() const { return width * height * depth; }
    __device__ __forceinline__ uint4 mask(Side side, u32 g) const { return __ldg(masks + side * repeating + g % repeating); }

    // Returns the lanes of a group that are sites.
    __device__ __forceinline__ uint4 used(u32 g) const {
        const u32 left = min(lanes() - 128 * g, 128u);
        const auto first = [left](u32 from) { return left <= from ? 0 : left >= from + 32 ? ~0u : (1u << (left - from)) - 1; };
        return make_uint4(first(0), first(32), first(64), first(96));
    }
};
CHECK_STRUCT(AnyRows, engine.moves.metropolis.site_packed.cuda.ANY_ROWS);

__device__ __forceinline__ uint4 used_lanes(const Slab&, u32) { return make_uint4(~0u, ~0u, ~0u, ~0u); }
__device__ __forceinline__ uint4 used_lanes(const AnyRows& rows, u32 g) { return rows.used(g); }
__device__ __forceinline__ u32 groups_of(const Slab& slab) { return slab.width * slab.height * slab.depth; }
__device__ __forceinline__ u32 groups_of(const AnyRows& rows) { return rows.groups; }

__device__ __forceinline__ uint4 mux(const uint4& bit, const uint4& zero, const uint4& one) {
    return make_uint4(mux(bit.x, zero.x, one.x), mux(bit.y, zero.y, one.y), mux(bit.z, zero.z, one.z), mux(bit.w, zero.w, one.w));
}
__device__ __forceinline__ uint4 both(const uint4& a, const uint4& b) { return make_uint4(a.x & b.x, a.y & b.y, a.z & b.z, a.w & b.w); }
__device__ __forceinline__ bool any(const uint4& v) { return v.x | v.y | v.z | v.w; }

// Returns 128 bits from bit `shift`, at most 128, of `low` and the words after it on.
__device__ __forceinline__ uint4 funnel(const uint4& low, const uint4& high, u32 shift) {
    u32 a[9] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w, 0};
#pragma unroll
    for (u32 by = 4; by; by /= 2) {
        const bool moves = shift & 32 * by;
#pragma unroll
        for (u32 k = 0; k < 9; ++k) a[k] = moves ? (k + by < 9 ? a[k + by < 9 ? k + by : 0] : 0) : a[k];
    }
    return make_uint4(__funnelshift_r(a[0], a[1], shift), __funnelshift_r(a[1], a[2], shift), __funnelshift_r(a[2], a[3], shift),
                      __funnelshift_r(a[3], a[4], shift));
}

// Returns 128 lanes of a colour from number `first` on, which may be up to a lattice before or after all of them; after the last
// lane comes the first one. `words(g)` reads a group.
template <typename Words>
__device__ __forceinline__ uint4 lanes_from(const AnyRows& rows, long long first, const Words& words) {
    const u32 lanes = rows.lanes();
    const u32 at = (u32)(first < 0 ? first + lanes : first >= lanes ? first - lanes : first), g = at / 128, shift = at % 128;
    const uint4 none = make_uint4(0, 0, 0, 0);
    uint4 found = funnel(words(g), shift && g + 1 < rows.groups ? words(g + 1) : none, shift);
    if (const u32 left = lanes - at; left < 128) {
        const uint4 begin = funnel(none, words(0), 128 - left);
        found = make_uint4(found.x | begin.x, found.y | begin.y, found.z | begin.z, found.w | begin.w);
    }
    return found;
}

// Finds the words of the neighbours of group g of a colour in the order of the slots, as ``neighbours`` of a slab does.
template <int DIMENSION, typename Other>
__device__ __forceinline__ void neighbours(const AnyRows& rows, u32 colour, u32 g, const Other& other, uint4 (&near)[2 * DIMENSION]) {
    const long long at = 128ll * g, width = rows.width, plane = width * rows.height;
    const auto from = [&](long long lane) { return lanes_from(rows, lane, other); };
    const auto from_either = [&](AnyRows::Side side, long long lane, long long at_side) {
        const uint4 mask = rows.mask(side, g), inside = from(lane);
        return any(mask) ? mux(mask, inside, from(at_side)) : inside;
    };
    near[2] = other(g);
    const uint4 up = from_either(AnyRows::LAST, at + 1, at + 1 - width), down = from_either(AnyRows::FIRST, at - 1, at - 1 + width);
    near[3] = mux(differing(rows.mask(AnyRows::ODD, g), 0 - colour), down, up);
    if constexpr (DIMENSION == 2) {
        near[0] = from(at - width), near[1] = from(at + width);
    } else {
        near[0] = from_either(AnyRows::BOTTOM, at - width, at - width + plane);
        near[1] = from_either(AnyRows::TOP, at + width, at + width - plane);
        near[4] = from(at - plane), near[5] = from(at + plane);
    }
}

// Likewise of colour 0 alone; a whole lattice has its own layers on either side.
template <int DIMENSION, typename Other, typename Before, typename After>
__device__ __forceinline__ void neighbours(const AnyRows& rows, u32 g, const Other& other, const Before&, const After&,
                                           uint4 (&near)[2 * DIMENSION]) {
    neighbours<DIMENSION>(rows, 0, g, other, near);
}

// Returns 32 lanes of a row from its i-th on, 0 past its end; `words` are those of a colour.
template <typename Words>
__device__ __forceinline__ u32 lanes_of_row(const AnyRows& rows, u32 row, u32 i, const Words& words) {
    const u32 at = row * rows.width + i, left = rows.width - i, k = at / 32;
    const u32 bits = __funnelshift_r(words(k), at % 32 && k + 1 < 4 * rows.groups ? words(k + 1) : 0, at % 32);
    return left < 32 ? bits & ((1u << left) - 1) : bits;
}
__device__ __forceinline__ u32 words_in_row(const AnyRows& rows) { return (rows.width + 31) / 32; }
