// A measurement of replicas whose energy has two terms, from sums that counting kernels have left on the device.
#include "measuring/by_temperature.cuh"

// Energies in quanta from spins +1 and unsatisfied bonds of each term; where both go, [sample][copy][temperature][term].
struct Terms {
    long long per_up, per_first, first_constant, per_second, second_constant;
    size_t energies;  // first word
};
CHECK_STRUCT(Terms, engine.measuring.cuda.TERMS);

// Writes what was counted of a sample, a block each: energy, spins +1 and those of the first sublattice are what `measured` is
// given. The sums, [sample][stride], are cleared.
__global__ void sort_terms(u64* to, Measured measured, Exchange exchange, Terms terms, u64* up, u64* first, u64* second,
                           u64* up_first, size_t stride) {
    const u32 sample = blockIdx.x;
    const Exchange mine = exchange.of(sample);
    const size_t replicas = mine.copies * mine.temperatures;
    const auto one = [&](size_t at) {
        return terms.per_up * (long long)up[at] + terms.per_first * (long long)first[at] + terms.first_constant;
    };
    const auto other = [&](size_t at) { return terms.per_second * (long long)second[at] + terms.second_constant; };
    double* const energies = (double*)(to + terms.energies) + 2 * sample * replicas;
    for (size_t i = threadIdx.x; i < replicas; i += blockDim.x) {  // the thread that has i below too
        const size_t at = sample * stride + mine.holder[i];
        energies[2 * i] = __dmul_rn((double)one(at), measured.quantum);
        energies[2 * i + 1] = __dmul_rn((double)other(at), measured.quantum);
    }
    measured.write(to, mine, sample, [&](int replica) -> Counted {
        const size_t at = sample * stride + replica;
        const Counted counted = {one(at) + other(at), (long long)up[at], (long long)up_first[at]};
        up[at] = first[at] = second[at] = up_first[at] = 0;
        return counted;
    });
}
