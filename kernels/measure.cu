// Exact counts of every lane: spins +1 and unsatisfied bonds; and energies of unpacked spins.
#include "lane_counts.cuh"
#include "unpacked.cuh"

constexpr int PLANES = 5;  // the grid is so large that no thread takes more than 31 items

// totals[lane] += items of 128 lanes; every block takes consecutive ones. `block_totals` is shared memory.
template <typename Item>
__device__ __forceinline__ void count_items(Item item, u32 items, u32* block_totals, u64* totals) {
    for (u32 lane = threadIdx.x; lane < 128; lane += blockDim.x) block_totals[lane] = 0;
    __syncthreads();
    const u32 share = (items + gridDim.x - 1) / gridDim.x, first = blockIdx.x * share, stop = min(items, first + share);
    add_warp(count_strided<PLANES>(item, first + threadIdx.x, stop), block_totals);
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
