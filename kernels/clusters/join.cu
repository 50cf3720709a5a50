// Clusters of Fortuin-Kasteleyn moves by union-find over turned bonds, a replica a warp with its labels in shared memory, or a replica a
// block with more labels than fit.
#include "clusters/fortuin_kasteleyn.cuh"

typedef unsigned short u16;

constexpr int MOST_WARPS = HOST(engine.moves.fortuin_kasteleyn.cuda.MOST_WARPS), JOINING = HOST(engine.moves.fortuin_kasteleyn.cuda.JOINING);
constexpr int ENOUGH_IDLE = HOST(engine.moves.fortuin_kasteleyn.cuda.ENOUGH_IDLE);

// Returns the bonds, of those open in a column, that hang their smaller label on the larger one at once: the first one of each label.
__device__ __forceinline__ u32 first_of(u32 open, u32 starts) {
    const u32 there = open & (0u - (starts & (0u - starts)));  // a label that has begun in an earlier column may hang already
    const u32 sum = (there | ~starts) + there, above = there | (~starts & (sum ^ there ^ (there | ~starts)));
    return there & ~(above << 1 & ~starts);
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
    u32 parents, slots, near_pairs;  // addresses: of parents; of pairs that threads hand to others; of those of bonds
    const u32* pairs;

    __device__ __forceinline__ u32 parent_of(u32 label) const { return half_at(parents + 2 * label); }
    __device__ __forceinline__ void hang(u32 label, u32 parent) const { set_half(parents + 2 * label, parent); }
    __device__ __forceinline__ u32 pair_of(u32 bond) const { return IN_SHARED ? word_at(near_pairs + 4 * bond) : __ldg(pairs + bond); }

    // Lets labels meet bond by bond. A thread has 32 bonds of a column, and every 32nd column; the next word is on its way.
    __device__ __forceinline__ void join(const u32* opened, const u32* starts, u32 columns) const {
        const u32 lane = threadIdx.x % WIDTH, before = (1u << lane) - 1;
        u32 base = 0, open, start;
        const auto fetch = [&] {
            open = start = 0;
            if (base + lane < columns) open = __ldg(opened + (size_t)(base + lane) * LANES), start = __ldg(starts + base + lane);
        };
        // The first bond of each label hangs it at once.
        for (fetch(); base < columns;) {
            const u32 mine = (base + lane) * WIDTH;
            u32 first = first_of(open, start);
            base += WIDTH, fetch();
            while (first) {
                const u32 bond = __ffs(first) - 1;
                first &= first - 1;
                const u32 next = first ? __ffs(first) - 1 : bond;
                first &= first - 1;
                const u32 pair = pair_of(mine + bond), other = pair_of(mine + next);
                hang(pair & 0xffff, pair >> 16), hang(other & 0xffff, other >> 16);
            }
        }
        __syncwarp();
        base = 0, fetch();
        // All others join trees, two at a time in each thread: the smaller of two labels hangs on the larger one, which is done where it
        // was a root; else its old parent goes on (Rem's algorithm with splicing: M. M. A. Patwary, J. Blair, F. Manne, SEA 2010).
        u32 rest = 0, mine = 0, one[2] = {}, other[2] = {};
        for (;;) {
            const u32 idle[2] = {__ballot_sync(ALL, one[0] == other[0]), __ballot_sync(ALL, one[1] == other[1])};
            const u32 free = __popc(idle[0]) + __popc(idle[1]);
            if (free >= ENOUGH_IDLE) {  // threads that have bonds left hand one each to those that have less to do
                u32 ready = __ballot_sync(ALL, rest);
                if (!ready && base < columns) {
                    mine = (base + lane) * WIDTH, rest = open & ~first_of(open, start);
                    base += WIDTH, fetch();
                    ready = __ballot_sync(ALL, rest);
                }
                const u32 handed = min((u32)__popc(ready), free), place = __popc(ready & before);
                if (rest && place < handed) {
                    set_word(slots + 4 * place, pair_of(mine + __ffs(rest) - 1));
                    rest &= rest - 1;
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
                if (free == 2 * WIDTH && !handed && base >= columns) return;
            }
            u32 small[2], large[2], above[2];
#pragma unroll
            for (int k = 0; k < 2; ++k) small[k] = min(one[k], other[k]), large[k] = max(one[k], other[k]), above[k] = parent_of(small[k]);
            __syncwarp();
#pragma unroll
            for (int k = 0; k < 2; ++k) {
                if (small[k] == large[k]) continue;
                if (above[k] < large[k]) hang(small[k], large[k]);
                one[k] = above[k], other[k] = large[k];  // a root is read again: several may have written
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
#pragma unroll
            for (u32 k = 0; k < 4; ++k) set_half(own + 2 * WIDTH * k, root[k]);
            __syncwarp();
            visit(quad, root);
        }
    }
};

// Words of shared memory for a replica of so many columns of labels.
__device__ __forceinline__ u32 room_of_replica(u32 columns) { return max(WIDTH, (columns + 3) / 4 * 4 + 1) + (columns + 3) / 4 * 64 + 1; }

// Finds the clusters of a replica, a warp each: block (replicas of all samples).
template <bool IN_SHARED>
__global__ __launch_bounds__(MOST_WARPS * WIDTH) void join_in_shared(Batch batch, Bonds bonds, Sites sites, u32 samples, u64 time, Key key) {
    extern __shared__ u32 in_shared[];
    const u32 lane = threadIdx.x % WIDTH, warp = threadIdx.x / WIDTH, warps = blockDim.x / WIDTH, columns = sites.columns;
    u32* room = in_shared;
    if (IN_SHARED) {
        for (u32 i = threadIdx.x; i < bonds.columns * WIDTH; i += blockDim.x) in_shared[i] = bonds.pairs[i];
        __syncthreads();
        room += bonds.columns * WIDTH;
    }
    const u32 unit = blockIdx.x * warps + warp;
    if (unit >= samples * batch.replicas) return;
    const u32 sample = unit / batch.replicas, replica = unit % batch.replicas;
    const size_t row = (size_t)sample * batch.blocks + replica / LANES;
    u32* const chosen = batch.chosen + row * columns * LANES + replica % LANES;
    const u32 quads = (columns + 3) / 4, marked = 4 * quads + 1;
    u32* const marks = room + warp * room_of_replica(columns);  // which leaders flip, the ghost not; before, pairs that threads hand on
    u32* const parents = marks + max(WIDTH, marked);            // two in a word
    for (u32 i = lane; i <= 64 * quads; i += WIDTH) parents[i] = 2 * i | (2 * i + 1) << 16;
    __syncwarp();
    const auto address = [](const u32* word) { return (u32)__cvta_generic_to_shared(word); };
    const Trees<IN_SHARED> trees{address(parents), address(marks), address(in_shared), bonds.pairs};
    trees.join(batch.opened + row * bonds.columns * LANES + replica % LANES, bonds.starts, bonds.columns);

    for (u32 i = lane; i < marked; i += WIDTH) marks[i] = batch.move == SWENDSEN_WANG && i < columns ? chosen[(size_t)i * LANES] : 0;
    __syncwarp();
    const auto mark = [&](u32 root) { if (root != sites.count) atomicOr(marks + root / WIDTH, 1u << root % WIDTH); };
    if (batch.move == SEEDED) {
        trees.settle(quads, [&](u32 quad, const u32 (&root)[4]) {
#pragma unroll
            for (u32 k = 0; k < 4; ++k)
                if (4 * quad + k < columns && chosen[(size_t)(4 * quad + k) * LANES] >> lane & 1) mark(root[k]);
        });
    } else if (batch.move == WOLFF) {
        const u32 own = draw_own(replica, batch.first_sample + sample, counter_half_sweep(time, STREAM_CLUSTERS), key).x;
        u32 root = sites.label[__umulhi(own, sites.count)];
        while (trees.parent_of(root) != root) root = trees.parent_of(root);
        if (lane == 0) mark(root);
    }
    __syncwarp();
    u32 kept = 0;
    trees.settle(quads, [&](u32 quad, const u32 (&root)[4]) {
        u32 flips[4];
#pragma unroll
        for (u32 k = 0; k < 4; ++k) flips[k] = __ballot_sync(ALL, word_at(address(marks) + root[k] / WIDTH * 4) >> root[k] % WIDTH & 1);
        if (lane / 4 == quad % 8) kept = lane & 2 ? (lane & 1 ? flips[3] : flips[2]) : (lane & 1 ? flips[1] : flips[0]);
        if (quad % 8 == 0 && 4 * quad + lane < columns) chosen[(size_t)(4 * quad + lane) * LANES] = kept;
    });
}

// Returns the root of a label; labels on the way come nearer to it. Other threads join trees meanwhile.
__device__ __forceinline__ u32 root_of(u32* parent, u32 label) {
    for (u32 above = __ldcg(parent + label); above != label;) {
        const u32 next = __ldcg(parent + above);
        if (next == above) return above;
        parent[label] = next;
        label = next;
        above = __ldcg(parent + label);
    }
    return label;
}

// Does so for a replica of too many sites, block (replica, sample); parents and marks of roots lie in memory.
__global__ __launch_bounds__(JOINING) void join_in_memory(Batch batch, Bonds bonds, Sites sites, u32* parents, u8* marks, u32 first, u64 time, Key key) {
    const u32 sample = first + blockIdx.y, replica = blockIdx.x, lane = threadIdx.x % WIDTH;
    const size_t row = (size_t)sample * batch.blocks + replica / LANES, mine = (size_t)blockIdx.y * batch.replicas + replica;
    u32* const parent = parents + mine * (sites.count + 1);
    u8* const mark = marks + mine * (sites.count + 1);
    const u32* const opened = batch.opened + row * bonds.columns * LANES + replica % LANES;
    u32* const chosen = batch.chosen + row * sites.columns * LANES + replica % LANES;
    for (u32 label = threadIdx.x; label <= sites.count; label += blockDim.x) parent[label] = label, mark[label] = 0;
    __syncthreads();
    for (u32 e = threadIdx.x; e < bonds.count; e += blockDim.x) {
        if (!(opened[(size_t)(e / WIDTH) * LANES] >> e % WIDTH & 1)) continue;
        u32 one = root_of(parent, bonds.labels[e].x), other = root_of(parent, bonds.labels[e].y);
        while (one != other) {  // the smaller root hangs on the larger one, unless it has been hung elsewhere meanwhile
            const u32 low = min(one, other), high = max(one, other), before = atomicCAS(parent + low, low, high);
            if (before == low) break;
            one = root_of(parent, before), other = root_of(parent, high);
        }
    }
    __syncthreads();
    if (batch.move == WOLFF && threadIdx.x == 0) {
        const u32 own = draw_own(replica, batch.first_sample + sample, counter_half_sweep(time, STREAM_CLUSTERS), key).x;
        mark[root_of(parent, sites.label[__umulhi(own, sites.count)])] = 1;
    }
    for (u32 label = threadIdx.x; label < sites.count && batch.move != WOLFF; label += blockDim.x) {
        const bool is_chosen = chosen[(size_t)(label / WIDTH) * LANES] >> label % WIDTH & 1;
        if (is_chosen && (batch.move == SEEDED || __ldcg(parent + label) == label)) mark[root_of(parent, label)] = 1;
    }
    __syncthreads();
    for (u32 label = threadIdx.x; label < sites.columns * WIDTH; label += blockDim.x) {
        const u32 root = label < sites.count ? root_of(parent, label) : sites.count;
        const u32 flips = __ballot_sync(ALL, root != sites.count && __ldcg(mark + root));
        if (lane == 0) chosen[(size_t)(label / WIDTH) * LANES] = flips;
    }
}
