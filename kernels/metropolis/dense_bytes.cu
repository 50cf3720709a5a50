// The Metropolis update of dense models with any couplings, whose chain is that of one site at a time: a block's 64 local fields come from a product
// on the tensor cores, then a warp for each replica visits the block's sites in order and keeps the fields of those to come.
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

// Does `count` sweeps of a group of replicas (grid x) of a sample (grid y). `couplings` are laid out by
// spinsim/engine/metropolis/dense/matrix.py, `own` are those within each block of sites; `order` and `colour` of the sites and `fields` in the order of visits, padded to whole blocks.
template <int BYTES, typename Integer, int REPLICAS, int ROUNDS>
__global__ __launch_bounds__(THREADS, 1) void sweep_bytes(
    signed char* spins, u32 sites, u32 width, u32 depth, const u32* order, const u32* colour, u32 colours, const char* couplings,
    size_t coupling_stride, const char* own, size_t own_stride, const char* fields, size_t field_stride, const double* double_beta, u32 beta_stride, double zero_acceptance, u32 first_sample, u32 first_call, u64 half_sweep,
    u32 count, const __grid_constant__ Key key) {
    using Entry = EntryOf<BYTES>;
    constexpr int MINE = REPLICAS / WARPS, COPIED = SITES * SITES * sizeof(Entry) / THREADS / 8;
    extern __shared__ uint4 memory[];
    Room<BYTES, Integer, REPLICAS> room((char*)memory, depth);
    const u32 sample = blockIdx.y, first = blockIdx.x * REPLICAS, there = min(width - first, (u32)REPLICAS);
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, blocks = (sites + SITES - 1) / SITES;
    signed char* const lattice = spins + (size_t)sample * sites * width + first;
    const u32 mine = 31 - lane;  // of 32 sites: the first one to flip is the highest bit of a vote
    double_beta += (size_t)sample * beta_stride + first;
    room.load(lattice, order, sites, width, depth, there);
    if (threadIdx.x < REPLICAS) room.per_beta[threadIdx.x] = 1.0f / (float)double_beta[min(threadIdx.x, there - 1)];
    CouplingStream stream(couplings + sample * coupling_stride, room.ring, steps_of<BYTES>(depth), blocks);
    const u32 call = first_call + first / 4, block = counter_block(first_sample + sample, call / REFINE);
    const Integer* const field = (const Integer*)fields + sample * field_stride;
    __syncthreads();
    Product<BYTES, Integer, REPLICAS> product;
    for (u32 sweep = 0; sweep < count; ++sweep, half_sweep += colours)
        for (u32 b = 0; b < blocks; ++b) {
            const u32 visit = b * SITES + threadIdx.x % SITES;
            const u32 site = order[visit];
            HalfSweep time = counter_half_sweep(half_sweep + colour[visit], STREAM_UPDATE);
            time.word3 += call % REFINE;
            uint2 copied[COPIED];
            const uint2* const from = (const uint2*)(own + sample * own_stride + (size_t)b * SITES * SITES * sizeof(Entry));
#pragma unroll
            for (int k = 0; k < COPIED; ++k) copied[k] = from[k * THREADS + threadIdx.x];
            const Integer field_of[2] = {field[b * SITES + mine], field[b * SITES + 32 + mine]};
            draw<ROUNDS, REPLICAS>(room.uniforms, site, time, block, key);
            product.make(room, stream);
#pragma unroll
            for (int k = 0; k < COPIED; ++k) ((uint2*)room.own)[k * THREADS + threadIdx.x] = copied[k];
            __syncthreads();
#pragma unroll
            for (int m = 0; m < MINE; ++m) {
                const u32 replica = warp + m * WARPS;
                const float per_beta = room.per_beta[replica];
                Integer local[2];
                Bounds<Integer> half_costs[2];
                int spin[2];
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    const u32 at = 32 * h + mine;
                    local[h] = product.take(room, replica, at) + field_of[h];
                    half_costs[h] = bounds<Integer>(room.uniforms[replica * SITES + at], per_beta);
                    spin[h] = room.spins[replica * room.pitch + b * SITES + at];
                }
                if (replica >= there) continue;
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    const u32 begin = b * SITES + 32 * h;
                    u32 left = begin >= sites ? 0 : sites - begin < 32 ? ~0u << (32 - (sites - begin)) : ~0u;  // sites to come
                    u32 up = __ballot_sync(~0u, spin[h] > 0);
                    while (true) {
                        const Integer half_cost = spin[h] * local[h];
                        const u32 sures = __ballot_sync(~0u, half_cost != 0 && half_cost <= half_costs[h].certain);
                        const u32 votes = __ballot_sync(~0u, half_cost <= half_costs[h].possible) & left;
                        if (!votes) break;
                        const u32 next = __clz(votes), bit = 0x80000000u >> next;
                        left &= bit - 1;
                        if (!(sures & bit)) {
                            const HalfSweep then = counter_half_sweep(half_sweep + colour[begin + next], STREAM_UPDATE);
                            const u32 plane = then.word3 + call % REFINE + replica / 4 + REFINE;
                            if (!accepted<ROUNDS>(__shfl_sync(~0u, half_cost, 31 - next), double_beta[replica], zero_acceptance,
                                                  room.uniforms[replica * SITES + 32 * h + next], replica % 4,
                                                  {order[begin + next], block, then.word2, plane}, key))
                                continue;
                        }
                        const Integer change = up & bit ? -2 : 2;
                        const Entry* const row = room.own + (32 * h + next) * SITES + mine;
#pragma unroll
                        for (int other = h; other < 2; ++other) local[other] += change * (Integer)row[32 * other];
                        if (mine == next) spin[h] = -spin[h];
                        up ^= bit;
                    }
                    room.spins[replica * room.pitch + begin + mine] = (signed char)spin[h];
                }
            }
            __syncthreads();
        }
    room.store(lattice, order, sites, width, there);
}

// Adds energies in quanta and spins -1, (sample, replica), of the same groups.
template <int BYTES, typename Integer, int REPLICAS>
__global__ __launch_bounds__(THREADS, 1) void energies_bytes(
    const signed char* spins, u32 sites, u32 width, u32 depth, const u32* order, const char* couplings, size_t coupling_stride,
    const char* fields, size_t field_stride, u64* energies, u64* down) {
    constexpr int MINE = REPLICAS / WARPS;
    extern __shared__ uint4 memory[];
    Room<BYTES, Integer, REPLICAS> room((char*)memory, depth);
    const u32 sample = blockIdx.y, first = blockIdx.x * REPLICAS, there = min(width - first, (u32)REPLICAS);
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, blocks = (sites + SITES - 1) / SITES;
    room.load(spins + (size_t)sample * sites * width + first, order, sites, width, depth, there);
    CouplingStream stream(couplings + sample * coupling_stride, room.ring, steps_of<BYTES>(depth), blocks);
    const Integer* const field = (const Integer*)fields + sample * field_stride;
    __syncthreads();
    Product<BYTES, Integer, REPLICAS> product;
    long long twice[MINE] = {}, of_field[MINE] = {}, total[MINE] = {}, alone[MINE] = {};
    for (u32 b = 0; b < blocks; ++b) {
        product.make(room, stream);
        __syncthreads();
#pragma unroll
        for (int m = 0; m < MINE; ++m)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const u32 replica = warp + m * WARPS, at = 32 * h + lane;
                const int spin = room.spins[replica * room.pitch + b * SITES + at];
                twice[m] += spin * (long long)product.take(room, replica, at), of_field[m] += spin * (long long)field[b * SITES + at];
                total[m] += spin, alone[m] += spin != 0;
            }
        __syncthreads();
    }
#pragma unroll
    for (int m = 0; m < MINE; ++m) {
        const u32 replica = warp + m * WARPS;
        long long found[4] = {twice[m], of_field[m], total[m], alone[m]};
#pragma unroll
        for (int k = 0; k < 4; ++k)
            for (u32 far = 16; far; far /= 2) found[k] += __shfl_xor_sync(~0u, found[k], far);
        if (lane || replica >= there) continue;
        energies[(size_t)sample * width + first + replica] -= (u64)(found[0] / 2 + found[1]);
        down[(size_t)sample * width + first + replica] += (u64)(found[3] - found[2]) / 2;
    }
}
