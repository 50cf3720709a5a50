// Exact counts of every lane: spins +1 and unsatisfied bonds; and energies of unpacked spins.
#include "philox.cuh"

constexpr int PLANES = 8;       // bits of a thread's counters
constexpr int FULL = 255;       // items a thread may add before they must be emptied

// Vertical counters of 128 lanes: plane p of word w holds bit p of 32 lanes' counts.
struct Counters {
    u32 plane[PLANES][4];

    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int p = 0; p < PLANES; ++p)
#pragma unroll
            for (int w = 0; w < 4; ++w) plane[p][w] = 0;
    }
    __device__ __forceinline__ void add(uint4 item) {
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
    // Sum over the warp into totals[128]; every thread of the warp must call it.
    __device__ __forceinline__ void empty_into(u64* totals) {
        for (int w = 0; w < 4; ++w)
            for (int bit = 0; bit < 32; ++bit) {
                u32 count = 0;
#pragma unroll
                for (int p = 0; p < PLANES; ++p) {
                    const u32 word = w == 0 ? plane[p][0] : w == 1 ? plane[p][1] : w == 2 ? plane[p][2] : plane[p][3];
                    count |= (word >> bit & 1) << p;
                }
                for (int d = 16; d; d >>= 1) count += __shfl_xor_sync(~0u, count, d);
                if ((threadIdx.x & 31) == bit) atomicAdd(totals + 32 * w + bit, (u64)count);
            }
        clear();
    }
};

// totals[(sample * blocks + block) * 128 + lane] += items, taken with a stride of the whole grid's x extent.
template <typename Item>
__device__ __forceinline__ void count_items(Item item, size_t items, u64* totals) {
    Counters counters;
    counters.clear();
    const size_t stride = (size_t)gridDim.x * blockDim.x, first = (size_t)blockIdx.x * blockDim.x;
    int done = 0;
    for (size_t base = first; base < items; base += stride) {  // uniform in the warp
        const size_t i = base + threadIdx.x;
        if (i < items) counters.add(item(i));
        if (++done == FULL) {
            counters.empty_into(totals);
            done = 0;
        }
    }
    if (done) counters.empty_into(totals);
}

__global__ void count_up(const uint4* state, u32 sites, u64* totals) {
    const size_t part = (size_t)blockIdx.z * gridDim.y + blockIdx.y;
    const uint4* lattice = state + part * sites;
    count_items([=](size_t i) { return lattice[i]; }, sites, totals + part * 128);
}

__global__ void count_unsatisfied(const uint4* state, u32 sites, const int2* edges, const u8* negative, size_t sign_stride,
                                  size_t bonds, u64* totals) {
    const size_t part = (size_t)blockIdx.z * gridDim.y + blockIdx.y;
    const uint4* lattice = state + part * sites;
    const u8* signs = negative + blockIdx.z * sign_stride;
    count_items(
        [=](size_t b) {
            const uint4 one = lattice[edges[b].x], other = lattice[edges[b].y];
            const u32 sign = 0u - signs[b];
            return make_uint4(one.x ^ other.x ^ sign, one.y ^ other.y ^ sign, one.z ^ other.z ^ sign, one.w ^ other.w ^ sign);
        },
        bonds, totals + part * 128);
}

// Energy in quanta and magnetisation of unpacked spins: a thread for each replica (x), sites in strides (y), samples (z).
template <typename Integer>
__global__ void total_energy(const signed char* spins, u32 sites, u32 width, const long long* start, const u32* near,
                             const Integer* couplings, size_t coupling_stride, const Integer* fields, size_t field_stride,
                             long long* twice_bond_energy, long long* field_energy, long long* magnetization) {
    const u32 replica = blockIdx.x * blockDim.x + threadIdx.x, sample = blockIdx.z;
    if (replica >= width) return;
    const signed char* lattice = spins + (size_t)sample * sites * width + replica;
    long long bond = 0, single = 0, total = 0;
    for (u32 site = blockIdx.y; site < sites; site += gridDim.y) {
        long long local = 0;
        for (long long e = start[site]; e < start[site + 1]; ++e) {
            const long long j = couplings[sample * coupling_stride + e];
            local += lattice[(size_t)near[e] * width] > 0 ? j : -j;
        }
        const bool up = lattice[(size_t)site * width] > 0;
        const long long h = fields[sample * field_stride + site];
        bond -= up ? local : -local;
        single -= up ? h : -h;
        total += up ? 1 : -1;
    }
    const size_t out = (size_t)sample * width + replica;
    atomicAdd((u64*)twice_bond_energy + out, (u64)bond);
    atomicAdd((u64*)field_energy + out, (u64)single);
    atomicAdd((u64*)magnetization + out, (u64)total);
}
