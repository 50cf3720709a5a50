// Exact counts of every lane: spins +1 and unsatisfied bonds; and energies of unpacked spins.
#include "logic.cuh"
#include "philox.cuh"

// Vertical counters of 128 lanes: plane p of word w holds bit p of 32 lanes' counts.
template <int PLANES>
struct Counters {
    u32 plane[PLANES][4];

    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int p = 0; p < PLANES; ++p)
#pragma unroll
            for (int w = 0; w < 4; ++w) plane[p][w] = 0;
    }
    __device__ __forceinline__ void add(const uint4& item) {
        u32 carry[4] = {item.x, item.y, item.z, item.w};
#pragma unroll
        for (int p = 0; p < PLANES; ++p)
#pragma unroll
            for (int w = 0; w < 4; ++w) {
                const u32 low = plane[p][w];
                plane[p][w] = low ^ carry[w];
                carry[w] &= low;
            }
    }
    // The sum over pairs of threads DISTANCE apart, and so on down to neighbours: every thread gets the warp's.
    template <int DISTANCE>
    __device__ __forceinline__ auto sum() const {
        if constexpr (DISTANCE == 0) {
            return *this;
        } else {
            Counters<PLANES + 1> both;
            u32 carry[4] = {0, 0, 0, 0};
#pragma unroll
            for (int p = 0; p < PLANES; ++p)
#pragma unroll
                for (int w = 0; w < 4; ++w) {
                    const u32 other = __shfl_xor_sync(~0u, plane[p][w], DISTANCE);
                    both.plane[p][w] = parity(plane[p][w], other, carry[w]);
                    carry[w] = majority(plane[p][w], other, carry[w]);
                }
#pragma unroll
            for (int w = 0; w < 4; ++w) both.plane[PLANES][w] = carry[w];
            return both.template sum<DISTANCE / 2>();
        }
    }
    // The warp's counts into totals[128] in shared memory; every thread of the warp must call it.
    __device__ __forceinline__ void empty_into(u32* totals) {
        const auto warp = sum<16>();
        const u32 bit = threadIdx.x & 31;
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            u32 count = 0;
#pragma unroll
            for (int p = 0; p < PLANES + 5; ++p) count |= (warp.plane[p][w] >> bit & 1) << p;
            atomicAdd(totals + 32 * w + bit, count);
        }
        clear();
    }
};

constexpr int BITS = 6, ROOM = (1 << BITS) - 1;  // items that a thread may add before its counters are emptied

// totals[lane] += items of 128 lanes, taken with a stride of the whole grid's x extent; `block_totals` is shared memory.
template <typename Item>
__device__ __forceinline__ void count_items(Item item, size_t items, u32* block_totals, u64* totals) {
    for (u32 lane = threadIdx.x; lane < 128; lane += blockDim.x) block_totals[lane] = 0;
    __syncthreads();
    Counters<BITS> counters;
    counters.clear();
    const size_t stride = (size_t)gridDim.x * blockDim.x;
    int done = 0;
    for (size_t base = (size_t)blockIdx.x * blockDim.x; base < items; base += stride) {  // uniform in the block
        const size_t i = base + threadIdx.x;
        if (i < items) counters.add(item(i));
        if (++done == ROOM) {
            counters.empty_into(block_totals);
            done = 0;
        }
    }
    if (done) counters.empty_into(block_totals);
    __syncthreads();
    for (u32 lane = threadIdx.x; lane < 128; lane += blockDim.x)
        if (block_totals[lane]) atomicAdd(totals + lane, (u64)block_totals[lane]);
    __syncthreads();
}

// Replica-packed lattices: totals[(sample * blocks + block) * 128 + lane], of spins +1 and of unsatisfied bonds.
__global__ __launch_bounds__(256) void count_replica(const uint4* state, u32 sites, const int2* edges, const u8* negative,
                                                     size_t sign_stride, size_t bonds, u64* up, u64* unsatisfied) {
    __shared__ u32 block_totals[128];
    const size_t part = (size_t)blockIdx.z * gridDim.y + blockIdx.y;
    const uint4* const lattice = state + part * sites;
    const u8* const signs = negative + blockIdx.z * sign_stride;
    count_items([=](size_t i) { return lattice[i]; }, sites, block_totals, up + part * 128);
    count_items(
        [=](size_t b) {
            const int2 ends = edges[b];
            const uint4 one = lattice[ends.x], other = lattice[ends.y];
            const u32 sign = 0u - signs[b];
            return make_uint4(parity(one.x, other.x, sign), parity(one.y, other.y, sign), parity(one.z, other.z, sign),
                              parity(one.w, other.w, sign));
        },
        bonds, block_totals, unsatisfied + part * 128);
}

// Energy in quanta and magnetisation of unpacked spins: a thread for four replicas (x), sites in strides (y), samples (z).
template <typename Integer>
__global__ __launch_bounds__(256) void total_energy(const char4* spins, u32 sites, u32 width, const long long* start,
                                                    const u32* near, const Integer* couplings, size_t coupling_stride,
                                                    const Integer* fields, size_t field_stride, u64* twice_bond_energy,
                                                    u64* field_energy, u64* magnetization) {
    const u32 four = blockIdx.x * blockDim.x + threadIdx.x, fours = width / 4, sample = blockIdx.z;
    if (four >= fours) return;
    const char4* const lattice = spins + (size_t)sample * sites * fours + four;
    const Integer* const row = couplings + sample * coupling_stride;
    long long bond[4] = {}, single[4] = {}, total[4] = {};
    for (u32 site = blockIdx.y; site < sites; site += gridDim.y) {
        Integer local[4] = {};
        for (long long e = start[site], last = start[site + 1]; e < last; ++e) {
            const char4 s = lattice[(size_t)near[e] * fours];
            const Integer j = row[e];
            local[0] += s.x * j, local[1] += s.y * j, local[2] += s.z * j, local[3] += s.w * j;
        }
        const char4 own = lattice[(size_t)site * fours];
        const signed char spin[4] = {own.x, own.y, own.z, own.w};
        const Integer h = fields[sample * field_stride + site];
#pragma unroll
        for (int r = 0; r < 4; ++r) bond[r] -= spin[r] * local[r], single[r] -= spin[r] * h, total[r] += spin[r];
    }
    const size_t out = (size_t)sample * width + 4 * four;
#pragma unroll
    for (int r = 0; r < 4; ++r) {
        atomicAdd(twice_bond_energy + out + r, (u64)bond[r]);
        atomicAdd(field_energy + out + r, (u64)single[r]);
        atomicAdd(magnetization + out + r, (u64)total[r]);
    }
}
