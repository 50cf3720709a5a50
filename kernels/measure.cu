// Exact counts of every lane: spins +1 and unsatisfied bonds; and energies of unpacked spins.
#include "counters.cuh"
#include "unpacked.cuh"

constexpr int AT_ONCE = 4;  // items that a thread loads before it adds them
constexpr int PLANES = 5;   // the grid is so large that no thread takes more than 31 items

template <int ITEMS, typename Item>
__device__ __forceinline__ void count_batch(Item item, u32 first, Counters<PLANES, 4>& counters) {
    u32 word[4][ITEMS];
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        const uint4 lanes = item(first + k * blockDim.x);
        word[0][k] = lanes.x, word[1][k] = lanes.y, word[2][k] = lanes.z, word[3][k] = lanes.w;
    }
    counters.add(word);
}

// The warp's counts into totals[128] in shared memory; every thread of the warp must call it.
__device__ __forceinline__ void add_warp(const Counters<PLANES, 4>& counters, u32* totals) {
    const auto sum = pair_sum<1>(pair_sum<2>(pair_sum<4>(pair_sum<8>(pair_sum<16>(counters)))));
    const u32 word = threadIdx.x % 32 / 8;  // which the thread was left with, as were all eight of its octet
#pragma unroll
    for (u32 bit = threadIdx.x % 8, k = 0; k < 4; ++k, bit += 8) {
        u32 count = 0;
#pragma unroll
        for (int p = 0; p < PLANES + 5; ++p) count |= (sum.plane[p][0] >> bit & 1) << p;
        atomicAdd(totals + 32 * word + bit, count);
    }
}

// totals[lane] += items of 128 lanes; every block takes consecutive ones. `block_totals` is shared memory.
template <typename Item>
__device__ __forceinline__ void count_items(Item item, u32 items, u32* block_totals, u64* totals) {
    for (u32 lane = threadIdx.x; lane < 128; lane += blockDim.x) block_totals[lane] = 0;
    __syncthreads();
    Counters<PLANES, 4> counters;
    counters.clear();
    const u32 share = (items + gridDim.x - 1) / gridDim.x, stop = min(items, (blockIdx.x + 1) * share);
    u32 base = blockIdx.x * share;
    for (; base + AT_ONCE * blockDim.x <= stop; base += AT_ONCE * blockDim.x)
        count_batch<AT_ONCE>(item, base + threadIdx.x, counters);
    for (u32 i = base + threadIdx.x; i < stop; i += blockDim.x) count_batch<1>(item, i, counters);
    add_warp(counters, block_totals);
    __syncthreads();
    for (u32 lane = threadIdx.x; lane < 128; lane += blockDim.x)
        if (block_totals[lane]) atomicAdd(totals + lane, (u64)block_totals[lane]);
    __syncthreads();
}

// Replica-packed lattices: totals[(sample * blocks + block) * 128 + lane], of spins +1 and of unsatisfied bonds.
// `edges` are pairs of places in a lattice.
__global__ __launch_bounds__(256, 4) void count_replica(const uint4* state, u32 sites, const int2* edges,
                                                        const u8* negative, size_t sign_stride, u32 bonds, u64* up,
                                                        u64* unsatisfied) {
    __shared__ u32 block_totals[128];
    const size_t part = (size_t)blockIdx.z * gridDim.y + blockIdx.y;
    const uint4* const lattice = state + part * sites;
    const u8* const signs = negative + blockIdx.z * sign_stride;
    count_items([=](u32 i) { return lattice[i]; }, sites, block_totals, up + part * 128);
    count_items(
        [=](u32 b) {
            const int2 ends = edges[b];
            const uint4 one = lattice[ends.x], other = lattice[ends.y];
            const u32 sign = 0u - signs[b];
            return make_uint4(parity(one.x, other.x, sign), parity(one.y, other.y, sign), parity(one.z, other.z, sign),
                              parity(one.w, other.w, sign));
        },
        bonds, block_totals, unsatisfied + part * 128);
}

// What the threads of a block work on in total_energy: `columns` of replicas in each of its rows.
struct Place { u32 columns, column, row, rows; };

// totals[column * REPLICAS + r] += sums of value[r] over a block's rows, for the columns in use; `sums` is shared memory.
template <int REPLICAS>
__device__ __forceinline__ void add_rows(const long long (&value)[REPLICAS], Place place, u32 in_use, long long* sums,
                                         u64* totals) {
#pragma unroll
    for (int r = 0; r < REPLICAS; ++r) sums[(place.row * REPLICAS + r) * place.columns + place.column] = value[r];
    __syncthreads();
    for (u32 r = place.row; r < REPLICAS; r += place.rows) {
        long long sum = 0;
        for (u32 row = 0; row < place.rows; ++row) sum += sums[(row * REPLICAS + r) * place.columns + place.column];
        if (place.column < in_use) atomicAdd(totals + place.column * REPLICAS + r, (u64)sum);
    }
    __syncthreads();
}

// Energy in quanta and number of spins -1 of unpacked spins, (sample, replica). A thread has 4 * CALLS replicas of at most
// 255 sites: sites in x, in strides; blocks of columns in y; samples in z. A bond is counted from its lower site.
template <typename Integer, int CALLS>
__global__ __launch_bounds__(256, 2) void total_energy(const Spins<CALLS>* spins, u32 sites, u32 parts, u32 columns,
                                                       const long long* start, const u32* near, const Integer* couplings,
                                                       size_t coupling_stride, const Integer* fields, size_t field_stride,
                                                       u64* energies, u64* down) {
    constexpr int REPLICAS = 4 * CALLS;
    constexpr int AHEAD = sizeof(Integer) == 4 ? 6 : 1;  // neighbours asked for at once, as registers allow
    __shared__ long long sums[256 * REPLICAS];
    const Place place = {columns, threadIdx.x % columns, threadIdx.x / columns, blockDim.x / columns};
    const u32 first = blockIdx.y * columns, in_use = min(columns, parts - first), sample = blockIdx.z;
    const Spins<CALLS>* const lattice = spins + (size_t)sample * sites * parts + first + place.column;
    const Integer* const row = couplings + sample * coupling_stride;
    long long energy[REPLICAS] = {};
    u32 minus[CALLS] = {};  // counts of four replicas, a byte each
    u32 site = place.column < in_use ? blockIdx.x * place.rows + place.row : sites;
    for (; site < sites; site += gridDim.x * place.rows) {
        const Spins<CALLS> own = lattice[(size_t)site * parts];
        Integer energy_if_up[REPLICAS];
        const Integer field = fields[sample * field_stride + site];
#pragma unroll
        for (int r = 0; r < REPLICAS; ++r) energy_if_up[r] = -field;
        for (long long e = start[site], last = start[site + 1]; e < last; e += AHEAD) {
            Spins<CALLS> other[AHEAD];
            Integer coupling[AHEAD];
            bool higher[AHEAD];
#pragma unroll
            for (int k = 0; k < AHEAD; ++k) {
                const u32 neighbour = e + k < last ? near[e + k] : 0;
                higher[k] = neighbour > site;
                if (higher[k]) other[k] = lattice[(size_t)neighbour * parts], coupling[k] = row[e + k];
            }
#pragma unroll
            for (int k = 0; k < AHEAD; ++k)
                if (higher[k])
#pragma unroll
                    for (int r = 0; r < REPLICAS; ++r)
                        energy_if_up[r] -= signed_byte(other[k].word[r / 4], r % 4) * coupling[k];
        }
#pragma unroll
        for (int c = 0; c < CALLS; ++c) minus[c] += own.word[c] >> 7 & 0x01010101;
#pragma unroll
        for (int r = 0; r < REPLICAS; ++r) energy[r] += (long long)signed_byte(own.word[r / 4], r % 4) * energy_if_up[r];
    }
    const size_t out = ((size_t)sample * parts + first) * REPLICAS;
    add_rows(energy, place, in_use, sums, energies + out);
#pragma unroll
    for (int r = 0; r < REPLICAS; ++r) energy[r] = minus[r / 4] >> 8 * (r % 4) & 0xff;
    add_rows(energy, place, in_use, sums, down + out);
}
