// Clusters of Fortuin-Kasteleyn moves by union-find over turned bonds, a replica a warp with its labels in shared memory, or a replica a
// block with more labels than fit.
#include "clusters/fortuin_kasteleyn.cuh"
#include "clusters/roots.cuh"

constexpr int MOST_WARPS = HOST(engine.moves.fortuin_kasteleyn.cuda.MOST_WARPS), JOINING = HOST(engine.moves.fortuin_kasteleyn.cuda.JOINING);
constexpr int ENOUGH_IDLE = HOST(engine.moves.fortuin_kasteleyn.cuda.ENOUGH_IDLE);
constexpr u32 SPREAD = HOST(engine.moves.fortuin_kasteleyn.cuda.SPREAD), NONE = ~0u, FIRST_LEAF = HOST(engine.moves.fortuin_kasteleyn.cuda.FIRST_LEAF);

// Groups of bonds that lie side by side in a column, at most WIDTH in all.
struct Groups {
    u32 width, count, starts;  // bits of a group; groups of a column; the first bits of all

    __device__ __forceinline__ Groups(u32 width) : width(width), count(width ? WIDTH / width : 0), starts(0) {
        for (u32 g = 0; g < count; ++g) starts |= 1u << g * width;
    }
    __device__ __forceinline__ u32 bonds_of(u32 g, u32 open) const { return open >> g * width & ALL >> (WIDTH - width); }
};

// Returns the first open bond of each group, which begin at `starts`: what carries of a sum reach above it does not count.
__device__ __forceinline__ u32 first_of(u32 open, u32 starts) {
    const u32 sum = (open | ~starts) + open, above = open | (~starts & (sum ^ open ^ (open | ~starts)));
    return open & ~(above << 1 & ~starts);
}

// Returns the last bit of a word that has one; __clz counts from the other end, which takes two instructions more.
__device__ __forceinline__ u32 last_of(u32 word) {
    u32 bit;
    asm("bfind.u32 %0, %1;" : "=r"(bit) : "r"(word));
    return bit;
}

// Shared memory by its address, which the compiler would make anew from a pointer each time.
__device__ __forceinline__ u32 word_at(u32 address) {
    u32 word;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(address) : "memory");
    return word;
}
__device__ __forceinline__ void set_word(u32 address, u32 word) { asm volatile("st.shared.u32 [%0], %1;" ::"r"(address), "r"(word) : "memory"); }
__device__ __forceinline__ u32 half_at(u32 address) {
    u32 half;
    asm volatile("ld.shared.u16 %0, [%1];" : "=r"(half) : "r"(address) : "memory");
    return half;
}
__device__ __forceinline__ void set_half(u32 address, u32 half) { asm volatile("st.shared.u16 [%0], %1;" ::"r"(address), "r"(half) : "memory"); }

// The clusters of one replica as trees, for a warp: the parent of a label is a larger label of the same cluster, or itself of a root.
// Parents are halves of words. All threads go on together, so that nobody writes between another's reading and writing.
template <bool IN_SHARED>
struct Trees {
    static constexpr u32 STRIDE = IN_SHARED ? SPREAD : WIDTH;  // from a column of bonds to the next, of their labels
    u32 parents, slots, near_larger;  // addresses: of parents; of pairs that threads hand to others; of labels of bonds
    const Bonds& bonds;
    u32* opened;

    __device__ __forceinline__ u32 parent_of(u32 label) const { return half_at(parents + 2 * label); }
    __device__ __forceinline__ void hang(u32 label, u32 parent) const { set_half(parents + 2 * label, parent); }
    __device__ __forceinline__ u32 larger_of(u32 bond) const { return IN_SHARED ? half_at(near_larger + 2 * bond) : __ldg(bonds.larger + bond); }
    __device__ __forceinline__ u32 word(u32 column, u32 end) const { return column < end ? opened[column] : 0; }
    __device__ __forceinline__ u32 starts_at(u32 column, const Groups& of_leaves, const Groups& of_labels) const {
        return column < bonds.leaf_columns ? of_leaves.starts : of_labels.starts;
    }

    static __device__ __forceinline__ u32 first_before(u32 firsts, u32 bond) { return last_of(firsts & ((1u << bond) - 1)); }

    // Hangs labels of bonds that are roots on that of the first bond of their group, of `tried` ones; returns the bonds left of `rest`.
    // A thread without any tries its bond 0 as its own first one, which changes nothing, as that is never in `rest`.
    __device__ __forceinline__ u32 hang_roots(u32 firsts, u32 rest, u32 tried, u32 mine) const {
        while (__any_sync(ALL, tried)) {
            const u32 bond = last_of(tried | 1), one = 1u << bond, large = larger_of(mine + last_of((firsts & (one - 1)) | 1));
            const u32 small = larger_of(mine + bond), above = parent_of(small);
            __syncwarp();
            if (above == small && small < large) hang(small, large);
            __syncwarp();
            if (parent_of(small) == large) rest &= ~one;  // else another one has hung it
            __syncwarp();
            tried &= ~one;
        }
        return rest;
    }

    // Lets labels meet bond by bond. A thread has 32 bonds of a column, and every 32nd column; the next word is on its way.
    __device__ __forceinline__ void join(const Groups& of_leaves, const Groups& of_labels) const {
        const u32 lane = threadIdx.x % WIDTH, before = (1u << lane) - 1, columns = bonds.columns;
        // The first bond of a label hangs it at once.
        for (u32 column = bonds.leaf_columns + lane, open = word(column, columns); __any_sync(ALL, column < columns);) {
            const u32 mine = column * WIDTH, labels = column * STRIDE;
            u32 first = first_of(open, of_labels.starts);
            column += WIDTH, open = word(column, columns);
            for (; first; first &= first - 1) hang(__ldg(bonds.smaller + mine + __ffs(first) - 1), larger_of(labels + __ffs(first) - 1));
        }
        __syncwarp();
        // What else a leaf or a label has open joins its first one's tree. A label that is still a root hangs on that at once; of what is
        // left the words keep the bonds, with the first ones.
        for (u32 column = lane; __any_sync(ALL, column < columns); column += WIDTH) {
            const u32 open = word(column, columns), starts = starts_at(column, of_leaves, of_labels), firsts = first_of(open, starts);
            const u32 mine = column < columns ? column * STRIDE : 0, others = open & ~firsts;
            const u32 left = firsts | hang_roots(firsts, others, first_of(others, starts), mine);
            if (left != open) opened[column] = left;
        }
        // Then two bonds at a time in each thread: the smaller of two labels hangs on the larger one, which is done where it was a root; else
        // its old parent goes on (Rem's algorithm with splicing: M. M. A. Patwary, J. Blair, F. Manne, SEA 2010).
        u32 column = lane, open = word(lane, columns), firsts = 0, rest = 0, mine = 0, one[2] = {}, other[2] = {};
        for (;;) {
            const u32 idle[2] = {__ballot_sync(ALL, one[0] == other[0]), __ballot_sync(ALL, one[1] == other[1])};
            const u32 free = __popc(idle[0]) + __popc(idle[1]);
            if (free >= ENOUGH_IDLE) {  // threads that have bonds left hand one each to those that have less to do
                if (!rest && column < columns) {
                    firsts = first_of(open, starts_at(column, of_leaves, of_labels)), rest = open & ~firsts, mine = column * STRIDE;
                    column += WIDTH, open = word(column, columns);
                }
                const u32 ready = __ballot_sync(ALL, rest);
                const u32 handed = min((u32)__popc(ready), free), place = __popc(ready & before);
                if (rest && place < handed) {
                    const u32 bond = last_of(rest);
                    set_word(slots + 4 * place, larger_of(mine + first_before(firsts, bond)) | larger_of(mine + bond) << 16);
                    rest ^= 1u << bond;
                }
                __syncwarp();
                u32 slot = __popc(idle[0] & before);
#pragma unroll
                for (int k = 0; k < 2; ++k) {
                    if (one[k] == other[k] && slot < handed) {
                        const u32 pair = word_at(slots + 4 * slot);
                        one[k] = parent_of(pair & 0xffff), other[k] = parent_of(pair >> 16);
                    }
                    slot = __popc(idle[0]) + __popc(idle[1] & before);
                }
                if (free == 2 * WIDTH && !ready && !__any_sync(ALL, column < columns)) return;
            }
            u32 small[2], large[2], above[2];
#pragma unroll
            for (int k = 0; k < 2; ++k) small[k] = min(one[k], other[k]), large[k] = max(one[k], other[k]), above[k] = parent_of(small[k]);
            __syncwarp();
#pragma unroll
            for (int k = 0; k < 2; ++k) {
                if (above[k] < large[k]) hang(small[k], large[k]);  // never a label on itself
                // A root is read again, as several may have hung it. Of a pair that has met both stay; a choice would become a branch.
                const u32 goes_on = 0u - (small[k] != large[k]);
                one[k] = large[k] ^ ((above[k] ^ large[k]) & goes_on), other[k] = large[k];
            }
            __syncwarp();
        }
    }

    // Lets all labels hang on their roots, from the largest down, four columns at a time; does `visit` with their roots.
    template <typename Visit>
    __device__ __forceinline__ void settle(u32 quads, Visit visit) const {
        for (u32 quad = quads; quad-- > 0;) {
            const u32 own = parents + 2 * (4 * WIDTH * quad + threadIdx.x % WIDTH);
            u32 root[4], above[4];
            bool is_left;
#pragma unroll
            for (u32 k = 0; k < 4; ++k) above[k] = half_at(own + 2 * WIDTH * k);
            do {
                is_left = false;
#pragma unroll
                for (u32 k = 0; k < 4; ++k) root[k] = above[k], above[k] = parent_of(root[k]), is_left |= above[k] != root[k];
            } while (__any_sync(ALL, is_left));
            __syncwarp();
#pragma unroll
            for (u32 k = 0; k < 4; ++k) set_half(own + 2 * WIDTH * k, root[k]);
            __syncwarp();
            visit(quad, root);
        }
    }

    // Sets the words of leaves, `chosen`, by flips(leaf, is_chosen, is_joined, label): the leaf's number, its bit there before, none of Wolff
    // moves, whether a bond of it is open, and a label that such a bond joins.
    template <typename Flips>
    __device__ __forceinline__ void each_leaf(const Groups& groups, u32* chosen, bool is_wolff, Flips flips) const {
        const u32 lane = threadIdx.x % WIDTH;
        for (u32 base = 0; base < bonds.leaf_columns; base += WIDTH, chosen += groups.count) {
            const u32 column = base + lane, open = word(column, bonds.leaf_columns), mine = column < bonds.leaf_columns ? column * STRIDE : 0;
            u32 words = lane < groups.count && !is_wolff ? chosen[lane] : 0;
            for (u32 g = 0; g < groups.count; ++g) {
                const u32 there = groups.bonds_of(g, open), label = larger_of(mine + g * groups.width + last_of(there | 1));
                const bool is_chosen = __shfl_sync(ALL, words, g) >> lane & 1;
                const u32 flipped = __ballot_sync(ALL, flips(column * groups.count + g, is_chosen, there != 0, label));
                if (lane == g) words = flipped;
            }
            if (lane < groups.count) chosen[lane] = words;
        }
    }
};

// Words of shared memory for a replica of so many columns of labels.
__device__ __forceinline__ u32 room_of_replica(u32 columns) { return max(WIDTH, (columns + 3) / 4 * 4 + 1) + (columns + 3) / 4 * 64 + 1; }

// Finds the clusters of a replica, a warp each: block (replicas of all samples).
template <bool IN_SHARED>
__global__ __launch_bounds__(MOST_WARPS * WIDTH, 2) void join_in_shared(Batch batch, Bonds bonds, Sites sites, u32 samples, u64 time, Key key) {
    extern __shared__ u32 in_shared[];
    const u32 lane = threadIdx.x % WIDTH, warp = threadIdx.x / WIDTH, warps = blockDim.x / WIDTH, columns = sites.joined_columns;
    u32* room = in_shared;
    if (IN_SHARED) {
        for (u32 i = threadIdx.x; i < bonds.columns * WIDTH / 2; i += blockDim.x)
            in_shared[i / (WIDTH / 2) * (SPREAD / 2) + i % (WIDTH / 2)] = ((const u32*)bonds.larger)[i];
        __syncthreads();
        room += bonds.columns * SPREAD / 2;
    }
    const u32 unit = blockIdx.x * warps + warp;
    if (unit >= samples * batch.replicas) return;
    const u32 sample = unit / batch.replicas, replica = unit % batch.replicas;
    const size_t row = (size_t)sample * batch.blocks + replica / LANES;
    u32* const chosen = batch.chosen + (row * LANES + replica % LANES) * sites.columns;
    u32* const of_leaves = chosen + columns;
    const u32 quads = (columns + 3) / 4, marked = 4 * quads + 1;
    u32* const marks = room + warp * room_of_replica(columns);  // which leaders flip, the ghost not; before, pairs that threads hand on
    u32* const parents = marks + max(WIDTH, marked);            // two in a word
    for (u32 i = lane; i <= 64 * quads; i += WIDTH) parents[i] = 2 * i | (2 * i + 1) << 16;
    __syncwarp();
    const auto address = [](const u32* word) { return (u32)__cvta_generic_to_shared(word); };
    u32* const opened = batch.opened + (row * LANES + replica % LANES) * bonds.columns;
    const Trees<IN_SHARED> trees{address(parents), address(marks), address(in_shared), bonds, opened};
    const Groups leaves(bonds.leaf_width);
    trees.join(leaves, Groups(bonds.width));

    for (u32 i = lane; i < marked; i += WIDTH) marks[i] = batch.move == SWENDSEN_WANG && i < columns ? chosen[i] : 0;
    __syncwarp();
    const auto mark = [&](u32 root) { if (root < sites.joined) atomicOr(marks + root / WIDTH, 1u << root % WIDTH); };
    const u32 own = batch.move != WOLFF ? NONE : sites.label[__umulhi(
        draw_own(replica, batch.first_sample + sample, counter_half_sweep(time, STREAM_CLUSTERS), key).x, sites.count)];
    const auto leads = [&](u32 leaf, bool is_chosen) { return batch.move == WOLFF ? own == (FIRST_LEAF | leaf) : is_chosen; };
    if (batch.move != SWENDSEN_WANG) {
        trees.settle(quads, [&](u32 quad, const u32 (&root)[4]) {
#pragma unroll
            for (u32 k = 0; k < 4; ++k) {
                const u32 column = 4 * quad + k;
                if (column < columns && (batch.move == WOLFF ? own == column * WIDTH + lane : chosen[column] >> lane & 1))
                    mark(root[k]);
            }
        });
        trees.each_leaf(leaves, of_leaves, batch.move == WOLFF, [&](u32 leaf, bool is_chosen, bool is_joined, u32 label) {
            if (is_joined && leads(leaf, is_chosen)) mark(trees.parent_of(label));
            return is_chosen;
        });
        __syncwarp();
    }
    // From the marks of roots to those of all labels: a root keeps its own.
    const auto flips = [&](u32 label) { return word_at(address(marks) + label / WIDTH * 4) >> label % WIDTH & 1; };
    trees.settle(quads, [&](u32 quad, const u32 (&root)[4]) {
        u32 words[4];
#pragma unroll
        for (u32 k = 0; k < 4; ++k) words[k] = __ballot_sync(ALL, flips(root[k]));
        if (lane < 4) set_word(address(marks) + 4 * (4 * quad + lane), lane & 2 ? (lane & 1 ? words[3] : words[2]) : (lane & 1 ? words[1] : words[0]));
    });
    __syncwarp();
    for (u32 i = lane; i < columns; i += WIDTH) chosen[i] = marks[i];
    trees.each_leaf(leaves, of_leaves, batch.move == WOLFF, [&](u32 leaf, bool is_chosen, bool is_joined, u32 label) {
        const bool as_joined = flips(label);
        return is_joined ? as_joined : leads(leaf, is_chosen);
    });
}

// Does so for a replica of too many sites, block (replica, sample); parents and marks of roots lie in memory.
__global__ __launch_bounds__(JOINING) void join_in_memory(Batch batch, Bonds bonds, Sites sites, u32* parents, u8* marks, u32 first, u64 time, Key key) {
    const u32 sample = first + blockIdx.y, replica = blockIdx.x, lane = threadIdx.x % WIDTH;
    const size_t row = (size_t)sample * batch.blocks + replica / LANES, mine = (size_t)blockIdx.y * batch.replicas + replica;
    u32* const parent = parents + mine * (sites.count + 1);
    u8* const mark = marks + mine * (sites.count + 1);
    const u32* const opened = batch.opened + (row * LANES + replica % LANES) * bonds.columns;
    u32* const chosen = batch.chosen + (row * LANES + replica % LANES) * sites.columns;
    for (u32 label = threadIdx.x; label <= sites.count; label += blockDim.x) parent[label] = label, mark[label] = 0;
    __syncthreads();
    for (u32 e = threadIdx.x; e < bonds.count; e += blockDim.x)
        if (opened[e / WIDTH] >> e % WIDTH & 1) join_trees(parent, bonds.labels[e].x, bonds.labels[e].y);
    __syncthreads();
    if (batch.move == WOLFF && threadIdx.x == 0) {
        const u32 own = draw_own(replica, batch.first_sample + sample, counter_half_sweep(time, STREAM_CLUSTERS), key).x;
        mark[root_of(parent, sites.label[__umulhi(own, sites.count)])] = 1;
    }
    for (u32 label = threadIdx.x; label < sites.count && batch.move != WOLFF; label += blockDim.x) {
        const bool is_chosen = chosen[label / WIDTH] >> label % WIDTH & 1;
        if (is_chosen && (batch.move == SEEDED || __ldcg(parent + label) == label)) mark[root_of(parent, label)] = 1;
    }
    __syncthreads();
    for (u32 label = threadIdx.x; label < sites.columns * WIDTH; label += blockDim.x) {
        const u32 root = label < sites.count ? root_of(parent, label) : sites.count;
        const u32 flips = __ballot_sync(ALL, root != sites.count && __ldcg(mark + root));
        if (lane == 0) chosen[label / WIDTH] = flips;
    }
}
