// Clusters of site-packed lattices from their open bonds: tiles by union-find in shared memory, then only the bonds between tiles
// through global memory, and the flips.
#include "clusters/lattice.cuh"

constexpr u32 THREADS = HOST(engine.moves.fortuin_kasteleyn.lattice_cuda.THREADS);

typedef unsigned short u16;
constexpr u32 RESIDENT = 2048;  // threads of a multiprocessor

// Returns the root of a site of the tile, while others unite roots.
__device__ __forceinline__ u32 local_root(const volatile u16* parent, u32 site) {
    for (u32 next; (next = parent[site]) != site;) site = next;
    return site;
}

// Does so while others settle: their trees follow roots that may have CROSSES set.
__device__ __forceinline__ u32 settled_root(const volatile u16* parent, u32 site) {
    for (u32 next; (next = parent[site] & (CROSSES - 1)) != site;) site = next;
    return site;
}

__device__ __forceinline__ void local_unite(u16* parent, u32 one, u32 other) {
    one = local_root(parent, one), other = local_root(parent, other);
    while (one != other) {
        const u32 small = min(one, other), large = max(one, other);
        const u32 old = atomicCAS(parent + large, (u16)large, (u16)small);
        if (old == large) return;
        one = local_root(parent, small), other = local_root(parent, old);
    }
}

// Labels the sites of each tile, and lets the clusters that cross its border begin as their own parents. A thread has a word of 32
// sites in the order of x:
//
//   link     each run follows one that it meets in the row before it or the plane before it: trees without atomics
//   flatten  row by row, or diagonal by diagonal of rows, so that all runs follow the root of their tree
//   unite    the other bonds join trees
//   cross    clusters with open bonds that leave the tile
//   settle   the root of each tree follows the root of its cluster, with CROSSES if that leaves the tile
template <int DIMENSION, bool ANY>
__global__ __launch_bounds__(THREADS, RESIDENT / THREADS) void label_tiles(Lattices all) {
    using T = Tile<DIMENSION>;
    constexpr u32 ACROSS = T::X / 32, LAYER = ACROSS * T::Y;
    static_assert(T::WORDS == THREADS && THREADS % T::X == 0 && T::SITES <= CROSSES, "a thread has a word, a label 15 bits");
    alignas(4) __shared__ u16 parent[T::SITES];  // also written two at a time
    __shared__ u32 along[T::WORDS], crosses[T::WORDS];
    const Rows<DIMENSION, ANY> rows(all);
    const TilePlace<DIMENSION> place(all, blockIdx.x);
    const u32 t = threadIdx.x, lane = t % 32, column = t % ACROSS, y = t / ACROSS % T::Y, z = t / LAYER;
    const At at = place.at(t);
    const bool there = place.has(at);
    const u32 along_x = there ? rows.along_x(at) : 0;
    const u32 below = there ? rows.along_y({at.word, (at.y > 0 ? at.y : all.height) - 1, at.z}) : 0;
    u32 behind = 0;
    if constexpr (DIMENSION == 3)
        if (there) behind = rows.along_z({at.word, at.y, (at.z > 0 ? at.z : all.depth) - 1});
    for (u32 i = t; i < T::SITES / 2; i += THREADS) ((u32*)parent)[i] = 2 * i | (2 * i + 1) << 16;
    along[t] = along_x, crosses[t] = 0;
    __syncthreads();

    u32 linked = 0;  // first sites of runs that follow another one
    const auto link = [&](u32 bonds, u32 before) {
        const u32 theirs = along[before], firsts = first_meetings(bonds, along_x & theirs);
        u32 rest = firsts;
        for (u32 left = first_meetings(firsts, along_x); left; left &= left - 1) {
            const u32 bit = __ffs(left) - 1, start = start_of(along_x, bit);
            if (linked >> start & 1) continue;
            linked |= 1u << start, rest &= ~(1u << bit);
            parent[32 * t + start] = 32 * before + start_of(theirs, bit);
        }
        return rest;
    };
    const u32 rest_below = y > 0 ? link(below, t - ACROSS) : 0;
    u32 rest_behind = 0;
    if constexpr (DIMENSION == 3) rest_behind = z > 0 ? link(behind, t - LAYER) : 0;
    __syncthreads();
    if constexpr (DIMENSION == 2) {
        for (u32 row = T::X; row < T::SITES; row += T::X) {
            if (t < T::X) parent[row + t] = parent[parent[row + t]];
            __syncthreads();
        }
    } else {
        for (u32 diagonal = 1; diagonal < T::Y + T::Z - 1; ++diagonal) {
            const u32 stop = min(diagonal + 1, T::Y);
#pragma unroll 1
            for (u32 row = (diagonal < T::Z ? 0 : diagonal + 1 - T::Z) + t / T::X; row < stop; row += THREADS / T::X) {
                const u32 i = ((diagonal - row) * T::Y + row) * T::X + t % T::X;
                parent[i] = parent[parent[i]];
            }
            __syncthreads();
        }
    }
    const auto unite_rest = [&](u32 rest, u32 before) {
        for (; rest; rest &= rest - 1) {
            const u32 bit = __ffs(rest) - 1;
            local_unite(parent, 32 * t + start_of(along_x, bit), 32 * before + start_of(along[before], bit));
        }
    };
    unite_rest(rest_below, t - ACROSS);
    if constexpr (DIMENSION == 3) unite_rest(rest_behind, t - LAYER);
    if (along_x >> 31 && column + 1 < ACROSS && at.word + 1 < rows.words()) local_unite(parent, 32 * t + start_of(along_x, 31), 32 * t + 32);
    __syncthreads();

    // Clusters that cross the border: over its own bonds, and over those of the tiles before it.
    u32 crossing = y == 0 ? below : 0;
    if (there) {
        const u32 before = at.word > 0 ? at.word - 1 : rows.words() - 1;
        if (column + 1 == ACROSS || at.word + 1 == rows.words()) crossing |= along_x & 1u << (rows.sites(at.word) - 1);
        if (column == 0) crossing |= rows.along_x({before, at.y, at.z}) >> (rows.sites(before) - 1);
        if (y + 1 == T::Y || at.y + 1 == all.height) crossing |= rows.along_y(at);
        if constexpr (DIMENSION == 3) {
            if (z == 0) crossing |= behind;
            if (z + 1 == T::Z || at.z + 1 == all.depth) crossing |= rows.along_z(at);
        }
    }
    for (u32 left = first_meetings(crossing, along_x); left; left &= left - 1) {  // one of each run
        const u32 root = local_root(parent, 32 * t + start_of(along_x, __ffs(left) - 1));
        atomicOr(crosses + root / 32, 1u << root % 32);
    }
    __syncthreads();
    for (u32 trees = (~(along_x << 1) | 1) & ~linked; trees; trees &= trees - 1) {
        const u32 tree = 32 * t + __ffs(trees) - 1, root = settled_root(parent, tree);
        ((volatile u16*)parent)[tree] = root | (crosses[root / 32] >> root % 32 & 1 ? CROSSES : 0);
    }
    __syncthreads();

    u32* const label = (u32*)(all.label + blockIdx.y * all.sites());
    u32* const global = all.parent + blockIdx.y * all.sites();
    const u32 bit = 2 * (lane % 16);  // a lane has two sites of 64
#pragma unroll 4
    for (u32 cell = t / 32; cell < T::WORDS / 2; cell += THREADS / 32) {
        if (!place.has(place.at(2 * cell))) continue;
        const u32 word = 2 * cell + lane / 16, i = 32 * word + bit, site = place.site(i), bonds = along[word];
        if (ANY && place.x + i % T::X >= all.side) continue;
        const u32 one = parent[parent[32 * word + start_of(bonds, bit)] & (CROSSES - 1)];
        const u32 two = bonds >> bit & 1 ? one : parent[parent[i + 1] & (CROSSES - 1)];
        label[site / 2] = one | two << 16;
        if (one == (i | CROSSES)) global[site] = site;
        if (two == (i + 1 | CROSSES)) global[site + 1] = site + 1;
    }
}

// Unites what open bonds between tiles join: a thread for some sites in the order of x at the upper border of tiles along z and y, or
// for a row and a border along x. Blocks from `first_y` on are those along y, from `first_x` on those along x.
template <int DIMENSION, bool ANY>
__global__ __launch_bounds__(THREADS) void join_tiles(Lattices all, u32 first_y, u32 first_x) {
    using T = Tile<DIMENSION>;
    const Rows<DIMENSION, ANY> rows(all);
    const unsigned short* const label = all.label + blockIdx.y * all.sites();
    u32* const parent = all.parent + blockIdx.y * all.sites();
    if (blockIdx.x >= first_x) {
        const u32 number = (blockIdx.x - first_x) * THREADS + threadIdx.x, row = number / all.tiles_x;
        if (row >= all.rows()) return;
        const u32 after = (number - row * all.tiles_x + 1) * T::X, x = after < all.side ? after : 0, last = (x ? x : all.side) - 1;
        const u32 y = row % all.height, z = row / all.height;
        if (!(rows.along_x({last / 32, y, z}) >> last % 32 & 1)) return;
        unite(parent, smallest_in_tile<DIMENSION>(all, label, last, y, z), smallest_in_tile<DIMENSION>(all, label, x, y, z));
        return;
    }
    const bool along_y = blockIdx.x >= first_y;
    const u32 number = (blockIdx.x - (along_y ? first_y : 0)) * THREADS + threadIdx.x, words = rows.words();
    const u32 line = number / (32 / T::JOINED) / words, part = number % (32 / T::JOINED);
    const u32 word = number / (32 / T::JOINED) - line * words, x = 32 * word, side = all.side;
    u32 y, z, next_y, next_z;
    if (along_y) {
        z = next_z = line / all.tiles_y;
        if (z >= all.depth) return;
        y = min((line - z * all.tiles_y + 1) * T::Y, all.height) - 1;
        next_y = y + 1 < all.height ? y + 1 : 0;
    } else {
        const u32 layer = line / all.height;
        if (layer * T::Z >= all.depth) return;
        y = next_y = line - layer * all.height, z = min((layer + 1) * T::Z, all.depth) - 1;
        next_z = z + 1 < all.depth ? z + 1 : 0;
    }
    u32 bonds = 0;
    if (along_y) bonds = rows.along_y({word, y, z});
    if constexpr (DIMENSION == 3)
        if (!along_y) bonds = rows.along_z({word, y, z});
    const unsigned short* const own = label + ((size_t)z * all.height + y) * side + x;
    const unsigned short* const theirs = label + ((size_t)next_z * all.height + next_y) * side + x;
    u32 one = ~0u, other = ~0u;
    for (u32 left = bonds & ((1u << T::JOINED) - 1) << T::JOINED * part; left; left &= left - 1) {
        const u32 bit = __ffs(left) - 1, before = one, other_before = other;
        one = own[bit] & (CROSSES - 1), other = theirs[bit] & (CROSSES - 1);
        if (one == before && other == other_before) continue;
        unite(parent, site_in_tile<DIMENSION>(all, one, x, y, z), site_in_tile<DIMENSION>(all, other, x, next_y, next_z));
    }
}

// Marks the clusters that hold seeds of a replica, and those with the ghost.
template <int DIMENSION, bool ANY>
__global__ __launch_bounds__(THREADS) void mark_clusters(Lattices all, u32 kind, int field, u64 time, Key key) {
    const Rows<DIMENSION, ANY> rows(all);
    const u32 number = blockIdx.x * THREADS + threadIdx.x, row = number / rows.words();
    if (row >= all.rows()) return;
    const At at = {number - row * rows.words(), row % all.height, row / all.height};
    const HalfSweep when = counter_half_sweep(time, STREAM_CLUSTERS);
    const unsigned short* const label = all.label + blockIdx.y * all.sites();
    u32* const parent = all.parent + blockIdx.y * all.sites();
    u32* const seeded = all.marks + blockIdx.y * 2 * all.mark_words();
    const auto mark = [&](u32 sites, u32* marks) {
        for (u32 last = ~0u; sites; sites &= sites - 1) {
            const u32 x = 32 * at.word + __ffs(sites) - 1, own = label[(size_t)row * all.side + x];
            if (own == last) continue;
            last = own;
            u32 root = site_in_tile<DIMENSION>(all, own & (CROSSES - 1), x, at.y, at.z);
            if (own & CROSSES) root = root_of(parent, root);
            if (!(__ldcg(marks + root / 32) >> root % 32 & 1)) atomicOr(marks + root / 32, 1u << root % 32);
        }
    };
    if (kind == KIND_SEEDED) {
        const u32 most = max(1, 32 - __clz((u32)(all.sites() - 1)));
        const u32 k = 1 + __umulhi(philox<MOST_ROUNDS>(0, all.block(), when.word2, when.word3 | OWN, key).y, most);
        mark(rows.drawn(at, SEEDS, k, all.block(), when, key), seeded);
    }
    if (field) mark(rows.to_ghost(at), seeded + all.mark_words());
}

// Flips the clusters of a kind, but for those with the ghost. A lane has the sites 2 l and 2 l + 1 of a cell of 64, whose votes are
// words of the two colours; of a warp's 16 cells lane 2 c + p then has the word of cell c with x of parity p.
template <int DIMENSION, bool ANY>
__global__ __launch_bounds__(THREADS) void flip_clusters(u32* state, Lattices all, u32 kind, int field, u64 time, Key key) {
    using T = Tile<DIMENSION>;
    constexpr u32 WARPS = THREADS / 32, CELLS = T::X / 64, TURNS = T::SITES / 64 / WARPS, ROWS = WARPS / CELLS;
    static_assert(2 * TURNS == 32 && ROWS * CELLS == WARPS && T::Y % ROWS == 0, "a lane has a word");
    __shared__ u32 chosen[T::WORDS], crossing, target;  // of roots in the order of x
    __shared__ unsigned short crossing_roots[T::BORDER];
    const Rows<DIMENSION, ANY> rows(all);
    const TilePlace<DIMENSION> place(all, blockIdx.x);
    const HalfSweep when = counter_half_sweep(time, STREAM_CLUSTERS);
    const unsigned short* const label = all.label + blockIdx.y * all.sites();
    u32* const parent = all.parent + blockIdx.y * all.sites();
    const u32 t = threadIdx.x, lane = t % 32, warp = t / 32, block = all.block(), parity = lane % 2;
    if (t == 0) {
        crossing = target = 0;
        if (kind == KIND_WOLFF) {
            const u32 r = philox<MOST_ROUNDS>(0, block, when.word2, when.word3 | OWN, key).x;
            const u32 site = (u64)r * all.sites() >> 32, row = site / all.side, x = site - row * all.side;
            const u32 smallest = smallest_in_tile<DIMENSION>(all, label, x, row % all.height, row / all.height);
            target = label[site] & CROSSES ? root_of(parent, smallest) : smallest;
        }
    }
    const u32 x = place.x + warp % CELLS * 64, y = place.y + warp / CELLS;
    u32 labels[TURNS];  // of both sites
#pragma unroll
    for (u32 pass = 0; pass < TURNS; ++pass) {
        const At at = {x / 32, y + ROWS * pass % T::Y, place.z + ROWS * pass / T::Y};
        const u32 site = (at.z * all.height + at.y) * all.side + x + 2 * lane;
        labels[pass] = place.has(at) && (!ANY || x + 2 * lane < all.side) ? *(const u32*)(label + site) : ~0u;
    }
    __syncthreads();

    // Roots of clusters within the tile choose at once, those of others are listed.
    u32 mine = 0, leaving = 0;
#pragma unroll
    for (u32 pass = 0; pass < TURNS; ++pass) {
        const u32 i = 64 * (warp + WARPS * pass) + 2 * lane;
#pragma unroll
        for (u32 p = 0; p < 2; ++p) {
            const u32 own = labels[pass] >> 16 * p & 0xffff;
            const u32 within = __ballot_sync(~0u, own == i + p), out = __ballot_sync(~0u, own == (i + p | CROSSES));
            if (lane == 2 * pass + p) mine = within, leaving = out;
        }
    }
    const u32 word = 2 * (warp + WARPS * (lane / 2));
    for (u32 k = leaving ? atomicAdd(&crossing, (u32)__popc(leaving)) : 0; leaving; leaving &= leaving - 1)
        crossing_roots[k++] = 32 * word + 2 * (__ffs(leaving) - 1) + parity;
    const At at = place.at(word);
    const bool there = place.has(at);
    const u32 first = place.site(32 * word);
    const u32* const seeded = all.marks + blockIdx.y * 2 * all.mark_words();
    const u32* const fixed = seeded + all.mark_words();
    const auto marked = [&](const u32* marks) {
        const size_t k = first / 32;
        u32 low = marks[k], high = marks[ANY ? min(k + 1, all.mark_words() - 1) : k + 1];
        if constexpr (ANY) {  // sites of the next row, if there are any, are roots of their own tile
            const u32 further = marks[min(k + 2, all.mark_words() - 1)];
            low = __funnelshift_r(low, high, first % 32), high = __funnelshift_r(high, further, first % 32);
        }
        return gather(low >> parity) | gather(high >> parity) << 16;
    };
    if (there) {
        if (kind == KIND_SWENDSEN_WANG) mine &= rows.coins(at, parity, block, when, key);
        if (kind == KIND_WOLFF) mine &= target - first < 64 && target % 2 == parity ? 1u << (target - first) / 2 : 0;
        if (kind == KIND_SEEDED) mine &= marked(seeded);
        if (field) mine &= ~marked(fixed);
    }
    const u32 other = __shfl_xor_sync(~0u, mine, 1);
    chosen[word + parity] = spread((parity ? other : mine) >> 16 * parity) | spread((parity ? mine : other) >> 16 * parity) << 1;
    __syncthreads();
    for (u32 k = t; k < crossing; k += THREADS) {
        const u32 i = crossing_roots[k], root = root_of(parent, place.site(i));
        bool flips = root == target;
        if (kind == KIND_SWENDSEN_WANG) flips = rows.coin(root, block, when, key);
        if (kind == KIND_SEEDED) flips = seeded[root / 32] >> root % 32 & 1;
        if (field) flips = flips && !(fixed[root / 32] >> root % 32 & 1);
        if (flips) atomicOr(chosen + i / 32, 1u << i % 32);
    }
    __syncthreads();
#pragma unroll
    for (u32 pass = 0; pass < TURNS; ++pass) {
#pragma unroll
        for (u32 p = 0; p < 2; ++p) {
            const u32 root = labels[pass] >> 16 * p & (T::SITES - 1);
            const u32 votes = __ballot_sync(~0u, chosen[root / 32] >> root % 32 & 1);
            if (lane == 2 * pass + p) mine = votes;
        }
    }
    if (!there) return;
    u32* const of_colour = state + (2 * (size_t)all.lattice() + (rows.odd(at) ^ parity)) * 4 * all.groups;
    const u32 lane_of = rows.lane(at.y, at.z, at.word), k = lane_of / 32, shift = lane_of % 32;
    if constexpr (!ANY) {
        of_colour[k] ^= mine;
    } else {
        const u32 left = (all.side - 32 * at.word) / 2;
        if (left < 32) mine &= (1u << left) - 1;
        if (mine << shift) atomicXor(of_colour + k, mine << shift);
        if (shift && mine >> (32 - shift)) atomicXor(of_colour + k + 1, mine >> (32 - shift));
    }
}
