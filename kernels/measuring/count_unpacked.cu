// Exact energies of replicas whose couplings are of any size, and whose spins are bits.
#include "bits/types.cuh"

constexpr int THREADS = HOST(engine.moves.metropolis.unpacked_cuda.MEASURE_THREADS), BLOCKS = HOST(engine.moves.metropolis.unpacked_cuda.MEASURE_BLOCKS);
constexpr int REPLICAS = HOST(engine.moves.metropolis.unpacked_cuda.MEASURE_REPLICAS);  // of a thread
constexpr u32 OF_BLOCK = HOST(packing.LANES) / REPLICAS;
static_assert(REPLICAS == 16, "a thread has half a word");

// Adds up energies in quanta, [sample][replica]. A thread has 16 replicas of sites that are strides apart: sites in x; blocks
// of `columns` threads side by side in y; samples in z. `state` holds [sample][block of 128 replicas][place][half word]. A bond is
// counted from its lower place. Neighbours of a place stand from start[place] to before stop[place]. Without `fields` there are none.
template <typename Integer>
__global__ __launch_bounds__(THREADS, BLOCKS) void total_energy(
    const unsigned short* state, u32 sites, u32 blocks, u32 columns, const long long* start, const long long* stop, const u32* near,
    const Integer* couplings, size_t coupling_stride, const Integer* fields, size_t field_stride, u64* energies) {
    constexpr int AHEAD = 4;  // neighbours asked for at once
    __shared__ long long sums[THREADS * REPLICAS];
    const u32 row = threadIdx.x / columns, rows = blockDim.x / columns, in_block = threadIdx.x % columns, sample = blockIdx.z;
    const u32 parts = OF_BLOCK * blocks, column = blockIdx.y * columns + in_block;
    const unsigned short* const lattice = state + ((size_t)(sample * blocks + column / OF_BLOCK) * sites) * OF_BLOCK + column % OF_BLOCK;
    const Integer* const mine = couplings + sample * coupling_stride;
    long long energy[REPLICAS] = {};
    u32 place = column < parts && row < rows ? blockIdx.x * rows + row : sites;
    for (; place < sites; place += gridDim.x * rows) {
        const u32 own = lattice[(size_t)place * OF_BLOCK];
        Integer energy_if_up[REPLICAS];
        const Integer field = fields ? fields[sample * field_stride + place] : 0;
#pragma unroll
        for (int r = 0; r < REPLICAS; ++r) energy_if_up[r] = -field;
        for (long long e = start[place], last = stop[place]; e < last; e += AHEAD) {
            u32 other[AHEAD];
            Integer coupling[AHEAD];
#pragma unroll
            for (int k = 0; k < AHEAD; ++k) {
                const u32 neighbour = e + k < last ? near[e + k] : 0;
                const bool higher = neighbour > place;
                other[k] = higher ? lattice[(size_t)neighbour * OF_BLOCK] : 0, coupling[k] = higher ? mine[e + k] : 0;
            }
#pragma unroll
            for (int k = 0; k < AHEAD; ++k)
#pragma unroll
                for (int r = 0; r < REPLICAS; ++r) energy_if_up[r] += other[k] >> r & 1 ? -coupling[k] : coupling[k];
        }
#pragma unroll
        for (int r = 0; r < REPLICAS; ++r) energy[r] += own >> r & 1 ? (long long)energy_if_up[r] : -(long long)energy_if_up[r];
    }
#pragma unroll
    for (int r = 0; r < REPLICAS; ++r)
        if (row < rows) sums[(row * REPLICAS + r) * columns + in_block] = energy[r];
    __syncthreads();
    if (column >= parts || row >= rows) return;
    for (u32 r = row; r < REPLICAS; r += rows) {
        long long sum = 0;
        for (u32 from = 0; from < rows; ++from) sum += sums[(from * REPLICAS + r) * columns + in_block];
        atomicAdd(energies + ((size_t)sample * parts + column) * REPLICAS + r, (u64)sum);
    }
}
