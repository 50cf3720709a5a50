// Tables of every replica at its place on the ladder, laid out as spinsim/engine/moves/metropolis/classes.py and
// spinsim/engine/moves/metropolis/site_packed/update.py say.
#include "tempering/ladder.cuh"

constexpr u32 LANES = HOST(packing.LANES);

// Lays replica-packed tables: a block for each block of 128 replicas (x) of every sample (y) and each class of each kind of sites
// (z), a thread a lane. Sites are of `kinds`, by the parity of their degree or otherwise.
__global__ __launch_bounds__(LANES) void lay_tables(uint4* always, uint4* planes, u64* thresholds, Ladder ladder,
                                                  const int* place, u32 replicas, u32 kinds, u32 classes) {
    const u32 lane = threadIdx.x, thread = lane & 31, replica = blockIdx.x * LANES + lane;
    const bool used = replica < replicas;
    const u32 t = used ? place[(size_t)blockIdx.y * replicas + replica] : 0;
    const size_t part = (size_t)blockIdx.y * gridDim.x + blockIdx.x;
    const u32 row = blockIdx.z;
    const u64 limit = used ? ladder.limits[row * ladder.temperatures + t] : 0;
    const u32 certain = __ballot_sync(~0u, used && ladder.certain[row * ladder.temperatures + t]);
    const u32 mine = plane_word(limit >> 32);
    const size_t kind = kinds * part + row / classes, cls = row % classes;
    thresholds[(kind * classes + cls) * LANES + lane] = limit;
    if (thread < PLANES) ((u32*)(planes + (kind * PLANES + thread) * classes + cls))[lane / 32] = mine;
    if (thread == PLANES) ((u32*)(always + kind * classes + cls))[lane / 32] = certain;
}

// Lays site-packed tables: a thread for each of all replicas of all samples.
__global__ void lay_uniform_tables(u32* always, u32* planes, u64* thresholds, Ladder ladder, const int* place, u32 replicas,
                                   u32 classes) {
    const u32 replica = blockIdx.x * blockDim.x + threadIdx.x;
    if (replica >= replicas) return;
    for (u32 cls = 0; cls < classes; ++cls) {
        const size_t from = cls * ladder.temperatures + place[replica], row = (size_t)replica * classes + cls;
        const u64 limit = ladder.limits[from];
        thresholds[row] = limit;
        always[row] = 0u - ladder.certain[from];
        for (u32 plane = 0; plane < PLANES; ++plane)
            planes[((size_t)replica * PLANES + plane) * classes + cls] = 0u - (u32)(limit >> (63 - plane) & 1);
    }
}

// Lays 2 beta of `replicas` of each sample, padded to `width` with the last, of unpacked spins; a thread for each. Those of the
// next term stand behind those of one, [sample][term][width], as they do on the ladder, [term][temperature].
__global__ void lay_betas(double* double_beta, float* single_beta, const double* ladder, const int* place, u32 samples,
                          u32 terms, u32 temperatures, u32 replicas, u32 width) {
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x, row = i / width;
    if (row >= (size_t)samples * terms) return;
    const u32 sample = row / terms, term = row % terms, replica = min((u32)(i % width), replicas - 1);
    const double beta = ladder[(size_t)term * temperatures + place[(size_t)sample * replicas + replica]];
    double_beta[i] = beta;
    single_beta[i] = (float)beta;
}
