// T = D B D on vectors of 2^n amplitudes: factors [[1, q], [q, 1]] of many bits in one pass over memory, in registers,
// between lanes and through shared memory; the diagonal on the fly in the first pass and in the last.
//
// A tile has 2^M amplitudes, 16 a thread. Bits of its index are those of the vector's: all M lowest (KIND CONTIGUOUS), or
// RUN of them and M - RUN others from `position` on (COLUMNS). Of SECTOR tiles the highest bit is the layer's last spin,
// which is no bit of the vector: where it is up all spins are flipped, so that half lies at the complements' addresses.

#include "bits/types.cuh"

constexpr int RUN = HOST(transfer_matrix.cuda.RUN);  // 128 bytes: with 64, writing in place halves the rate
constexpr int REGISTER_BITS = HOST(transfer_matrix.cuda.REGISTER_BITS), PER_THREAD = 1 << REGISTER_BITS;
constexpr int SITES = HOST(transfer_matrix.cuda.SITES), FIXED = HOST(transfer_matrix.cuda.FIXED);  // the shape of `cross`
enum Kind : int {
    COLUMNS = HOST(transfer_matrix.cuda.COLUMNS),
    CONTIGUOUS = HOST(transfer_matrix.cuda.CONTIGUOUS),
    SECTOR = HOST(transfer_matrix.cuda.SECTOR),
};

// Of each bit of a tile, 0 where its factor belongs to another pass.
struct Factors { double q[HOST(transfer_matrix.cuda.MOST_BITS)]; };
CHECK_STRUCT(Factors, transfer_matrix.cuda.FACTORS);

// D = own[index in the tile] * outer[tile] * product over the tile's sites of exp(s_i * sum over others of cross[i][j] s_j)
struct Diagonal { const double *own, *outer, *cross; };
CHECK_STRUCT(Diagonal, transfer_matrix.cuda.DIAGONAL);

__device__ __forceinline__ u32 padded(u32 i) { return i + (i >> 4); }

// Index in the tile of a thread's element i, whose bits BIT to BIT + 3 are those of i.
template <int BIT>
__device__ __forceinline__ u32 element(int i) {
    const u32 t = threadIdx.x;
    return (t >> BIT) << (BIT + REGISTER_BITS) | (u32)i << BIT | (t & ((1u << BIT) - 1));
}

// Where a thread's elements lie: its first one, from which the others follow in equal steps.
template <int M, int KIND, int BIT>
struct Places {
    u64 first, last;
    int shift;

    __device__ __forceinline__ Places(u64 tile, int position, u64 last) : last(last), shift(BIT) {
        const u32 e = element<BIT>(0);
        if (KIND == CONTIGUOUS) {
            first = tile << M | e;
        } else if (KIND == SECTOR) {
            first = tile << (M - 1) | (e & ((1u << (M - 1)) - 1));
        } else {
            const u64 middle = tile & (((u64)1 << (position - RUN)) - 1), high = tile >> (position - RUN);
            first = high << (position + M - RUN) | (u64)(e >> RUN) << position | middle << RUN | (e & ((1u << RUN) - 1));
            shift = BIT - RUN + position;
        }
    }
    __device__ __forceinline__ u64 operator[](int i) const {
        if (KIND != SECTOR) return first + ((u64)i << shift);
        constexpr bool IN_REGISTERS = BIT == M - REGISTER_BITS;  // the last spin
        const u64 unflipped = first + ((u64)(IN_REGISTERS ? i & (PER_THREAD / 2 - 1) : i) << BIT);
        const bool flipped = IN_REGISTERS ? i >= PER_THREAD / 2 : threadIdx.x >> (M - 1 - REGISTER_BITS);
        return flipped ? last - unflipped : unflipped;
    }
};

// Factors of the four bits of the register index.
__device__ __forceinline__ void in_registers(double (&v)[PER_THREAD], const double* q) {
#pragma unroll
    for (int b = 0; b < REGISTER_BITS; ++b) {
        const int h = 1 << b;
#pragma unroll
        for (int i = 0; i < PER_THREAD; ++i) {
            if (i & h) continue;
            const double down = v[i], up = v[i + h];
            v[i] = fma(q[b], up, down);
            v[i + h] = fma(q[b], down, up);
        }
    }
}

// The factor of a bit in which the lanes of a warp differ.
__device__ __forceinline__ void between_lanes(double (&v)[PER_THREAD], int lane_bit, double q) {
#pragma unroll
    for (int i = 0; i < PER_THREAD; ++i) v[i] = fma(q, __shfl_xor_sync(~0u, v[i], 1 << lane_bit), v[i]);
}

template <int FROM, int TO>
__device__ __forceinline__ void exchange(double (&v)[PER_THREAD], double* shared) {
#pragma unroll
    for (int i = 0; i < PER_THREAD; ++i) shared[padded(element<FROM>(i))] = v[i];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < PER_THREAD; ++i) v[i] = shared[padded(element<TO>(i))];
}

// exp(-+ s_i * field of all other sites) for each site of the tile, 16 lanes a site.
__device__ __forceinline__ void weigh(double (*weight)[2], u64 tile, const double* cross) {
    if (threadIdx.x >= SITES * 16) return;
    const int site = threadIdx.x / 16, lane = threadIdx.x % 16;
    double field = 0;
#pragma unroll
    for (int j = lane; j < FIXED; j += 16) field += (tile >> j & 1) ? cross[site * FIXED + j] : -cross[site * FIXED + j];
#pragma unroll
    for (int d = 8; d; d >>= 1) field += __shfl_xor_sync(~0u, field, d);
    if (lane < 2) weight[site][lane] = exp(lane ? field : -field);
}

// Multiplies by D; register bits are bits BIT to BIT + 3 of the tile.
template <int M, int BIT>
__device__ __forceinline__ void times_diagonal(double (&v)[PER_THREAD], const double (*weight)[2], u64 tile,
                                               const Diagonal& d) {
    double product = d.outer[tile];
#pragma unroll
    for (int c = 0; c < M; ++c) {
        if (c >= BIT && c < BIT + REGISTER_BITS) continue;
        product *= weight[c][threadIdx.x >> (c < BIT ? c : c - REGISTER_BITS) & 1];
    }
    double low[4], high[4];  // of two register bits each
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        low[i] = product * weight[BIT][i & 1] * weight[BIT + 1][i >> 1];
        high[i] = weight[BIT + 2][i & 1] * weight[BIT + 3][i >> 1];
    }
#pragma unroll
    for (int i = 0; i < PER_THREAD; ++i) v[i] *= low[i & 3] * high[i >> 2] * __ldg(d.own + element<BIT>(i));
}

// Room in shared memory for an exchange, in numbers; where only one block fits a multiprocessor, the next tile comes ahead.
template <int M>
constexpr int ROOM = (1 << M) + (1 << (M - 4));
template <int M>
constexpr int THREADS = 1 << (M - REGISTER_BITS);
// Blocks of a multiprocessor: the diagonal takes registers.
template <int M, int KIND, bool LAST>
constexpr int BLOCKS = KIND == COLUMNS && !LAST ? (M > 12 ? 2 : 4) : (M > 12 ? 1 : 2);
template <int M, int KIND, bool LAST>
constexpr bool AHEAD = M > 12 && KIND == COLUMNS && LAST;

// A thread's elements of a tile on their way to its own places in shared memory.
template <int M, int KIND>
__device__ __forceinline__ void fetch(double* to, const double* x, const Places<M, KIND, M - REGISTER_BITS>& from) {
#pragma unroll
    for (int i = 0; i < PER_THREAD; ++i) {
        const u32 address = (u32)__cvta_generic_to_shared(to + i * blockDim.x + threadIdx.x);
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(address), "l"(x + from[i]) : "memory");
    }
}

// One pass, from x to y, which may be the same. The first pass is not COLUMNS and has D before; LAST says that D comes after.
template <int M, int KIND, bool LAST>
__global__ __launch_bounds__(THREADS<M>, BLOCKS<M, KIND, LAST>) void butterfly(
    const double* x, double* y, u64 tiles, int position, u64 last, Factors factors, Diagonal diagonal) {
    static_assert(M == 12 || M == 13, "three groups of four bits, and for the thirteenth two lanes");
    constexpr int TOP = M - REGISTER_BITS, LOW = M - 12, MIDDLE = M - 8;
    extern __shared__ double shared[];
    __shared__ double weights[2][SITES][2];  // of two tiles: a warp may be one behind
    double* const ahead = shared + ROOM<M>;
    bool odd = false;
    if (AHEAD<M, KIND, LAST> && blockIdx.x < tiles) fetch<M, KIND>(ahead, x, {blockIdx.x, position, last});
    for (u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x, odd = !odd) {
        double v[PER_THREAD];
        if (AHEAD<M, KIND, LAST>) {
            asm volatile("cp.async.wait_all;" ::: "memory");
#pragma unroll
            for (int i = 0; i < PER_THREAD; ++i) v[i] = ahead[i * blockDim.x + threadIdx.x];
            if (tile + gridDim.x < tiles) fetch<M, KIND>(ahead, x, {tile + gridDim.x, position, last});
        } else {
            const Places<M, KIND, TOP> from(tile, position, last);
#pragma unroll
            for (int i = 0; i < PER_THREAD; ++i) v[i] = x[from[i]];
        }
        if (KIND != COLUMNS || LAST) weigh(weights[odd], tile, diagonal.cross);
        __syncthreads();  // also: everyone has read what the tile before left in shared memory
        if (KIND != COLUMNS) times_diagonal<M, TOP>(v, weights[odd], tile, diagonal);
        in_registers(v, factors.q + TOP);
        if (KIND == COLUMNS) {
#pragma unroll
            for (int b = RUN; b < MIDDLE; ++b) between_lanes(v, b, factors.q[b]);
            exchange<TOP, MIDDLE>(v, shared);
        } else {
            exchange<TOP, LOW>(v, shared);
            in_registers(v, factors.q + LOW);
            if (LOW) between_lanes(v, 0, factors.q[0]);
            __syncthreads();
            exchange<LOW, MIDDLE>(v, shared);
        }
        in_registers(v, factors.q + MIDDLE);
        if (LAST) times_diagonal<M, MIDDLE>(v, weights[odd], tile, diagonal);
        const Places<M, KIND, MIDDLE> to(tile, position, last);
#pragma unroll
        for (int i = 0; i < PER_THREAD; ++i) y[to[i]] = v[i];
    }
}
