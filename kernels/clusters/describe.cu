// Clusters of open bonds, as observables of a configuration: sizes, sums of spins, and the axes along which one wraps around the lattice.
//
//   opened[configuration][column of 32 bonds]    bit b: bond 32 column + b is open; `stride` configurations of a sample lie there
//   spins[configuration][site]                   +1 or -1
//   parents, members, totals[configuration][site]    trees of clusters and, of a root, its sites and the sum of its spins; one place
//                                                more, that of the ghost, whose spin no sum has
//   place[configuration][site]                   displacement from the root, `bits` bits an axis, each begun in the middle
#include "clusters/roots.cuh"

constexpr int DESCRIBING = HOST(observables.clusters_cuda.DESCRIBING);
constexpr u32 WIDTH = 32;
constexpr u64 UNKNOWN = ~0ull;

// Bonds of all samples and, where wrapping is looked for, the displacement along each, packed like places.
struct Joined {
    const uint2* ends;
    const long long* steps;
    u32 count, sites, columns, stride, axes, bits;
};
CHECK_STRUCT(Joined, observables.clusters_cuda.JOINED);

struct Trees {
    u32 *parents, *members;
    int* totals;
    u64* places;
};
CHECK_STRUCT(Trees, observables.clusters_cuda.TREES);

// Results of all configurations; `labels` may be none.
struct Described {
    double* squares;
    long long *largest, *sizes, *wrapped;
    int* labels;
    u32 sizes_of_one;
};
CHECK_STRUCT(Described, observables.clusters_cuda.DESCRIBED);

// Sets the displacement of all sites from the roots of their clusters; returns the axes along which a cluster wraps.
__device__ __forceinline__ u32 wrapping_of(const Joined& joined, const u32* opened, const u32* parent, u64* place) {
    __shared__ u32 wraps;
    u64 middle = 0;
    for (u32 a = 0; a < joined.axes; ++a) middle |= 1ull << (joined.bits * (a + 1) - 1);
    for (u32 i = threadIdx.x; i < joined.sites; i += blockDim.x) place[i] = parent[i] == i ? middle : UNKNOWN;
    if (threadIdx.x == 0) wraps = 0;
    const auto is_open = [&](u32 e) { return (opened[e / WIDTH] >> e % WIDTH & 1) != 0; };
    int changed = 1;
    for (__syncthreads(); changed; changed = __syncthreads_or(changed)) {
        changed = 0;
        for (u32 e = threadIdx.x; e < joined.count; e += blockDim.x) {
            if (!is_open(e)) continue;
            const uint2 ends = joined.ends[e];
            const u64 here = __ldcg(place + ends.x), there = __ldcg(place + ends.y);
            if ((here == UNKNOWN) == (there == UNKNOWN)) continue;
            if (there == UNKNOWN)
                atomicCAS(place + ends.y, UNKNOWN, here + joined.steps[e]);
            else
                atomicCAS(place + ends.x, UNKNOWN, there - joined.steps[e]);
            changed = 1;
        }
    }
    for (u32 e = threadIdx.x; e < joined.count; e += blockDim.x) {
        if (!is_open(e)) continue;
        const uint2 ends = joined.ends[e];
        long long apart = __ldcg(place + ends.x) + joined.steps[e] - __ldcg(place + ends.y);
        for (u32 a = 0; apart; ++a) {
            const long long along = (long long)((u64)apart << (64 - joined.bits)) >> (64 - joined.bits);
            if (along) atomicOr(&wraps, 1u << a);
            apart = (apart - along) >> joined.bits;
        }
    }
    __syncthreads();
    return wraps;
}

// Describes the clusters of a configuration: block (replica, sample).
template <bool WRAPS>
__global__ __launch_bounds__(DESCRIBING) void describe_clusters(const u32* opened, const signed char* spins, Joined joined, Trees trees, Described described) {
    __shared__ u64 squares;
    __shared__ u32 largest, sizes[WIDTH];
    const size_t configuration = (size_t)blockIdx.y * gridDim.x + blockIdx.x, first = configuration * (joined.sites + 1);
    const u32* const mine = opened + ((size_t)blockIdx.y * joined.stride + blockIdx.x) * joined.columns;
    u32 *const parent = trees.parents + first, *const members = trees.members + first;
    int* const totals = trees.totals + first;
    for (u32 i = threadIdx.x; i <= joined.sites; i += blockDim.x) parent[i] = i, members[i] = 0, totals[i] = 0;
    if (threadIdx.x < WIDTH) sizes[threadIdx.x] = 0;
    if (threadIdx.x == 0) squares = 0, largest = 0;
    __syncthreads();
    for (u32 e = threadIdx.x; e < joined.count; e += blockDim.x)
        if (mine[e / WIDTH] >> e % WIDTH & 1) join_trees(parent, joined.ends[e].x, joined.ends[e].y);
    __syncthreads();
    for (u32 i = threadIdx.x; i < joined.sites; i += blockDim.x) {
        const u32 root = root_of(parent, i);
        atomicAdd(members + root, 1u);
        atomicAdd(totals + root, (int)spins[configuration * joined.sites + i]);
        if (described.labels) described.labels[configuration * joined.sites + i] = root;
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i <= joined.sites; i += blockDim.x) {
        const u32 count = __ldcg(members + i);
        if (!count) continue;
        const long long total = __ldcg(totals + i);
        atomicAdd(&squares, (u64)(total * total));
        atomicMax(&largest, count);
        atomicAdd(sizes + (WIDTH - 1 - __clz(count)), 1u);
    }
    __syncthreads();
    if (threadIdx.x == 0) described.squares[configuration] = (double)squares, described.largest[configuration] = largest;
    if (threadIdx.x < described.sizes_of_one) described.sizes[configuration * described.sizes_of_one + threadIdx.x] = sizes[threadIdx.x];
    if constexpr (WRAPS) {
        const u32 wraps = wrapping_of(joined, mine, parent, trees.places + configuration * joined.sites);
        if (threadIdx.x < joined.axes) described.wrapped[configuration * joined.axes + threadIdx.x] = wraps >> threadIdx.x & 1;
    }
}
