// A measurement of replicas whose sums a counting kernel has left on the device.
#include "measuring/by_temperature.cuh"

// A block a sample. The sums, [sample][stride], are cleared.
__global__ void sort_by_temperature(u64* to, Measured measured, Exchange exchange, u64* one, u64* other, size_t stride) {
    const u32 sample = blockIdx.x;
    u64 *const ones = one + sample * stride, *const others = other + sample * stride;
    measured.write(to, exchange.of(sample), sample, [&](int replica, long long& first, long long& second) {
        first = ones[replica], second = others[replica];
        ones[replica] = others[replica] = 0;
    });
}
