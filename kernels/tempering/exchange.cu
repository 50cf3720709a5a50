// Tempering between sweeps: exchanges of all samples from energies that a counting kernel has left on the device.
#include "tempering/exchange.cuh"

// Gives energies of replicas, up to a constant, as per_one * one + per_other * other; sums are cleared once they are read.
struct Sums {
    u64 *one, *other;  // [sample][stride]
    long long per_one, per_other;
    size_t stride;
};
CHECK_STRUCT(Sums, engine.moves.exchange_cuda.SUMS);

constexpr int THREADS = HOST(engine.moves.exchange_cuda.THREADS);

// Tries one round of exchanges, a block a sample.
template <int ROUNDS>
__global__ __launch_bounds__(THREADS) void exchange_neighbours(
    Exchange exchange, Sums sums, u32 first_sample, u64 round, Key key) {
    const u32 sample = blockIdx.x;
    u64 *const one = sums.one + sample * sums.stride, *const other = sums.other + sample * sums.stride;
    const auto energy = [&](int r) { return sums.per_one * (long long)one[r] + sums.per_other * (long long)other[r]; };
    const Exchange mine = exchange.of(sample);
    const u32 first = round % 2, tried = (exchange.temperatures - first) / 2;  // of each copy
    const HalfSweep time = counter_half_sweep(round, STREAM_SWAP);
    for (u32 i = threadIdx.x; i < exchange.copies * tried; i += blockDim.x)
        exchange_pair<ROUNDS>(mine, energy, i / tried, first + 2 * (i % tried), first_sample + sample, time, key);
    __syncthreads();
    for (u32 copy = threadIdx.x; copy < exchange.copies; copy += blockDim.x) follow_ends(mine, copy);
    for (u32 i = threadIdx.x; i < sums.stride; i += blockDim.x) one[i] = other[i] = 0;
}
