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
#include "packing/any_rows.cuh"
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
    u32 side, height, depth, groups;  // sites in a row, rows in a plane, planes, groups of a colour
    u32 tiles_x, tiles_y;
    u32 first, replicas, first_sample;

    __device__ __forceinline__ u32 rows() const { return height * depth; }
    __device__ __forceinline__ size_t sites() const { return (size_t)side * rows(); }
    __device__ __forceinline__ size_t mark_words() const { return (sites() + 31) / 32; }  // of a kind of marks
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

// Reads one lattice's words of bonds and of sites in the order of x. With ANY rows begin anywhere in words of lanes, and the last word
// of a row may have fewer sites; without, rows fill groups.
template <int DIMENSION, bool ANY>
struct Rows {
    const u32 *opened, *ghosts;
    u32 side, height, depth, groups;

    __device__ __forceinline__ explicit Rows(const Lattices& all)
        : opened((const u32*)(all.opened + (size_t)blockIdx.y * 2 * DIMENSION * all.groups)),
          ghosts((const u32*)(all.ghosts + (size_t)blockIdx.y * 2 * all.groups)),
          side(all.side), height(all.height), depth(all.depth), groups(all.groups) {}

    __device__ __forceinline__ u32 words() const { return ANY ? (side + 31) / 32 : side / 32; }  // in a row
    // Returns the number of sites of a word.
    __device__ __forceinline__ u32 sites(u32 word) const { return ANY ? min(32u, side - 32 * word) : 32; }
    __device__ __forceinline__ u32 odd(const At& at) const { return (at.y + at.z) & 1; }
    // Returns the lane of the first site that a word has of either colour.
    __device__ __forceinline__ u32 lane(u32 y, u32 z, u32 word) const { return (z * height + y) * (side / 2) + 16 * word; }
    // Returns the bits of a word of 32 sites, up to 16, that sites of one colour have, from words of lanes.
    __device__ __forceinline__ u32 half(const u32* words, u32 y, u32 z, u32 word) const {
        const u32 first = lane(y, z, word), k = first / 32;
        if constexpr (!ANY) return words[k] >> 16 * (word & 1) & 0xffff;
        const u32 bits = __funnelshift_r(words[k], k + 1 < 4 * groups ? words[k + 1] : 0, first % 32);
        return bits & ((1u << sites(word) / 2) - 1);
    }
    __device__ __forceinline__ u32 slot(u32 k, u32 y, u32 z, u32 word) const {
        return half(opened + (size_t)k * 4 * groups, y, z, word);
    }
    __device__ __forceinline__ u32 woven(u32 even, u32 odd_sites) const { return spread(even) | spread(odd_sites) << 1; }

    // Returns the bonds from sites to those at x + 1.
    __device__ __forceinline__ u32 along_x(const At& at) const {
        u32 behind = slot(3, at.y, at.z, at.word);
        if (!odd(at)) {
            const u32 next = at.word + 1 < words() ? at.word + 1 : 0;
            behind = behind >> 1 | (slot(3, at.y, at.z, next) & 1) << (sites(at.word) / 2 - 1);
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
        const u32* const other = ghosts + (size_t)4 * groups;
        const u32 zero = half(ghosts, at.y, at.z, at.word), one = half(other, at.y, at.z, at.word);
        return odd(at) ? woven(one, zero) : woven(zero, one);
    }
    // Returns the sites whose random bits of all `planes` planes from `plane` on are set.
    __device__ __forceinline__ u32 drawn(const At& at, u32 plane, u32 planes, u32 block, const HalfSweep& when, const Key& key) const {
        const u32 first = lane(at.y, at.z, at.word);
        u32 of_colour[2];
#pragma unroll
        for (u32 colour = 0; colour < 2; ++colour) {
            u32 all = (1u << sites(at.word) / 2) - 1;
            for (u32 p = 0; p < planes && all; ++p) all &= random_lanes(colour, first, 16, plane + p, block, when, key);
            of_colour[colour] = all;
        }
        return odd(at) ? woven(of_colour[1], of_colour[0]) : woven(of_colour[0], of_colour[1]);
    }
    // Returns the bits of a plane that up to 32 lanes of a colour have from one of them on.
    __device__ __forceinline__ u32 random_lanes(u32 colour, u32 first, u32 count, u32 plane, u32 block, const HalfSweep& when,
                                                const Key& key) const {
        const u32 group = colour * groups + first / 128, cell = first / 32 % 4, shift = first % 32;
        const auto word_of = [](const uint4& x, u32 k) { return k & 2 ? (k & 1 ? x.w : x.z) : k & 1 ? x.y : x.x; };
        const auto call = [&](u32 of) { return philox<MOST_ROUNDS>(of, block, when.word2, when.word3 | plane, key); };
        const uint4 x = call(group);
        u32 bits = word_of(x, cell) >> shift;
        if (ANY && shift + count > 32) bits |= (cell < 3 ? word_of(x, cell + 1) : call(group + 1).x) << (32 - shift);
        return bits;
    }
    // Returns the coins of up to 64 sites that begin with a word, of those with even x or of those with odd x.
    __device__ __forceinline__ u32 coins(const At& at, u32 parity, u32 block, const HalfSweep& when, const Key& key) const {
        return random_lanes(odd(at) ^ parity, lane(at.y, at.z, at.word), 32, COIN, block, when, key);
    }
    // Returns the coin of one site.
    __device__ __forceinline__ bool coin(u32 site, u32 block, const HalfSweep& when, const Key& key) const {
        const u32 row = site / side, x = site - row * side;
        return random_lanes((x + row % height + row / height) & 1, site / 2, 1, COIN, block, when, key) & 1;
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
    u32 side, height, depth;

    __device__ __forceinline__ TilePlace(const Lattices& all, u32 tile)
        : side(all.side), height(all.height), depth(all.depth) {
        const u32 line = tile / all.tiles_x, plane = line / all.tiles_y;
        x = (tile - line * all.tiles_x) * T::X, y = (line - plane * all.tiles_y) * T::Y, z = plane * T::Z;
    }
    __device__ __forceinline__ At at(u32 word) const {
        const u32 row = word / (T::X / 32);
        return {x / 32 + word % (T::X / 32), y + row % T::Y, z + row / T::Y};
    }
    __device__ __forceinline__ bool has(const At& at) const { return 32 * at.word < side && at.y < height && at.z < depth; }
    __device__ __forceinline__ u32 site(u32 local) const {
        const u32 row = local / T::X;
        return ((z + row / T::Y) * height + y + row % T::Y) * side + x + local % T::X;
    }
};

// Returns the site that has a number in the tile of (x, y, z).
template <int DIMENSION>
__device__ __forceinline__ u32 site_in_tile(const Lattices& all, u32 local, u32 x, u32 y, u32 z) {
    using T = Tile<DIMENSION>;
    const u32 row = local / T::X, corner = (z / T::Z * T::Z * all.height + y / T::Y * T::Y) * all.side + x / T::X * T::X;
    return corner + (row / T::Y * all.height + row % T::Y) * all.side + local % T::X;
}

// Returns the smallest site of the tile to which the site at (x, y, z) is joined within it.
template <int DIMENSION>
__device__ __forceinline__ u32 smallest_in_tile(const Lattices& all, const unsigned short* label, u32 x, u32 y, u32 z) {
    const u32 local = label[((size_t)z * all.height + y) * all.side + x] & (CROSSES - 1);
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
