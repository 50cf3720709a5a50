// The lowest energy of each chunk of all states of a small problem. A bit of a state is set where the spin is -1:
//
//   state   bits:  0 .. INNER-1        INNER .. INNER+serial-1      the rest
//                  inner: all          serial: one flip at a time,  prefix: the Gray code of the chunk's number,
//                  patterns at once    in the order of a Gray code  one thread a chunk
//
//   energy of a pattern:  sum + inside[pattern], where `sum` has the energy of the other spins and of their fields on the
//                         inner ones; each bit that is set adds twice its field
//
// Serial spins are the same in all threads at all times, so that their couplings among themselves come from a table; the
// fields of the prefix on them stay in shared memory. `inside` lies among the arguments, from where additions take it
// without a load: a pattern costs two additions and a comparison.
#include "bits/types.cuh"

constexpr int INNER = HOST(optimum.enumeration_cuda.INNER), SERIAL = HOST(optimum.enumeration_cuda.SERIAL);
constexpr int THREADS = HOST(optimum.enumeration_cuda.THREADS);

template <typename T>
struct Problem {
    const T *couplings, *fields, *serial;  // (sites, sites), (sites,), energies of serial spins without fields
    u32 sites, serial_spins;
    T inside[1 << INNER];
};
CHECK_STRUCT(Problem<int>, optimum.enumeration_cuda.PROBLEM32);
CHECK_STRUCT(Problem<long long>, optimum.enumeration_cuda.PROBLEM64);

// The lowest energy of the patterns of the first `bits` inner spins.
template <int bits, typename T>
__device__ __forceinline__ T lowest_of_patterns(T sum, const T* field, const T* inside, T least) {
    if constexpr (bits == 0) {
        const T energy = sum + inside[0];
        return energy < least ? energy : least;
    } else {
        least = lowest_of_patterns<bits - 1>(sum, field, inside, least);
        return lowest_of_patterns<bits - 1>(sum + 2 * field[bits - 1], field, inside + (1 << (bits - 1)), least);
    }
}

template <typename T>
__global__ __launch_bounds__(THREADS) void lowest_of_chunks(const __grid_constant__ Problem<T> of, u64 first, u64 chunks,
                                                            T* lowest) {
    __shared__ T fields[SERIAL][THREADS];  // on serial spins
    const u64 chunk = (u64)blockIdx.x * THREADS + threadIdx.x, number = first + chunk, prefix = number ^ (number >> 1);
    const u32 begin = INNER + of.serial_spins;
    if (chunk >= chunks) return;
    T energy = 0, inner[INNER];
#pragma unroll
    for (int b = 0; b < INNER; ++b) inner[b] = of.fields[b];
    for (u32 o = 0; o < of.serial_spins; ++o) fields[o][threadIdx.x] = of.fields[INNER + o];
    for (u32 k = begin; k < of.sites; ++k) {
        const T* const row = of.couplings + k * of.sites;
        const T spin = prefix >> (k - begin) & 1 ? -1 : 1;
        T field = of.fields[k];
        for (u32 j = begin; j < k; ++j) field += prefix >> (j - begin) & 1 ? -row[j] : row[j];
        energy -= spin * field;
#pragma unroll
        for (int b = 0; b < INNER; ++b) inner[b] += spin * row[b];
        for (u32 o = 0; o < of.serial_spins; ++o) fields[o][threadIdx.x] += spin * row[INNER + o];
    }
    for (u32 o = 0; o < of.serial_spins; ++o) {
        energy -= fields[o][threadIdx.x];
#pragma unroll
        for (int b = 0; b < INNER; ++b) inner[b] += of.couplings[(INNER + o) * of.sites + b];
    }
    T least;
    u32 code = 0;
    for (u32 step = 0;; ++step) {
        T sum = energy + of.serial[code];
#pragma unroll
        for (int b = 0; b < INNER; ++b) sum -= inner[b];
        if (!step) least = sum + of.inside[0];
        least = lowest_of_patterns<INNER>(sum, inner, of.inside, least);
        if (step + 1 == 1u << of.serial_spins) break;
        const u32 o = __ffs(step + 1) - 1;
        code ^= 1u << o;
        const T turn = code >> o & 1 ? 2 : -2;
        const T* const row = of.couplings + (INNER + o) * of.sites;
        energy += turn * fields[o][threadIdx.x];
#pragma unroll
        for (int b = 0; b < INNER; ++b) inner[b] -= turn * row[b];
    }
    lowest[chunk] = least;
}
