// A measurement of replicas whose sums a counting kernel has left on the device.
#include "measuring/by_temperature.cuh"

// Writes what was counted of a sample, a block each. The sums, [sample][stride], are cleared.
__global__ void sort_by_temperature(u64* to, Measured measured, Exchange exchange, u64* one, u64* other, u64* third,
                                    size_t stride) {
    const u32 sample = blockIdx.x;
    measured.write(to, exchange.of(sample), sample, [&](int replica) -> Counted {
        const size_t at = sample * stride + replica;
        const Counted counted = {(long long)one[at], (long long)other[at], (long long)third[at]};
        one[at] = other[at] = third[at] = 0;
        return counted;
    });
}
