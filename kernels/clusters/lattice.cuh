// Fortuin-Kasteleyn clusters of site-packed lattices: spinsim/engine/moves/fortuin_kasteleyn/lattice/ says which there are and
// where their random numbers come from.
//
//   opened[lattice][slot][g]     open bonds of the sites of colour 0, 128 of a group; ghosts[lattice][colour][g] those of fields
//   label[lattice][site]         number in its tile of the smallest site of that tile to which a site is joined within it;
//                                CROSSES is set where open bonds leave the tile from that cluster
//   parent[lattice][site]        of such smallest sites of clusters that cross: a smaller or the same site joined to it
//   marks[lattice][kind][site]   bits of the smallest sites of clusters that hold seeds, and of those with the ghost
//
// Sites of a lattice are numbered x + Lx (y + Ly z), those of a tile likewise within it, so that the smallest number in the tile is
// the smallest in the lattice too. A word of 32 sites in the order of x falls into runs joined by open bonds along x.
#pragma once
#include "packing/slab.cuh"
#include "random/philox.cuh"

constexpr u32 STREAM_CLUSTERS = HOST(rng.Stream.FORTUIN_KASTELEYN);
constexpr u32 COIN = HOST(engine.moves.fortuin_kasteleyn.lattice.COIN);
constexpr u32 OWN = HOST(engine.moves.fortuin_kasteleyn.lattice.OWN);
constexpr u32 SEEDS = HOST(engine.moves.fortuin_kasteleyn.lattice.SEEDS);
constexpr u32 KIND_SWENDSEN_WANG = HOST(engine.moves.fortuin_kasteleyn.clusters.SWENDSEN_WANG);
constexpr u32 KIND_WOLFF = HOST(engine.moves.fortuin_kasteleyn.clusters.WOLFF);
constexpr u32 KIND_SEEDED = HOST(engine.moves.fortuin_kasteleyn.clusters.SEEDED);
constexpr u32 CROSSES = 0x8000;

template <int DIMENSION>
struct Tile;
template <>
struct Tile<2> {
    static constexpr u32 X = HOST(engine.moves.fortuin_kasteleyn.lattice_cuda.SQUARE_X);
    static constexpr u32 Y = HOST(engine.moves.fortuin_kasteleyn.lattice_cuda.SQUARE_Y), Z = 1;
    static constexpr u32 WORDS = X * Y * Z / 32, SITES = X * Y * Z, BORDER = 2 * (X * Z + Y * Z);
    static constexpr u32 JOINED = HOST(engine.moves.fortuin_kasteleyn.lattice_cuda.SQUARE_JOINED);
};
template <>
struct Tile<3> {
    static constexpr u32 X = HOST(engine.moves.fortuin_kasteleyn.lattice_cuda.CUBIC_X);
    static constexpr u32 Y = HOST(engine.moves.fortuin_kasteleyn.lattice_cuda.CUBIC_Y);
    static constexpr u32 Z = HOST(engine.moves.fortuin_kasteleyn.lattice_cuda.CUBIC_Z);
    static constexpr u32 WORDS = X * Y * Z / 32, SITES = X * Y * Z, BORDER = 2 * (X * Y + Y * Z + X * Z);
    static constexpr u32 JOINED = HOST(engine.moves.fortuin_kasteleyn.lattice_cuda.CUBIC_JOINED);
};

// Some lattices at a time, `first` on; each is a replica of a sample.
struct Lattices {
    uint4 *opened, *ghosts;
    unsigned short* label;
    u32 *parent, *marks;
    u32 width, height, depth;  // groups in a row, rows in a plane, planes
    u32 tiles_x, tiles_y;
    u32 first, replicas, first_sample;

    __device__ __forceinline__ u32 rows() const { return height * depth; }
    __device__ __forceinline__ u32 groups() const { return width * height * depth; }
    __device__ __forceinline__ size_t sites() const { return (size_t)256 * groups(); }
    __device__ __forceinline__ u32 lattice() const { return first + blockIdx.y; }
    // Returns counter word 1 of the lattice that a block works on.
    __device__ __forceinline__ u32 block() const {
        return counter_block(first_sample + lattice() / replicas, lattice() % replicas);
    }
};
CHECK_STRUCT(Lattices, engine.moves.fortuin_kasteleyn.lattice_cuda.LATTICES);

// Moves the low 16 bits to the even places, and back.
__device__ __forceinline__ u32 spread(u32 x) {
    x &= 0xffff;
    x = (x | x << 8) & 0x00ff00ff;
    x = (x | x << 4) & 0x0f0f0f0f;
    x = (x | x << 2) & 0x33333333;
    return (x | x << 1) & 0x55555555;
}
__device__ __forceinline__ u32 gather(u32 x) {
    x &= 0x55555555;
    x = (x | x >> 1) & 0x33333333;
    x = (x | x >> 2) & 0x0f0f0f0f;
    x = (x | x >> 4) & 0x00ff00ff;
    return (x | x >> 8) & 0xffff;
}

// Is a word of 32 sites in the order of x: number `word` of a row, in plane z.
struct At {
    u32 word, y, z;
};

// Reads one lattice's words of bonds and of sites in the order of x.
template <int DIMENSION>
struct Rows {
    const u32 *opened, *ghosts;
    u32 width, height, depth;

    __device__ __forceinline__ explicit Rows(const Lattices& all)
        : opened((const u32*)(all.opened + (size_t)blockIdx.y * 2 * DIMENSION * all.groups())),
          ghosts((const u32*)(all.ghosts + (size_t)blockIdx.y * 2 * all.groups())),
          width(all.width), height(all.height), depth(all.depth) {}

    __device__ __forceinline__ u32 words() const { return 8 * width; }  // in a row
    __device__ __forceinline__ u32 odd(const At& at) const { return (at.y + at.z) & 1; }
    // Returns the 16 bits of a word of 32 sites that sites of one colour have, from words of a group's 128.
    __device__ __forceinline__ u32 half(const u32* words, u32 y, u32 z, u32 word) const {
        return words[(size_t)(z * height + y) * 4 * width + word / 2] >> 16 * (word & 1) & 0xffff;
    }
    __device__ __forceinline__ u32 slot(u32 k, u32 y, u32 z, u32 word) const {
        return half(opened + (size_t)k * 4 * width * height * depth, y, z, word);
    }
    __device__ __forceinline__ u32 woven(u32 even, u32 odd_sites) const { return spread(even) | spread(odd_sites) << 1; }

    // Returns the bonds from sites to those at x + 1.
    __device__ __forceinline__ u32 along_x(const At& at) const {
        u32 behind = slot(3, at.y, at.z, at.word);
        if (!odd(at)) {
            const u32 next = at.word + 1 < words() ? at.word + 1 : 0;
            behind = behind >> 1 | (slot(3, at.y, at.z, next) & 1) << 15;
        }
        return woven(slot(2, at.y, at.z, at.word), behind);
    }
    // Return those to y + 1, and to z + 1.
    __device__ __forceinline__ u32 along_y(const At& at) const {
        const u32 own = slot(1, at.y, at.z, at.word);
        const u32 theirs = slot(0, at.y + 1 < height ? at.y + 1 : 0, at.z, at.word);
        return odd(at) ? woven(theirs, own) : woven(own, theirs);
    }
    __device__ __forceinline__ u32 along_z(const At& at) const {
        const u32 own = slot(5, at.y, at.z, at.word);
        const u32 theirs = slot(4, at.y, at.z + 1 < depth ? at.z + 1 : 0, at.word);
        return odd(at) ? woven(theirs, own) : woven(own, theirs);
    }
    // Returns those to the ghost.
    __device__ __forceinline__ u32 to_ghost(const At& at) const {
        const u32* const other = ghosts + (size_t)4 * width * height * depth;
        const u32 zero = half(ghosts, at.y, at.z, at.word), one = half(other, at.y, at.z, at.word);
        return odd(at) ? woven(one, zero) : woven(zero, one);
    }
    // Returns the sites whose random bits of all `planes` planes from `plane` on are set.
    __device__ __forceinline__ u32 drawn(const At& at, u32 plane, u32 planes, u32 block, const HalfSweep& when, const Key& key) const {
        const u32 in_row = at.word / 8, row = at.z * height + at.y, groups = width * height * depth;
        u32 of_colour[2];
#pragma unroll
        for (u32 colour = 0; colour < 2; ++colour) {
            u32 all = 0xffff;
            for (u32 p = 0; p < planes && all; ++p) {
                const uint4 x = philox<MOST_ROUNDS>(colour * groups + row * width + in_row, block, when.word2, when.word3 | (plane + p), key);
                const u32 cell = at.word / 2 % 4, two = cell & 1 ? x.y : x.x, four = cell & 1 ? x.w : x.z;
                all &= (cell & 2 ? four : two) >> 16 * (at.word & 1);
            }
            of_colour[colour] = all;
        }
        return odd(at) ? woven(of_colour[1], of_colour[0]) : woven(of_colour[0], of_colour[1]);
    }
    // Returns the coins of 64 sites that begin with a word, of those with even x or of those with odd x.
    __device__ __forceinline__ u32 coins(const At& at, u32 parity, u32 block, const HalfSweep& when, const Key& key) const {
        const u32 group = ((odd(at) ^ parity) * depth + at.z) * height + at.y, cell = at.word / 2 % 4;
        const uint4 x = philox<MOST_ROUNDS>(group * width + at.word / 8, block, when.word2, when.word3 | COIN, key);
        const u32 two = cell & 1 ? x.y : x.x, four = cell & 1 ? x.w : x.z;
        return cell & 2 ? four : two;
    }
    // Returns the coin of one site.
    __device__ __forceinline__ bool coin(u32 site, u32 block, const HalfSweep& when, const Key& key) const {
        const u32 side = 256 * width, row = site / side, x = site - row * side, lane = x / 2 % 128;
        const u32 colour = (x + row % height + row / height) & 1, groups = width * height * depth;
        const uint4 r = philox<MOST_ROUNDS>(colour * groups + row * width + x / 256, block, when.word2, when.word3 | COIN, key);
        const u32 two = lane & 32 ? r.y : r.x, four = lane & 32 ? r.w : r.z;
        return (lane & 64 ? four : two) >> lane % 32 & 1;
    }
};

// Returns the place of the first site of the run of a bit; `along` are the bonds along x of its word.
__device__ __forceinline__ u32 start_of(u32 along, u32 bit) { return 31 - __clz((~(along << 1) | 1) & ~0u >> (31 - bit)); }

// Returns the bonds between two rows that are the first between their runs; `both` are the bonds along x of both rows.
__device__ __forceinline__ u32 first_meetings(u32 bonds, u32 both) {
    const u32 open_to = both << 1;
    u32 through = open_to, reached = bonds;
#pragma unroll
    for (int by = 1; by < 32; by *= 2) reached |= through & reached << by, through &= through << by;
    return bonds & ~(open_to & reached << 1);
}

// Is a tile of a lattice: the places of its words and sites in the lattice. Tiles at the end have rows that are not there.
template <int DIMENSION>
struct TilePlace {
    using T = Tile<DIMENSION>;
    u32 x, y, z;  // of its first site
    u32 width, height, depth;

    __device__ __forceinline__ TilePlace(const Lattices& all, u32 tile)
        : width(all.width), height(all.height), depth(all.depth) {
        const u32 line = tile / all.tiles_x, plane = line / all.tiles_y;
        x = (tile - line * all.tiles_x) * T::X, y = (line - plane * all.tiles_y) * T::Y, z = plane * T::Z;
    }
    __device__ __forceinline__ At at(u32 word) const {
        const u32 row = word / (T::X / 32);
        return {x / 32 + word % (T::X / 32), y + row % T::Y, z + row / T::Y};
    }
    __device__ __forceinline__ bool has(const At& at) const { return at.y < height && at.z < depth; }
    __device__ __forceinline__ u32 site(u32 local) const {
        const u32 row = local / T::X;
        return ((z + row / T::Y) * height + y + row % T::Y) * (256 * width) + x + local % T::X;
    }
};

// Returns the site that has a number in the tile of (x, y, z).
template <int DIMENSION>
__device__ __forceinline__ u32 site_in_tile(const Lattices& all, u32 local, u32 x, u32 y, u32 z) {
    using T = Tile<DIMENSION>;
    const u32 row = local / T::X, corner = (z / T::Z * T::Z * all.height + y / T::Y * T::Y) * (256 * all.width) + x / T::X * T::X;
    return corner + (row / T::Y * all.height + row % T::Y) * (256 * all.width) + local % T::X;
}

// Returns the smallest site of the tile to which the site at (x, y, z) is joined within it.
template <int DIMENSION>
__device__ __forceinline__ u32 smallest_in_tile(const Lattices& all, const unsigned short* label, u32 x, u32 y, u32 z) {
    const u32 local = label[((size_t)z * all.height + y) * 256 * all.width + x] & (CROSSES - 1);
    return site_in_tile<DIMENSION>(all, local, x, y, z);
}

// Returns the root of a site; those on the way come nearer to it. Others do the same, and unite roots: parents only fall.
__device__ __forceinline__ u32 root_of(u32* parent, u32 site) {
    u32 next = __ldcg(parent + site);
    while (next != site) {
        const u32 further = __ldcg(parent + next);
        if (further == next) return next;
        parent[site] = further;
        site = next, next = further;
    }
    return site;
}

// Lets the larger of two roots follow the smaller one.
__device__ __forceinline__ void unite(u32* parent, u32 one, u32 other) {
    one = root_of(parent, one), other = root_of(parent, other);
    while (one != other) {
        const u32 small = min(one, other), large = max(one, other);
        const u32 old = atomicCAS(parent + large, large, small);
        if (old == large) return;
        one = root_of(parent, small), other = root_of(parent, old);
    }
}
