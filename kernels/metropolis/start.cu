// Initial spins of every replica, from the START stream: spinsim/engine/dynamics.py on the GPU.
#include "random/philox.cuh"

// Fills state[(sample * blocks + block) * sites + place] with random lanes of site order[place], those past the last replica 0.
// Without `order` a site is its own place; `first_site` is the number of the first among all sites.
template <int ROUNDS>
__global__ void random_start(uint4* state, const uint4* lanes, const u32* order, u32 sites, u32 first_site,
                             u32 first_sample, u32 first_block, Key key) {
    const u32 place = blockIdx.x * blockDim.x + threadIdx.x, block = blockIdx.y, sample = blockIdx.z;
    if (place >= sites) return;
    const u32 site = first_site + (order ? order[place] : place);
    const uint4 r = philox<ROUNDS>(site, counter_block(first_sample + sample, first_block + block), 0,
                                   counter_half_sweep(0, STREAM_START).word3, key);
    const uint4 used = lanes[block];
    state[((size_t)sample * gridDim.y + block) * sites + place] =
        make_uint4(r.x & used.x, r.y & used.y, r.z & used.z, r.w & used.w);
}
