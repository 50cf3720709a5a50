// Clusters of site-packed lattices from their open bonds: tiles by union-find in shared memory, then only the bonds between tiles
// through global memory, and the flips. A thread has a word of 32 sites in the order of x, or a warp one site each.
#include "clusters/lattice.cuh"

constexpr u32 THREADS = HOST(engine.moves.fortuin_kasteleyn.lattice.cuda.THREADS);

// Returns the root of a site of the tile.
__device__ __forceinline__ u32 local_root(const volatile u32* parent, u32 site) {
    for (u32 next; (next = parent[site]) != site;) site = next;
    return site;
}

__device__ __forceinline__ void local_unite(u32* parent, u32 one, u32 other) {
    one = local_root(parent, one), other = local_root(parent, other);
    while (one != other) {
        const u32 small = min(one, other), large = max(one, other);
        const u32 found = atomicCAS(parent + large, large, small);
        if (found == large) return;
        one = local_root(parent, small), other = local_root(parent, found);
    }
}

// Labels the sites of each tile, and lets the clusters that cross its border begin as their own parents.
template <int DIMENSION>
__global__ __launch_bounds__(THREADS) void label_tiles(Lattices all) {
    using T = Tile<DIMENSION>;
    constexpr u32 ACROSS = T::X / 32, LAYER = ACROSS * T::Y;
    static_assert(T::WORDS == THREADS && T::SITES <= CROSSES, "a thread has a word, a label 15 bits");
    __shared__ u32 parent[T::SITES];
    __shared__ u32 along[T::WORDS + LAYER], crosses[T::WORDS];  // words behind the last one are not there
    const Rows<DIMENSION> rows(all);
    const TilePlace<DIMENSION> place(all, blockIdx.x);
    const u32 t = threadIdx.x, column = t % ACROSS, y = t / ACROSS % T::Y, z = t / LAYER;
    const At at = place.at(t);
    const bool there = place.has(at), ends_x = column + 1 == ACROSS;
    const bool ends_y = y + 1 == T::Y || at.y + 1 == all.height, ends_z = z + 1 == T::Z || at.z + 1 == all.depth;
    const u32 along_x = there ? rows.along_x(at) : 0, along_y = there ? rows.along_y(at) : 0;
    u32 along_z = 0;
    if constexpr (DIMENSION == 3) along_z = there ? rows.along_z(at) : 0;
    for (u32 i = t; i < T::SITES; i += THREADS) parent[i] = i;
    along[t] = along_x, crosses[t] = 0;
    __syncthreads();

    const auto first_of = [&](u32 bit) { return 32 * t + start_of(along_x, bit); };
    const auto unite_with = [&](u32 bonds, u32 other) {
        const u32 theirs = along[other];
        for (u32 left = first_meetings(bonds, along_x & theirs); left; left &= left - 1) {
            const u32 bit = __ffs(left) - 1;
            local_unite(parent, first_of(bit), 32 * other + start_of(theirs, bit));
        }
    };
    if (along_x >> 31 && !ends_x) local_unite(parent, first_of(31), 32 * t + 32);
    if (!ends_y) unite_with(along_y, t + ACROSS);
    if constexpr (DIMENSION == 3)
        if (!ends_z) unite_with(along_z, t + LAYER);
    __syncthreads();

    // Clusters that cross the border: over its own bonds, and over those of the tiles before it.
    u32 crossing = (ends_x ? along_x & 1u << 31 : 0) | (ends_y ? along_y : 0) | (ends_z ? along_z : 0);
    if (there && column == 0) {
        const u32 before = at.word > 0 ? at.word - 1 : rows.words() - 1;
        crossing |= rows.along_x({before, at.y, at.z}) >> 31;
    }
    if (there && y == 0) crossing |= rows.along_y({at.word, (at.y > 0 ? at.y : all.height) - 1, at.z});
    if constexpr (DIMENSION == 3)
        if (there && z == 0) crossing |= rows.along_z({at.word, at.y, (at.z > 0 ? at.z : all.depth) - 1});
    for (u32 starts = ~(along_x << 1) | 1; crossing && starts;) {  // one of each run
        const u32 start = __ffs(starts) - 1;
        starts &= starts - 1;
        const u32 run = (starts ? (1u << (__ffs(starts) - 1)) : 0) - (1u << start);
        if (!(crossing & run)) continue;
        crossing &= ~run;
        const u32 root = local_root(parent, 32 * t + start);
        atomicOr(crosses + root / 32, 1u << root % 32);
    }
    __syncthreads();

    unsigned short* const label = all.label + blockIdx.y * all.sites();
    u32* const global = all.parent + blockIdx.y * all.sites();
    for (u32 i = t; i < T::SITES; i += THREADS) {
        const u32 word = i / 32;
        if (!place.has(place.at(word))) continue;
        const u32 root = local_root(parent, 32 * word + start_of(along[word], i % 32)), site = place.site(i);
        const bool is_out = crosses[root / 32] >> root % 32 & 1;
        label[site] = root | (is_out ? CROSSES : 0);
        if (is_out && root == i) global[site] = site;
    }
}

// Unites what open bonds between tiles join: a warp for 32 sites in the order of x at the upper border of tiles along z and y, a
// thread for each row and border along x. Blocks from `first_y` on are those along y, from `first_x` on those along x.
template <int DIMENSION>
__global__ __launch_bounds__(THREADS) void join_tiles(Lattices all, u32 first_y, u32 first_x) {
    using T = Tile<DIMENSION>;
    const Rows<DIMENSION> rows(all);
    const unsigned short* const label = all.label + blockIdx.y * all.sites();
    u32* const parent = all.parent + blockIdx.y * all.sites();
    if (blockIdx.x >= first_x) {
        const u32 number = (blockIdx.x - first_x) * THREADS + threadIdx.x, row = number / all.tiles_x;
        if (row >= all.rows()) return;
        const u32 after = (number - row * all.tiles_x + 1) * T::X, x = after < 256 * all.width ? after : 0;
        const u32 y = row % all.height, z = row / all.height;
        if (!(rows.along_x({after / 32 - 1, y, z}) >> 31)) return;
        unite(parent, smallest_in_tile<DIMENSION>(all, label, after - 1, y, z), smallest_in_tile<DIMENSION>(all, label, x, y, z));
        return;
    }
    const u32 words = rows.words(), lane = threadIdx.x % 32;
    const bool along_y = blockIdx.x >= first_y;
    const u32 number = (blockIdx.x - (along_y ? first_y : 0)) * (THREADS / 32) + threadIdx.x / 32;
    const u32 line = number / words, word = number - line * words;
    u32 y, z, next_y, next_z;
    if (along_y) {
        z = line / all.tiles_y;
        if (z >= all.depth) return;
        y = min((line - z * all.tiles_y + 1) * T::Y, all.height) - 1;
        next_y = y + 1 < all.height ? y + 1 : 0, next_z = z;
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
    const bool open = bonds >> lane & 1;
    const u32 x = 32 * word + lane;
    const u32 one = open ? smallest_in_tile<DIMENSION>(all, label, x, y, z) : 0;
    const u32 other = open ? smallest_in_tile<DIMENSION>(all, label, x, next_y, next_z) : 0;
    const u32 before = lane ? lane - 1 : 31;
    const bool same = __shfl_sync(~0u, one, before) == one && __shfl_sync(~0u, other, before) == other;
    if (open && !(lane && bonds >> (lane - 1) & 1 && same)) unite(parent, one, other);
}

// Marks the clusters that hold seeds of a replica, and those with the ghost.
template <int DIMENSION>
__global__ __launch_bounds__(THREADS) void mark_clusters(Lattices all, u32 kind, int field, u64 time, Key key) {
    const Rows<DIMENSION> rows(all);
    const u32 number = blockIdx.x * THREADS + threadIdx.x, row = number / rows.words();
    if (row >= all.rows()) return;
    const At at = {number - row * rows.words(), row % all.height, row / all.height};
    const HalfSweep when = counter_half_sweep(time, STREAM_CLUSTERS);
    const unsigned short* const label = all.label + blockIdx.y * all.sites();
    u32* const parent = all.parent + blockIdx.y * all.sites();
    u32* const seeded = all.marks + blockIdx.y * all.sites() / 16;
    const auto mark = [&](u32 sites, u32* marks) {
        for (; sites; sites &= sites - 1) {
            const u32 x = 32 * at.word + __ffs(sites) - 1;
            u32 root = smallest_in_tile<DIMENSION>(all, label, x, at.y, at.z);
            if (label[(size_t)row * 256 * all.width + x] & CROSSES) root = root_of(parent, root);
            atomicOr(marks + root / 32, 1u << root % 32);
        }
    };
    if (kind == KIND_SEEDED) {
        const u32 most = max(1, 32 - __clz((u32)(all.sites() - 1)));
        const u32 k = 1 + __umulhi(philox<MOST_ROUNDS>(0, all.block(), when.word2, when.word3 | OWN, key).y, most);
        mark(rows.drawn(at, SEEDS, k, all.block(), when, key), seeded);
    }
    if (field) mark(rows.to_ghost(at), seeded + all.sites() / 32);
}

// Flips the clusters of a kind, but for those with the ghost.
template <int DIMENSION>
__global__ __launch_bounds__(THREADS) void flip_clusters(u32* state, Lattices all, u32 kind, int field, u64 time, Key key) {
    using T = Tile<DIMENSION>;
    __shared__ u32 coins[T::WORDS], chosen[T::WORDS], crossing, target;
    __shared__ unsigned short crossing_roots[T::BORDER];
    const Rows<DIMENSION> rows(all);
    const TilePlace<DIMENSION> place(all, blockIdx.x);
    const HalfSweep when = counter_half_sweep(time, STREAM_CLUSTERS);
    const unsigned short* const label = all.label + blockIdx.y * all.sites();
    u32* const parent = all.parent + blockIdx.y * all.sites();
    const u32* const seeded = all.marks + blockIdx.y * all.sites() / 16;
    const u32* const fixed = seeded + all.sites() / 32;
    const u32 t = threadIdx.x, block = all.block();
    if (t == 0) {
        crossing = 0;
        if (kind == KIND_WOLFF) {
            const u32 r = philox<MOST_ROUNDS>(0, block, when.word2, when.word3 | OWN, key).x;
            const u32 site = (u64)r * all.sites() >> 32, row = site / (256 * all.width), x = site - row * 256 * all.width;
            const u32 smallest = smallest_in_tile<DIMENSION>(all, label, x, row % all.height, row / all.height);
            target = label[site] & CROSSES ? root_of(parent, smallest) : smallest;
        }
    }
    const At own = place.at(t);
    if (kind == KIND_SWENDSEN_WANG && place.has(own)) coins[t] = rows.drawn(own, COIN, 1, block, when, key);
    __syncthreads();

    // Roots of clusters within the tile choose at once, those of others are listed.
    for (u32 i = t; i < T::SITES; i += THREADS) {
        const bool there = place.has(place.at(i / 32));
        const u32 site = there ? place.site(i) : 0, at = there ? label[site] : ~0u;
        if (at == (i | CROSSES)) crossing_roots[atomicAdd(&crossing, 1u)] = i;
        bool flips = at == i;
        if (flips) {
            if (kind == KIND_SWENDSEN_WANG) flips = coins[i / 32] >> i % 32 & 1;
            if (kind == KIND_WOLFF) flips = site == target;
            if (kind == KIND_SEEDED) flips = seeded[site / 32] >> site % 32 & 1;
            if (field) flips = flips && !(fixed[site / 32] >> site % 32 & 1);
        }
        const u32 word = __ballot_sync(~0u, flips);
        if (i % 32 == 0) chosen[i / 32] = word;
    }
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

    for (u32 i = t; i < T::SITES; i += THREADS) {
        const u32 root = place.has(place.at(i / 32)) ? label[place.site(i)] & (CROSSES - 1) : 0;
        const u32 word = __ballot_sync(~0u, chosen[root / 32] >> root % 32 & 1);
        if (i % 32 == 0) coins[i / 32] = word;
    }
    __syncthreads();
    for (u32 pair = t; pair < T::WORDS / 2; pair += THREADS) {
        const At at = place.at(2 * pair);
        if (!place.has(at)) continue;
        const u32 even = gather(coins[2 * pair]) | gather(coins[2 * pair + 1]) << 16;
        const u32 odd = gather(coins[2 * pair] >> 1) | gather(coins[2 * pair + 1] >> 1) << 16;
        const size_t words = (size_t)4 * all.groups(), row = (size_t)(at.z * all.height + at.y) * 4 * all.width + at.word / 2;
        u32* const mine = state + (size_t)all.lattice() * 2 * words + row;
        const u32 parity = rows.odd(at);
        mine[parity * words] ^= even, mine[(1 - parity) * words] ^= odd;
    }
}
