// The Metropolis update of dense models whose couplings are 0 and +-unit, whose chain is that of one site at a time.
#include "metropolis/dense_signs.cuh"

constexpr u32 THREADS = 32 * (REPLICAS + MULTIPLYING + DRAWING);

// Draws what a block's sites accept: a thread those of a site and four replicas, a quad.
template <int ROUNDS>
__device__ __forceinline__ void draw(const Room& room, u32 side, const Threshold& zero, u32 block, u32 sites, u64 half_sweep,
                                     const Key& key) {
    const u32 site = threadIdx.x % SITES, quad = threadIdx.x / SITES % (REPLICAS / 4), place = block * SITES + site;
    const Counter of = room.draws->counter(place, half_sweep, quad);
    const uint4 random = philox<ROUNDS>(of.site, of.block, of.time.word2, of.time.word3, key);
    Bounds<int>* const to = room.bounds() + side * (SIDE / 2) + 4 * quad * SITES + site;
    const u32 top = zero.always ? ~0u : (u32)(zero.value >> 32);
    bool undecided = place >= sites;
#pragma unroll
    for (int k = 0; k < 4; ++k) to[k * SITES] = Bounds<int>::of(word_of(random, k), room.scale[4 * quad + k], top, undecided);
    if (undecided)
#pragma unroll 1
        for (int k = 0; k < 4; ++k)
            to[k * SITES] = place < sites ? Bounds<int>::with_care(word_of(random, k), room.scale[4 * quad + k], zero) : Bounds<int>::none();
}

// Draws for one block of sites after the other, one ahead of their visits.
template <int ROUNDS>
__device__ __forceinline__ void draw_ahead(const Room& room, u32 sites, u64 half_sweep, u32 visits, const Key& key) {
    const u32 blocks = room.draws->blocks, colours = room.draws->colours;
    const Threshold zero = threshold_of(room.draws->zero_acceptance);
    for (u32 visit = 0, block = 0; visit < visits; ++visit) {
        draw<ROUNDS>(room, visit % 2, zero, block, sites, half_sweep, key);
        if (++block == blocks) block = 0, half_sweep += colours;
        __syncthreads();
    }
    __syncthreads();
}

// Multiplies for one block of sites after the other, while the one before is visited.
template <bool COMPLETE>
__device__ __forceinline__ void multiply_ahead(const Room& room, const uint4* couplings, u32 depth, u32 visits) {
    const u32 blocks = room.draws->blocks;
    Product<COMPLETE> product(room, couplings, depth, threadIdx.x / 32 % MULTIPLYING);
    product.fetch_first();
    for (u32 visit = 0, block = 0, visited = blocks - 1; visit < visits; ++visit) {
        product.make(visit % 2, block + 1 == blocks, visited);
        visited = block, block = block + 1 < blocks ? block + 1 : 0;
        __syncthreads();
    }
    __syncthreads();
}

// Returns which sites of a block flip. Where bounds do not decide, those that do not CARE set `undecided`, others take all of a uniform.
template <bool COMPLETE, int ROUNDS, bool CARE>
__device__ __forceinline__ uint2 flips_of(const Room& room, const Replica& mine, const uint4* row, u32 visit, uint2 spins, int twice_unit,
                                          const Key& key, bool& undecided) {
    const u32 replica = threadIdx.x / 32, lane = threadIdx.x % 32, bit = 1u << lane;
    Rows<COMPLETE> to(row);
    const Bounds<int>* const at = room.bounds() + visit % 2 * (SIDE / 2) + replica * SITES + lane;
    const Bounds<int> bounds[2] = {at[0], at[32]};
    const int2 local = mine.local_fields(room, visit % 2, to, spins, twice_unit);
    const bool up = spins.x & bit, high_up = spins.y & bit;
    int half_cost[2] = {up ? local.x : -local.x, high_up ? local.y : -local.y};
    const int less = up ? -twice_unit : twice_unit, high_less = high_up ? -twice_unit : twice_unit;
    to.own = {to.own.x ^ spins.x, to.own.y ^ spins.x, to.own.z ^ spins.y, 0};
    const int2 against = to.against_own({0, 0}, bit - 1);
    const int base = half_cost[0] - less * against.x, high_base = half_cost[1] - high_less * against.y;
    const auto accepts = [&](int h, int cost) {
        if (CARE && bounds[h].asks(cost)) {
            const u32 blocks = room.draws->blocks, place = visit % blocks * SITES + 32 * h + lane;
            return room.draws->accepts<ROUNDS>(cost, place, visit / blocks, replica, key);
        }
        return bounds[h].accepts(cost);
    };
    const auto again = [&](int(&cost)[2], uint2 flips, uint2) {
        const int2 against = to.against_own(flips, bit - 1);
        cost[0] = base + less * against.x, cost[1] = high_base + high_less * against.y;
    };
    const uint2 flips = settle(half_cost, accepts, again);
    if (!CARE) undecided = __any_sync(~0u, bounds[0].asks(half_cost[0]) || bounds[1].asks(half_cost[1]));
    return flips;
}

template <bool COMPLETE, int ROUNDS>
__device__ __noinline__ uint2 flips_with_care(u32 depth, Replica mine, const uint4* row, u32 visit, uint2 spins, int twice_unit,
                                              const Key& key) {
    extern __shared__ uint4 memory[];
    bool undecided;
    return flips_of<COMPLETE, ROUNDS, true>(Room(memory, depth), mine, row, visit, spins, twice_unit, key, undecided);
}

// Visits the sites of a replica, block by block, while the other warps are one ahead.
template <bool COMPLETE, int ROUNDS>
__device__ __forceinline__ void visit_sites(const Room& room, const uint4* rows, u32 depth, int twice_unit, u32 blocks, u32 visits,
                                            bool there, const Key& key) {
    uint2* const spins_of = (uint2*)(room.bits + threadIdx.x / 32 * room.pitch);
    Replica mine{spins_of[blocks - 1], 0};
    for (u32 b = 0; b + 1 < blocks; ++b) mine.ups += mine.count(spins_of[b]);
    rows += threadIdx.x % 32;
    const uint4* row = rows;
    __syncthreads();
    for (u32 visit = 0, block = 0; visit < visits; ++visit) {
        if (there) {
            const uint2 spins = spins_of[block];
            bool undecided;
            uint2 flips = flips_of<COMPLETE, ROUNDS, false>(room, mine, row, visit, spins, twice_unit, key, undecided);
            if (undecided) flips = flips_with_care<COMPLETE, ROUNDS>(depth, mine, row, visit, spins, twice_unit, key);
            mine.pass(spins, {spins.x ^ flips.x, spins.y ^ flips.y});
            if (threadIdx.x % 32 == 0) spins_of[block] = mine.before;
        }
        row += Rows<COMPLETE>::STRIDE;
        if (++block == blocks) block = 0, row = rows;
        __syncthreads();
    }
}

// Does `count` sweeps of a group of replicas (grid x) of a sample (grid y). `couplings` are planes of bits and `rows` those of a lane's
// sites, laid out by spinsim/engine/moves/metropolis/dense_cuda.py; `order` and `colour` of the sites in the order of visits, padded to whole
// blocks.
template <bool COMPLETE, int ROUNDS>
__global__ __launch_bounds__(THREADS, 1) void sweep_signs(
    signed char* spins, u32 sites, u32 width, u32 depth, const u32* order, const u32* colour, u32 colours, const uint4* couplings,
    size_t coupling_stride, const uint4* rows, size_t row_stride, u32 unit, const double* double_beta, u32 beta_stride,
    double zero_acceptance, u32 first_sample, u32 first_call, u64 half_sweep, u32 count, const __grid_constant__ Key key) {
    extern __shared__ uint4 memory[];
    const Room room(memory, depth);
    const u32 sample = blockIdx.y, first = blockIdx.x * REPLICAS, there = min(width - first, REPLICAS);
    const u32 warp = threadIdx.x / 32, blocks = (sites + SITES - 1) / SITES, visits = count * blocks;
    signed char* const lattice = spins + (size_t)sample * sites * width + first;
    double_beta += (size_t)sample * beta_stride + first;
    if (threadIdx.x == 0) {
        const u32 call = first_call + first / 4;
        *room.draws = {order, colour, double_beta, zero_acceptance, half_sweep, colours, blocks, call % REFINE,
                       counter_block(first_sample + sample, call / REFINE)};
    }
    if (threadIdx.x < REPLICAS) room.scale[threadIdx.x] = scale_of<int>(double_beta[min(threadIdx.x, there - 1)]);
    load_bits<REPLICAS>(room.bits, room.pitch, lattice, order, sites, width, depth, there);
    __syncthreads();
    if (warp < REPLICAS)
        visit_sites<COMPLETE, ROUNDS>(room, rows + sample * row_stride, depth, 2 * (int)unit, blocks, visits, warp < there, key);
    else if (warp < REPLICAS + DRAWING)
        draw_ahead<ROUNDS>(room, sites, half_sweep, visits, key);
    else
        multiply_ahead<COMPLETE>(room, couplings + sample * coupling_stride, depth, visits);
    store_bits<REPLICAS>(room.bits, room.pitch, lattice, order, sites, width, there);
}

// Adds energies in quanta and spins -1, (sample, replica), of the same groups; `fields` are those of the model.
template <bool COMPLETE>
__global__ __launch_bounds__(THREADS, 1) void energies_signs(
    const signed char* spins, u32 sites, u32 width, u32 depth, const u32* order, const uint4* couplings, size_t coupling_stride,
    const uint4* rows, size_t row_stride, const int* fields, size_t field_stride, u32 unit, u64* energies, u64* down) {
    extern __shared__ uint4 memory[];
    const Room room(memory, depth);
    const u32 sample = blockIdx.y, first = blockIdx.x * REPLICAS, there = min(width - first, REPLICAS);
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32, blocks = (sites + SITES - 1) / SITES;
    load_bits<REPLICAS>(room.bits, room.pitch, spins + (size_t)sample * sites * width + first, order, sites, width, depth, there);
    rows += sample * row_stride + lane, fields += sample * field_stride;
    Product<COMPLETE> product(room, couplings + sample * coupling_stride, depth, warp % MULTIPLYING);
    product.fetch_first();
    __syncthreads();
    const uint2* const spins_of = (const uint2*)(room.bits + warp % REPLICAS * room.pitch);
    Replica mine{spins_of[blocks - 1], 0};
    int all = 0;
    for (u32 b = 0; b < blocks; ++b) all += mine.count(spins_of[b]);
    mine.ups = all - mine.count(mine.before);
    long long twice = 0;
    for (u32 b = 0; b < blocks; ++b) {
        if (warp >= REPLICAS + DRAWING) product.make(b % 2, b + 1 == blocks, ~0u);
        __syncthreads();
        if (warp >= REPLICAS) continue;
        const uint2 present = spins_of[b];
        const int2 local = mine.local_fields(room, b % 2, Rows<COMPLETE>(rows + b * Rows<COMPLETE>::STRIDE), present, 2 * (int)unit);
        const u32 visit = b * SITES + lane;
        if (visit < sites) twice += (present.x >> lane & 1 ? 1 : -1) * ((long long)local.x + fields[visit]);
        if (visit + 32 < sites) twice += (present.y >> lane & 1 ? 1 : -1) * ((long long)local.y + fields[visit + 32]);
        mine.pass(present, present);
    }
    for (u32 far = 16; far; far /= 2) twice += __shfl_xor_sync(~0u, twice, far);
    if (lane || warp >= there) return;
    energies[(size_t)sample * width + first + warp] -= (u64)(twice / 2);
    down[(size_t)sample * width + first + warp] += sites - (u32)all;
}
