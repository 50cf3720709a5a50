// Sweeps of spins that are bits of words, whatever their couplings: by the update of metropolis/unpacked.cuh.
#include "metropolis/unpacked.cuh"

// Sweeps groups of 32 * `words` replicas of a sample, 1, 2 or 4 (grid y), sites shared out to blocks (grid x): by one block all
// half-sweeps, in shared memory where they are HELD there, else one half-sweep a launch. `state` holds [sample][block of 128
// replicas][place][word]; `coldest` are the largest of `double_beta`, [term], and of `single_beta`, [sample or one][term][replica].
template <typename Integer, int TERMS, bool IN_SHARED, int ROUNDS>
__global__ __launch_bounds__(MOST_THREADS, 1) void sweep_unpacked(
    u32* state, u32 sites, u32 blocks, u32 replicas, u32 words, const u32* order, const u32* colour_start, u32 colours,
    const __grid_constant__ Slots slots, const __grid_constant__ Exact exact, const double* double_beta, const float* single_beta,
    size_t beta_stride, float coldest, float coldest_other, double zero_acceptance, u32 first_sample, u32 first_block,
    u64 half_sweep, u32 half_sweeps, const __grid_constant__ Key key) {
    extern __shared__ uint4 shared[];
    const u32 sample = blockIdx.z, width = 128 * blocks, first_column = blockIdx.y * words;
    const Word mine(words, first_column, replicas, first_sample + sample, first_block);
    float* const betas = (float*)shared;  // [term][replica of the group]
    u32* const in_shared = (u32*)(betas + TERMS * 32 * words);
    const Sums sums((char*)(IN_SHARED ? in_shared + (sites + 1) * words : in_shared), 32 / words, mine.own);
    u32* const home = state + (size_t)sample * blocks * sites * 4;
    u32* const lattice = IN_SHARED ? in_shared + mine.word : home + (size_t)(mine.column / 4) * sites * 4 + mine.column % 4;
    single_beta += sample * beta_stride + first_column * 32, double_beta += sample * beta_stride + mine.column * 32;
    for (u32 i = threadIdx.x; i < TERMS * 32 * words; i += blockDim.x)
        betas[i] = LOG2_E * single_beta[i / (32 * words) * width + i % (32 * words)];
    if (IN_SHARED) load_words(in_shared, home, sites, words, first_column);
    const Visited model = {order, colour_start, sites, colours, slots, exact, coldest, coldest_other, zero_acceptance};
    const u32 warps = gridDim.x * (blockDim.x / 32), warp = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    sweep_words<Integer, TERMS, IN_SHARED, ROUNDS>(model, mine, sums, sample, lattice, IN_SHARED ? words : 4, betas, double_beta, width, warp,
                                              warps, half_sweep, half_sweeps, key);
    if (IN_SHARED) {
        __syncthreads();
        store_words(home, in_shared, sites, words, first_column);
    }
}
