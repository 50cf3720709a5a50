// The Metropolis update of dense models with any couplings, whose chain is that of one site at a time: the local fields of 64 sites come
// from a product on the tensor cores, then a warp for each replica visits these sites in order and keeps the fields of those to come.
#include "metropolis/dense_bytes.cuh"

constexpr float SURELY = 1.0f / (1 << 20), NEARLY = 1.0f / (1 << 19);  // of -log u: relative and absolute
constexpr u32 LEAST_UPPER = 1 << 20;  // below, the lower half of a uniform may count

// Half costs up to `certain` are certainly accepted, but 0, and above `possible` certainly not.
template <typename Integer>
struct Bounds { Integer certain, possible; };

__device__ __forceinline__ int floor_to(float x, int) { return x < 2147483520.0f ? (int)floorf(x) : 2147483647; }
__device__ __forceinline__ long long floor_to(float x, long long) {
    return x < 9.0e18f ? (long long)floorf(x) : 0x7fffffffffffffffll;
}

// The error of -log u is that of lg2.approx, below 2^-22 or as much of its value, of the middle of a word's uniforms, 2^-21, and of
// a few roundings; that of its quotient by double_beta a few roundings more. The bounds leave twice as much and more.
template <typename Integer>
__device__ __forceinline__ Bounds<Integer> bounds(u32 upper, float per_beta) {
    if (upper < LEAST_UPPER) return {-1, floor_to(3e38f, Integer())};
    float log2;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(log2) : "f"(((float)upper + 0.5f) * 0x1p-32f));
    const float x = log2 * -0.69314718f, margin = x * SURELY + NEARLY;
    const float low = fmaxf((x - margin) * per_beta, -1.0f), high = fminf((x + margin) * per_beta, 3e38f);
    return {floor_to(low, Integer()), floor_to(high, Integer())};
}

// Decides by the full 64 bits of a uniform, of which `upper` are the upper ones; `half_cost` is not below 0.
template <int ROUNDS, typename Integer>
__device__ __noinline__ bool accepted(Integer half_cost, double double_beta, double zero_acceptance, u32 upper, int k, uint4 lower,
                                      const Key& key) {
    const double x = (double)half_cost * double_beta;
    const Threshold t = half_cost == 0 ? threshold_of(zero_acceptance) : rare_exp_threshold(-x);
    return below<ROUNDS>(upper, t, k, lower, key);
}

// Draws the uniforms of a block's sites, whose numbers and half-sweeps each thread knows of one.
template <int ROUNDS, int REPLICAS>
__device__ __forceinline__ void draw(u32* uniforms, u32 site, HalfSweep time, u32 block, const Key& key) {
    for (u32 c = threadIdx.x / SITES; c < REPLICAS / 4; c += THREADS / SITES) {
        const uint4 random = philox<ROUNDS>(site, block, time.word2, time.word3 + c, key);
#pragma unroll
        for (int k = 0; k < 4; ++k) uniforms[(4 * c + k) * SITES + threadIdx.x % SITES] = word_of(random, k);
    }
}

// Does `count` sweeps of a group of replicas (grid x, whole clusters) of a sample (grid y). `couplings` are laid out by
// spinsim/engine/moves/metropolis/dense_cuda.py, `own` are those within each block of sites; `order` and `colour` of the sites and `fields`
// in the order of visits, padded to whole blocks.
template <int BYTES, typename Integer, int REPLICAS, int CLUSTER, int ROUNDS>
__global__ OF_CLUSTERS(CLUSTER) __launch_bounds__(THREADS, 1) void sweep_bytes(
    signed char* spins, u32 sites, u32 width, u32 depth, const u32* order, const u32* colour, u32 colours, const char* couplings,
    size_t coupling_stride, const char* own, size_t own_stride, const char* fields, size_t field_stride, const double* double_beta,
    u32 beta_stride, double zero_acceptance, u32 first_sample, u32 first_call, u64 half_sweep, u32 count,
    const __grid_constant__ Key key) {
    using Shared = Room<BYTES, Integer, REPLICAS, CLUSTER>;
    using Blocks = typename Shared::Blocks;
    using Entry = EntryOf<BYTES>;
    constexpr u32 MINE = REPLICAS / WARPS, CHUNKS = SITES * SITES * sizeof(Entry) / 16, COPIED = (CHUNKS + THREADS - 1) / THREADS;
    extern __shared__ uint4 memory[];
    Shared room((char*)memory, depth);
    const u32 sample = blockIdx.y, first = blockIdx.x * REPLICAS, there = first < width ? min(width - first, (u32)REPLICAS) : 0;
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, blocks = (sites + SITES - 1) / SITES;
    const u32 group = first - Blocks::rank() * REPLICAS;  // the cluster's first replica
    signed char* const lattice = spins + (size_t)sample * sites * width + group;
    double_beta += (size_t)sample * beta_stride;
    room.load(lattice, order, sites, width, width - group);
    if (threadIdx.x < REPLICAS) room.per_beta[threadIdx.x] = 1.0f / (float)double_beta[min(first + threadIdx.x, width - 1)];
    Product<BYTES, Integer, REPLICAS, CLUSTER> product{room, CouplingStream<Shared>(room, couplings + sample * coupling_stride, depth, sites)};
    const u32 call = first_call + first / 4, block = counter_block(first_sample + sample, call / REFINE);
    const Integer* const field = (const Integer*)fields + sample * field_stride;
    own += sample * own_stride;
    __syncthreads();
    Blocks::arrive();
    for (u32 sweep = 0, last = blocks - 1; sweep < count; ++sweep, half_sweep += colours)
        for (u32 b = 0; b < blocks; last = b, ++b) {
            const u32 visit = b * SITES + threadIdx.x % SITES;
            const u32 site = order[visit];
            HalfSweep time = counter_half_sweep(half_sweep + colour[visit], STREAM_UPDATE);
            time.word3 += call % REFINE;
            product.make(last);
            uint4 copied[COPIED];
            const uint4* const from = (const uint4*)(own + (size_t)b * SITES * SITES * sizeof(Entry));
#pragma unroll
            for (u32 k = 0; k < COPIED; ++k)
                if (k * THREADS + threadIdx.x < CHUNKS) copied[k] = from[k * THREADS + threadIdx.x];
            const Integer field_of[2] = {field[b * SITES + lane], field[b * SITES + 32 + lane]};
            u32 place[MINE];
            int spin[MINE][2];
#pragma unroll
            for (u32 m = 0; m < MINE; ++m) {
                place[m] = room.spins_of(warp + m * WARPS, b) + lane;
#pragma unroll
                for (u32 h = 0; h < 2; ++h) spin[m][h] = Blocks::load(place[m] + 32 * h);
            }
            draw<ROUNDS, REPLICAS>(room.uniforms, site, time, block, key);
#pragma unroll
            for (u32 k = 0; k < COPIED; ++k)
                if (k * THREADS + threadIdx.x < CHUNKS) ((uint4*)room.own)[k * THREADS + threadIdx.x] = copied[k];
            Blocks::arrive();
            Blocks::wait();
#pragma unroll
            for (u32 m = 0; m < MINE; ++m) {
                const u32 replica = warp + m * WARPS;
                const float per_beta = room.per_beta[replica];
                Integer local[2];
                Bounds<Integer> half_costs[2];
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    const u32 at = 32 * h + lane;
                    local[h] = room.sum_of(replica, at) + field_of[h];
                    half_costs[h] = bounds<Integer>(room.uniforms[replica * SITES + at], per_beta);
                }
                if (replica >= there) continue;
                const auto accepts = [&](u32 h) {
                    const Integer half_cost = spin[m][h] * local[h];
                    if (half_cost > half_costs[h].possible) return false;
                    if (half_cost != 0 && half_cost <= half_costs[h].certain) return true;
                    const u32 at = b * SITES + 32 * h + lane;
                    if (at >= sites) return false;
                    const HalfSweep then = counter_half_sweep(half_sweep + colour[at], STREAM_UPDATE);
                    const u32 plane = then.word3 + call % REFINE + replica / 4 + REFINE;
                    return accepted<ROUNDS>(half_cost, double_beta[first + replica], zero_acceptance,
                                            room.uniforms[replica * SITES + 32 * h + lane], replica % 4,
                                            {order[at], block, then.word2, plane}, key);
                };
                const u32 up[2] = {__ballot_sync(~0u, spin[m][0] > 0), __ballot_sync(~0u, spin[m][1] > 0)};
                u32 flips[2] = {0, 0};
                while (true) {
                    const u32 next[2] = {__ballot_sync(~0u, accepts(0)), __ballot_sync(~0u, accepts(1))};
                    const u32 differ[2] = {next[0] ^ flips[0], next[1] ^ flips[1]};
                    if (!(differ[0] | differ[1])) break;
#pragma unroll
                    for (u32 h = 0; h < 2; ++h) {
                        flips[h] = next[h];
                        const u32 lowered = ~(up[h] ^ next[h]);  // of sites that differ: whether their spin is lower than it was held
                        for (u32 left = differ[h]; left; left &= left - 1) {
                            const u32 site = __ffs(left) - 1;
                            const int change = lowered >> site & 1 ? -2 : 2;
                            const Entry* const row = room.own + (32 * h + site) * SITES + lane;
#pragma unroll
                            for (u32 other = h; other < 2; ++other) local[other] += change * (Integer)row[32 * other];
                        }
                    }
                }
#pragma unroll
                for (u32 h = 0; h < 2; ++h) Blocks::store(place[m] + 32 * h, flips[h] >> lane & 1 ? -spin[m][h] : spin[m][h]);
            }
            Blocks::arrive();
        }
    Blocks::wait();
    room.store(lattice, order, sites, width, width - group);
}

// Adds energies in quanta and spins -1, (sample, replica), of the same groups.
template <int BYTES, typename Integer, int REPLICAS, int CLUSTER>
__global__ OF_CLUSTERS(CLUSTER) __launch_bounds__(THREADS, 1) void energies_bytes(
    const signed char* spins, u32 sites, u32 width, u32 depth, const u32* order, const char* couplings, size_t coupling_stride,
    const char* fields, size_t field_stride, u64* energies, u64* down) {
    using Shared = Room<BYTES, Integer, REPLICAS, CLUSTER>;
    using Blocks = typename Shared::Blocks;
    constexpr u32 MINE = REPLICAS / WARPS;
    extern __shared__ uint4 memory[];
    Shared room((char*)memory, depth);
    const u32 sample = blockIdx.y, first = blockIdx.x * REPLICAS, there = first < width ? min(width - first, (u32)REPLICAS) : 0;
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, blocks = (sites + SITES - 1) / SITES;
    const u32 group = first - Blocks::rank() * REPLICAS;
    room.load(spins + (size_t)sample * sites * width + group, order, sites, width, width - group);
    Product<BYTES, Integer, REPLICAS, CLUSTER> product{room, CouplingStream<Shared>(room, couplings + sample * coupling_stride, depth, sites)};
    const Integer* const field = (const Integer*)fields + sample * field_stride;
    __syncthreads();
    Blocks::arrive();
    long long twice[MINE] = {}, of_field[MINE] = {}, total[MINE] = {}, present[MINE] = {};
    for (u32 b = 0, last = blocks - 1; b < blocks; last = b, ++b) {
        product.make(last);
        Blocks::arrive();
        Blocks::wait();
#pragma unroll
        for (u32 m = 0; m < MINE; ++m)
#pragma unroll
            for (u32 h = 0; h < 2; ++h) {
                const u32 replica = warp + m * WARPS, at = 32 * h + lane;
                const int spin = Blocks::load(room.spins_of(replica, b) + at);
                twice[m] += spin * (long long)room.sum_of(replica, at), of_field[m] += spin * (long long)field[b * SITES + at];
                total[m] += spin, present[m] += spin != 0;
            }
        Blocks::arrive();
    }
    Blocks::wait();  // none ends while others read its spins
#pragma unroll
    for (u32 m = 0; m < MINE; ++m) {
        const u32 replica = warp + m * WARPS;
        long long sums_of_replica[4] = {twice[m], of_field[m], total[m], present[m]};
#pragma unroll
        for (int k = 0; k < 4; ++k)
            for (u32 far = 16; far; far /= 2) sums_of_replica[k] += __shfl_xor_sync(~0u, sums_of_replica[k], far);
        if (lane || replica >= there) continue;
        energies[(size_t)sample * width + first + replica] -= (u64)(sums_of_replica[0] / 2 + sums_of_replica[1]);
        down[(size_t)sample * width + first + replica] += (u64)(sums_of_replica[3] - sums_of_replica[2]) / 2;
    }
}
