// Exact energies of unpacked replicas, their spins -1 and those of the first sublattice.
#include "packing/unpacked.cuh"

constexpr int THREADS = HOST(engine.metropolis.unpacked.cuda.THREADS), BLOCKS = HOST(engine.metropolis.unpacked.cuda.MEASURE_BLOCKS);
static_assert(HOST(engine.metropolis.unpacked.cuda.MEASURE_SITES) < 256, "a byte holds a thread's spins");

// Says what a thread of a block works on: one of `columns` of replicas in each of its rows.
struct Place { u32 columns, column, row, rows; };

// Adds sums of value[r] over a block's rows to totals[column * REPLICAS + r], of columns in use; `sums` is shared memory.
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

// Adds up energies in quanta and spins -1 of unpacked spins, (sample, replica). A thread has 4 * CALLS replicas of at most
// 255 sites: sites in x, in strides; blocks of columns in y; samples in z. A bond is counted from its lower site. Neighbours of
// a site stand from start[site] to before stop[site]. Without `fields` there are none; without `down` no spins are counted.
template <typename Integer, int CALLS>
__global__ __launch_bounds__(THREADS, BLOCKS) void total_energy(
    const Spins<CALLS>* spins, u32 sites, u32 parts, u32 columns, const long long* start, const long long* stop, const u32* near,
    const Integer* couplings, size_t coupling_stride, const Integer* fields, size_t field_stride, u64* energies, u64* down) {
    constexpr int REPLICAS = 4 * CALLS;
    constexpr int AHEAD = sizeof(Integer) == 4 ? 6 : 1;  // neighbours asked for at once, as registers allow
    __shared__ long long sums[THREADS * REPLICAS];
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
        const Integer field = fields ? fields[sample * field_stride + site] : 0;
#pragma unroll
        for (int r = 0; r < REPLICAS; ++r) energy_if_up[r] = -field;
        for (long long e = start[site], last = stop[site]; e < last; e += AHEAD) {
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
    if (!down) return;
#pragma unroll
    for (int r = 0; r < REPLICAS; ++r) energy[r] = minus[r / 4] >> 8 * (r % 4) & 0xff;
    add_rows(energy, place, in_use, sums, down + out);
}

// Counts the spins -1 of the first sublattice, whose `count` sites are `chosen`, as total_energy counts those of all sites.
template <int CALLS>
__global__ __launch_bounds__(THREADS, BLOCKS) void count_down(const Spins<CALLS>* spins, u32 sites, u32 parts, u32 columns,
                                                                const u32* chosen, u32 count, u64* down_first) {
    constexpr int REPLICAS = 4 * CALLS;
    __shared__ long long sums[THREADS * REPLICAS];
    const Place place = {columns, threadIdx.x % columns, threadIdx.x / columns, blockDim.x / columns};
    const u32 first = blockIdx.y * columns, in_use = min(columns, parts - first);
    const Spins<CALLS>* const lattice = spins + (size_t)blockIdx.z * sites * parts + first + place.column;
    u32 minus[CALLS] = {};  // counts of four replicas, a byte each
    u32 number = place.column < in_use ? blockIdx.x * place.rows + place.row : count;
    for (; number < count; number += gridDim.x * place.rows) {
        const Spins<CALLS> own = lattice[(size_t)chosen[number] * parts];
#pragma unroll
        for (int c = 0; c < CALLS; ++c) minus[c] += own.word[c] >> 7 & 0x01010101;
    }
    long long counts[REPLICAS];
#pragma unroll
    for (int r = 0; r < REPLICAS; ++r) counts[r] = minus[r / 4] >> 8 * (r % 4) & 0xff;
    add_rows(counts, place, in_use, sums, down_first + ((size_t)blockIdx.z * parts + first) * REPLICAS);
}
